r"""Drift: effects of rows and columns that change over time, beside factors and biases.

.. math:: y_{ij} = p_i\cdot q_j + b_i + c_j + \sum_k z^{(k)}_i(t_{ij}) + \sum_l u^{(l)}_j(t_{ij}) + e_{ij}

with processes z of the rows and u of the columns (`process`). How many there are, how long they last and how much they
vary follows once, after some sweeps without them, from how similar errors are by the time between entries (`curve`);
from then on they are a part of every sweep, and rows and columns see the entries without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from air_recsys.nn.drift.curve import Curve, Scale, curve_of, processes_of
from air_recsys.nn.drift.process import Moments, Process
from air_recsys.nn.objective import Observations
from air_recsys.nn.posterior.entries import Entries
from air_recsys.nn.posterior.equations import Given, Rows, equations, gaussians
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.prior import Noise
from air_recsys.nn.posterior.state import Stateful
from air_recsys.storage.lazy import Tensor, torch

_AT_ONCE = 2**18  # entries
LOOKED_AT = 2**18  # entries of the rows that curves are made of


class Drift(Stateful):
    """The processes of rows and columns.

    Parameters
    ----------
    observed : Observations
    entries : OwnEntries
        The same as a posterior sees them; their values become those without drift.
    times : Tensor of float64, shape (nnz,)
        Of the entries, row by row.
    first : int
        The sweep after which the processes are found.
    counted_from : int, optional
        Where sweeps draw: the sweep after which draws of the processes count.

    Attributes
    ----------
    processes : list of list of Process
        Of rows, and of columns.
    span : tuple of float
        The first and the last time.
    """

    _STATE = ("_done", "_drawn", "_scales")

    def __init__(
        self, observed: Observations, entries: OwnEntries, times: Tensor, *, first: int, counted_from: int | None
    ) -> None:
        self._pattern, self._weights = observed.pattern, observed.weights
        self._entries, self._times = entries, times
        self._values = observed.values.clone()
        self._index = observed.pattern.rows.long(), observed.pattern.columns.long()
        self._first, self._counted_from, self._done, self._drawn = first, counted_from, 0, False
        self._spread = torch.zeros_like(self._values)
        self.processes: list[list[Process]] = [[], []]
        self._scales = [torch.ones_like(scales, dtype=torch.float64) for scales in entries.counts]
        self.span = float(times.min()), float(times.max())

    def follow(
        self, sides: list[Rows], noise: Noise, given: Callable[[int], Given], generator: torch.Generator | None
    ) -> None:
        """Take in what a sweep found, with a generator as draws, and give the next one the entries without drift."""
        self._done += 1
        self._drawn = generator is not None
        if self._done == self._first:
            self._scales = [scales.to(torch.float64) for scales in noise.scales]
            self.processes = [self._made(side, processes_of(self._curve(side, given(side)))) for side in (0, 1)]
        if any(self.processes):
            rest, precisions = self._errors(sides) - self._total(), self._precisions(noise)
            for process in self._every():
                rest += process.at_entries()[0]
                process.update(rest, precisions, generator)
                rest -= process.at_entries()[0]
                if self._counted_from is not None and self._done > self._counted_from:
                    process.count()
            self._settle()

    def errors(self, side: int, precisions: Tensor) -> Tensor:
        """The share of the drift's variance in the squared errors of the rows of a side, (m,).

        `precisions` (n,) are those of the noise of the partners, as in `equations`.
        """
        own = self._entries.entries[side]._replace(values=self._pattern.in_order_of(side, self._spread))
        return own.sum(precisions[:, None].to(self._spread.dtype), power=1)[:, 0]

    def moments(self) -> tuple[list[Moments], list[Moments]]:
        """The processes of rows and of columns as they stand, or the means of the draws that count."""
        rows, columns = ([process.moments() for process in of_side] for of_side in self.processes)
        return rows, columns

    def tensors(self) -> list[Tensor]:
        """The tensors that have to be finite."""
        return [process.mean for process in self._every()]

    def state(self) -> dict[str, Any]:
        """The values that sweeps change."""
        found = [[(process.scale, process.strength) for process in of_side] for of_side in self.processes]
        return {**super().state(), "found": found, "processes": [process.state() for process in self._every()]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned."""
        super().load_state(state)
        found = [[Scale(*map(float, pair)) for pair in of_side] for of_side in state["found"]]
        self.processes = [self._made(side, found[side]) for side in (0, 1)]
        for process, kept in zip(self._every(), state["processes"], strict=True):
            process.load_state(kept)
        self._settle()

    def _every(self) -> Iterator[Process]:
        for of_side in self.processes:
            yield from of_side

    def _made(self, side: int, found: list[Scale]) -> list[Process]:
        return [Process(self._index[side], self._times, *each, self._scales[side]) for each in found]

    def _total(self) -> Tensor:
        """The drift at each entry, (nnz,)."""
        total = torch.zeros_like(self._times)
        for process in self._every():
            total += process.at_entries()[0]
        return total

    def _settle(self) -> None:
        """Give rows and columns the entries without drift; what it may still be is part of their errors."""
        self._spread = torch.zeros_like(self._values)
        for process in () if self._drawn else self._every():
            self._spread += process.at_entries()[1].to(self._spread.dtype)
        rest = self._values - self._total().to(self._values.dtype)
        for side in (0, 1):
            self._entries.entries[side].values.copy_(self._pattern.in_order_of(side, rest))

    def _errors(self, sides: list[Rows]) -> Tensor:
        """The entries less factors and biases, (nnz,)."""
        rows, columns = (side.mean for side in sides)
        errors = torch.empty_like(self._times)
        for start in range(0, len(errors), _AT_ONCE):
            place = slice(start, start + _AT_ONCE)
            left, right = rows[self._index[0][place]], columns[self._index[1][place]]
            scores = (left[:, :-1] * right[:, :-1]).sum(dim=1) + left[:, -1] + right[:, -1]
            errors[place] = (self._values[place] - scores).to(errors.dtype)
        return errors

    def _precisions(self, noise: Noise) -> Tensor:
        """The precision of the noise of each entry, (nnz,)."""
        rows, columns = noise.scales
        precisions = rows[self._index[0]] * columns[self._index[1]] / noise.variance
        return precisions if self._weights is None else precisions * self._weights

    def _curve(self, side: int, given: Given) -> Curve:
        """The curve of the rows of a side, or of as many of them as have some 260,000 entries."""
        entries = self._entries.entries[side]
        every = -(-len(entries.partners) // LOOKED_AT)
        rows = torch.arange(0, len(entries.starts) - 1, every, device=entries.starts.device)
        chosen, positions = _of_rows(entries, rows)
        system = equations(chosen, given.partner, given.precisions)
        mean, covariance, _ = gaussians(system, given.scales[rows], given.prior_mean[rows], given.prior_precision)
        own = given.scales[rows].repeat_interleave(chosen.starts.diff())
        precisions = own * given.precisions[chosen.partners]
        precisions = precisions if chosen.weights is None else precisions * chosen.weights
        times = self._pattern.in_order_of(side, self._times)[positions]
        solved = Rows(mean, covariance)
        return curve_of(chosen, times, solved, given.scales[rows], given.partner.mean, precisions)


def _of_rows(entries: Entries, rows: Tensor) -> tuple[Entries, Tensor]:
    """The entries of some rows, and their positions among those of all."""
    counts = entries.starts.diff()
    chosen = torch.zeros(len(counts), dtype=torch.bool, device=rows.device)
    chosen[rows] = True
    positions = chosen.repeat_interleave(counts).nonzero().flatten()
    starts = torch.cat([counts.new_zeros(1), counts[rows].cumsum(0)])
    weights = None if entries.weights is None else entries.weights[positions]
    return Entries(
        starts.to(entries.starts.dtype), entries.partners[positions], entries.values[positions], weights
    ), positions
