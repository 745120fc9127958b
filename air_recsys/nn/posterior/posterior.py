r"""The posterior of a factorization with biases, by variational sweeps or by draws.

.. math::
    y_{ij} = p_i\cdot q_j + b_i + c_j + e_{ij},\qquad e_{ij}\sim N(0, \sigma^2 / (w_{ij} t_i s_j)),\qquad
    x_i = (p_i, b_i) \sim N(W^\top f_i, S)

for rows, and for columns alike, with features f of the pattern of observed entries (`features`), priors that are
learned (`prior`), and noise of rows and columns (`noise`). Given the columns, the rows are Gaussian with precision and
mean (`equations`)

.. math:: S^{-1} + t_i A_i,\qquad (S^{-1} + t_i A_i)^{-1} (S^{-1} W^\top f_i + t_i h_i).

A sweep takes the rows given the columns, then the columns given the rows, each followed by prior and noise:

* *variational*: rows and columns are independent Gaussians, and each half sweep moves one side to the best one and
  past it, by a fraction of the way (over-relaxation): sweeps that stop at the best need more than twice as many;
* *langevin*: each half sweep draws the side. For a Gaussian the Langevin diffusion with the exact curvature as
  preconditioner has a step in closed form, x' = mean + a (x - mean) + sqrt(1 - a^2) e. At a = 0 it is a Gibbs step;
  a < 0 carries momentum past the mean, which makes the means of a chain converge in about a third of the sweeps. The
  first few sweeps are variational: from random numbers draws need far more of them.

Sources: Lim, Teh, Variational Bayesian approach to movie rating prediction, KDD Cup 2007; Salakhutdinov, Mnih,
Bayesian probabilistic matrix factorization using MCMC, ICML 2008; Simm et al., Macau, 2015 (features); Adler,
Over-relaxation method for the Monte Carlo evaluation of the partition function, Phys. Rev. D 23, 1981; Young,
Iterative methods for solving partial difference equations of elliptic type, Trans. AMS 76, 1954.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.nn.captured import MOST_ENTRIES, CapturedStep
from air_recsys.nn.drift.drift import Drift
from air_recsys.nn.posterior import flags
from air_recsys.nn.posterior.censored import Censored
from air_recsys.nn.posterior.components import Components
from air_recsys.nn.posterior.equations import SUMS, Given, Half, Rows, Solution, half_sweep, rows_at_once
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.prior import Embedding, Noise, RowPrior
from air_recsys.nn.posterior.state import Stateful, leaves, load_position, position, with_leaves
from air_recsys.nn.posterior.triangles import packed
from air_recsys.storage.lazy import Tensor, torch

_MOMENTUM, _MOMENTUM_OF_WEIGHTS = 0.6, 0.8  # -a of rows and of W; see benchmarks/reports/accuracy.md
_PAST = 0.6  # of the way to the best Gaussian, beyond it; see benchmarks/reports/accuracy.md
_START_NOISE = 0.3  # fraction of the variance of the values; smaller ones prune factors before the noise settles
_START_COVARIANCE = 0.01


class Posterior(Stateful):
    """The state of rows, columns, priors and noise.

    Parameters
    ----------
    observed : OwnEntries
        Of an m x n matrix; `observed.exchange` is that with other processes that solve rows of this posterior.
    features : tuple of Tensor
        Of the rows, (m, k), and of the columns, (n, l); the last feature is constant.
    width : int
        r, of the factors.
    rng : Generator
    sample : bool
        Draw ("langevin"), or keep means and covariances ("variational").
    n_variational : int
        How many sweeps are variational before those that draw.
    components : Components, optional
        Variances to start from, of rows without factors; "variational" keeps them.
    block_bytes : int
        Memory of the equations that "langevin" forms at a time, by default 256 MiB.
    n_known_features : tuple of int
        How many features of rows and of columns are known beside the pattern, see `RowPrior`.
    embeddings : tuple of Embedding
        The embeddings of given graphs among the features of rows and of columns, and how strongly these count.
    drift : Drift, optional
        What rows and columns add at a moment; of one process alone.
    censored : Censored, optional
        The entries of which a limit is known.

    Attributes
    ----------
    exchange : Exchange
        That of `observed`.
    sides : list of Rows
        Rows and columns.
    priors : list of RowPrior
        Those of both sides.
    noise : Noise
    drift : Drift or None
    means : list of Tensor
        Of the rows given the columns, (m, d), and the reverse, from the last sweep.
    """

    _STATE = ("sides", "means", "_done")

    def __init__(
        self,
        observed: OwnEntries,
        features: tuple[Tensor, Tensor],
        width: int,
        rng: np.random.Generator,
        *,
        sample: bool = False,
        n_variational: int = 0,
        components: Components | None = None,
        block_bytes: int = SUMS,
        n_known_features: tuple[int, int] = (0, 0),
        embeddings: tuple[Embedding, Embedding] = (Embedding(), Embedding()),
        drift: Drift | None = None,
        censored: Censored | None = None,
    ) -> None:
        values, variance = observed.values, observed.mean_square or 1.0
        self._sample, self._n_variational, self._values, self._done = sample, n_variational, values, 0
        # The covariances of all rows are kept in the place of their equations; of draws nothing stays.
        block = rows_at_once(width + 1, values.dtype, block_bytes) if sample else None
        self.exchange, self.drift, self._censored = observed.exchange, drift, censored
        self._own = [observed.own(side) for side in (0, 1)]
        self._blocks = [entries.cut(block) for entries in observed.entries]
        deviation = (variance / max(width, 1)) ** 0.25  # products then have the variance of the values
        self.generator = torch.Generator(values.device).manual_seed(int(rng.integers(2**63 - 1)))
        start = Components(deviation**2, deviation**2, _START_NOISE * variance) if components is None else components
        known = components is not None
        self.noise = Noise(observed.counts, start.noise, known=known)
        self.priors = [
            RowPrior(
                features[side],
                width + 1,
                start[side],
                known=known,
                n_known_features=n_known_features[side],
                embedding=embeddings[side],
                own=self._own[side],
                exchange=self.exchange,
            )
            for side in (0, 1)
        ]
        self.sides = [self._start(size, width, deviation) for size in observed.shape]
        self.means = [side.mean for side in self.sides]
        self._flags: list[flags.Flag] = []  # of the sweep that Python went through last
        self._told = torch.zeros(1)  # by the last sweep, see `flags.together`
        # What drift finds, what processes exchange, and values of limits cannot be captured.
        fixed = self.exchange.alone and drift is None and censored is None
        captured = fixed and values.is_cuda and len(values) <= MOST_ENTRIES
        self._captured = CapturedStep(values.device, self.generator) if captured else None

    def _start(self, m: int, width: int, deviation: float) -> Rows:
        mean = self._normal(m, width + 1) * deviation
        mean[:, -1] = 0.0
        return Rows(mean) if self._drawing else Rows(mean, _first_covariances(mean))

    @property
    def _drawing(self) -> bool:
        return self._sample and self._done >= self._n_variational

    def _normal(self, *shape: int) -> Tensor:
        like = self._values
        return torch.randn(*shape, generator=self.generator, dtype=like.dtype, device=like.device)

    def sweep(self) -> None:
        """Go through rows and columns once; `check` says whether that went well."""
        if self._drawing:
            self.sides = [Rows(side.mean) for side in self.sides]
        before = list(leaves(self._moving()))
        # The few sweeps before draws end before a graph would pay.
        captured = self._captured if self._drawing == self._sample else None
        *tensors, self._told = self._swept(before) if captured is None else captured(self._swept, before)
        self._move(tensors)
        self._done += 1

    def _moving(self) -> dict[str, Any]:
        """The values that a sweep changes beside drift and the random numbers."""
        priors = [prior.state() for prior in self.priors]
        return {"sides": list(self.sides), "means": list(self.means), "noise": self.noise.state(), "priors": priors}

    def _move(self, tensors: list[Tensor]) -> None:
        """Set the tensors of `_moving`."""
        values = with_leaves(self._moving(), iter(tensors))
        self.sides, self.means = values["sides"], values["means"]
        self.noise.load_state(values["noise"])
        for prior, kept in zip(self.priors, values["priors"], strict=True):
            prior.load_state(kept)

    def _swept(self, tensors: list[Tensor]) -> list[Tensor]:
        """The tensors of `_moving` after a sweep from these, and what the sweep tells."""
        self._move(tensors)
        self._flags = []
        self._half_sweep(0)
        self._half_sweep(1)
        if self.drift is not None:
            self.drift.follow(self.sides, self.noise, self._given, self.generator if self._drawing else None)
        self._flags.append(flags.of_finite([*leaves(self._moving()), *(self.drift.tensors() if self.drift else ())]))
        return [*leaves(self._moving()), flags.together(self._flags, self.noise.variance)]

    def complete(self) -> None:
        """Give censored entries their expected values in the present state."""
        if self._censored is not None:
            self._censored.follow(self.sides, self.noise, None)

    def check(self) -> float:
        """The variance of the noise, in the one wait for the device that a sweep needs.

        Raises
        ------
        NumericalError
            If the last sweep found the precision of the numbers too low for the equations, or left their range.
        """
        return flags.read(self._told, [flag.message for flag in self._flags])[0]

    def state(self) -> dict[str, Any]:
        """The values that sweeps change."""
        return {
            **self._moving(),
            "_done": self._done,
            "generator": position(self.generator),
            **({} if self.drift is None else {"drift": self.drift.state()}),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned."""
        if self._sample:
            drawn = [covariance is None for _, covariance in state["sides"]]
            kinds = zip(self.sides, drawn, strict=True)
            self.sides = [Rows(side.mean, None if exact else _first_covariances(side.mean)) for side, exact in kinds]
        super().load_state(state)
        for prior, kept in zip(self.priors, state["priors"], strict=True):
            prior.load_state(kept)
        self.noise.load_state(state["noise"])
        load_position(self.generator, state["generator"])
        if self.drift is not None:
            self.drift.load_state(state["drift"])

    def _half_sweep(self, side: int) -> None:
        noise, prior, before = self.noise, self.priors[side], self.sides[side].mean
        if self._censored is not None and (self._done or side):  # the first half sweep comes from random numbers
            self._censored.follow(self.sides, noise, self.generator if self._drawing else None)
        found = self.exchange.whole(side, self._solved(side, before))
        if self._drawing:
            prior.draw(found.rows, self.generator, _MOMENTUM_OF_WEIGHTS)
        else:
            past = _PAST if self._done else 0.0  # the first sweep comes from random numbers
            moved = torch.lerp(before, found.means, 1 + past)
            found = found._replace(rows=Rows(moved, found.rows.covariance))
            prior.update(found.rows, past)
        self.sides[side], self.means[side] = found.rows, found.means
        errors = found.errors
        for part in (self.drift, self._censored):
            errors = errors if part is None else errors + part.errors(side, self._precisions(side))
        noise.update(side, errors, self.generator if self._drawing else None)
        self.exchange.agree(prior, noise)
        self._flags += [found.flag, *prior.flags]

    def _precisions(self, side: int) -> Tensor:
        """The precisions of the noise of the partners of a side."""
        return self.noise.scales[1 - side] / self.noise.variance

    def _given(self, side: int) -> Given:
        """The values that the own rows of a side follow from."""
        prior, own, partner = self.priors[side], self._own[side], self.sides[1 - side]
        dtype = partner.mean.dtype
        scales = self.noise.scales[side][own]
        mean, precision = prior.mean(own).to(dtype), prior.precision.to(dtype)
        return Given(self._blocks[side], partner, self._precisions(side), scales, mean, precision)

    def _solved(self, side: int, before: Tensor) -> Half:
        """The own rows of a side given the other one; all processes draw the numbers of all rows."""
        given, own = self._given(side), self._own[side]
        if not self._drawing:
            return half_sweep(given)
        before, normal = before[own], self._normal(*before.shape)[own]

        def draw(solution: Solution, rows: slice) -> Tensor:
            return solution.draw(before[rows], _MOMENTUM, normal[rows])

        return half_sweep(given, draw)


def _first_covariances(mean: Tensor) -> Tensor:
    """The triangles to start from."""
    identity = torch.eye(mean.shape[1], dtype=mean.dtype, device=mean.device)
    return packed(_START_COVARIANCE * identity[None]).repeat(len(mean), 1)
