"""The completion of all pairs: of the drugs and targets with known interactions, and of those that are like them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from air_recsys.data.described.sides import Described
from air_recsys.metrics import average_precision
from air_recsys.models.drug_target.completion import Completed, Extension, complete, contributions
from air_recsys.models.drug_target.similarities import AllRows, Sides, Similarities, known_sides, without
from air_recsys.storage.arrays import in_numpy

_ENOUGH, _REPEATS = 1000, 5  # interactions, of which a tenth is to be ranked


class Strengths(NamedTuple):
    """The settings of a completion, as in `complete`, and the share of the regression."""

    similarity_weight: float
    noise: float
    n_rounds: int
    device: str
    regression_weight: float


@dataclass(frozen=True, eq=False)
class Whole:
    """The result: scores of all pairs, and what they are made of."""

    scores: np.ndarray  # (n_drugs, n_targets)
    filled: np.ndarray  # (n_drugs, n_targets), in [0, 1] where nothing is recorded
    known: np.ndarray  # (n_drugs, n_targets), what the regression is of
    regressed: Regressed | None  # where its share is not 0
    block: Completed  # of the drugs and targets that take part
    sides: Sides
    rows: AllRows  # the drugs
    columns: AllRows  # the targets
    labels: np.ndarray  # of the block
    recorded: np.ndarray  # whether each is
    lifts: Lifts | None = None

    def carried(self) -> np.ndarray:
        """Return the values of the block that the scores outside of it are made of, none below 0."""
        return ((self.block.scores + self.block.filled) / 2).clip(0)

    @cached_property
    def extension(self) -> Extension:
        """How drugs without interactions follow from those of the block, by their similarities."""
        similarity, drugs = self.sides.similarities[0], self.sides.drugs
        assert similarity is not None
        return Extension.of(similarity[np.ix_(drugs, drugs)], self.carried(), self.labels, self.recorded)

    @cached_property
    def profiles(self) -> np.ndarray:
        """What the scores of drugs without interactions are weighted sums of, (n_known, n_targets)."""
        return self.columns.of(self.carried().T).T

    def followed(self) -> AllRows:
        """Return how all drugs follow from those of the block."""
        similarity, known = self.sides.similarities[0], self.sides.drugs
        if similarity is None or known.all():
            return AllRows(known, np.zeros((0, int(known.sum())), dtype=self.scores.dtype))
        return AllRows(known, self.extension.weights(similarity[np.ix_(~known, known)]))

    @cached_property
    def plain(self) -> Whole:
        """The same without lifts."""
        return self if self.lifts is None else replace(self, scores=self.scores / self.lifts.factors(), lifts=None)

    @cached_property
    def turned(self) -> Whole:
        """The same with targets for drugs and drugs for targets."""
        block = self.block.turned()
        mixed_in, (first, second) = self.regressed, self.sides.similarities
        regressed = mixed_in and mixed_in._replace(scores=mixed_in.scores.T, solved=mixed_in.solved.T)
        sides = Sides((second, first), self.sides.targets, self.sides.drugs)
        turned = self.scores.T, self.filled.T, self.known.T, regressed, block, sides, self.columns, self.rows
        lifts = self.lifts and Lifts(self.lifts.columns, self.lifts.rows, self.lifts.missing.T)
        return Whole(*turned, self.labels.T, self.recorded.T, lifts)


class SimilarScores(NamedTuple):
    """The scores of drugs without a record: weights by their similarities to known drugs, times profiles of these."""

    described: Described  # of the known drugs with interactions
    ids: np.ndarray  # (n_known,)
    weights: Callable[[np.ndarray], np.ndarray]  # of similarities (k, n_known), (k, n_known)
    profiles: np.ndarray  # (n_known, n_targets)
    added: np.ndarray  # to all of them, (n_targets,)
    probabilities: Callable[[np.ndarray], np.ndarray]  # of scores, in their shape


def complete_all(
    values: np.ndarray,
    weights: np.ndarray,
    similarities: Similarities,
    strengths: Strengths,
    held: Whole | None = None,
    **watched: Any,
) -> Whole:
    """Complete the known block, by `complete` and `watched`, add what is similar to it, and mix in the regression.

    Below a completion that is held, only further drugs are completed, over its targets; the regression is of all.
    """
    sides, known = known_sides(values, similarities), values * weights
    if held is not None:
        sides = sides._replace(targets=held.sides.targets)
        if not sides.drugs[len(held.scores) :].any():
            return _only_similar(held, known, sides, strengths.regression_weight)
    inner, shown, given = sides.block(values, weights)
    completed = complete(
        inner,
        shown,
        given,
        similarity_weight=strengths.similarity_weight,
        noise=strengths.noise,
        n_rounds=strengths.n_rounds,
        device=strengths.device if held is None else "cpu",
        held=held and held.block,
        **watched,
    )
    scores, filled = completed.scores, completed.filled
    nothing = AllRows(sides.targets, np.zeros((0, int(sides.targets.sum()))))
    whole = Whole(scores, filled, known, None, completed, sides, nothing, nothing, inner, shown > shown.max() / 2)
    whole = replace(whole, columns=held.columns if held else whole.turned.followed())
    if held is not None and sides.drugs[len(held.scores) :].all():  # others follow from those that are held
        blank = np.zeros((len(held.rows.weights), len(inner) - held.rows.weights.shape[1]))
        rows = AllRows(sides.drugs, np.hstack([held.rows.weights, blank]))
    else:
        rows = whole.followed()
    whole = _extended(replace(whole, rows=rows))
    return mixed(whole, regress(known), strengths.regression_weight) if strengths.regression_weight else whole


def _extended(whole: Whole) -> Whole:
    """The same with the drugs and targets outside of the block."""
    sides = whole.sides
    if sides.complete():
        return whole
    scores, block = whole.rows.of(whole.profiles), np.ix_(sides.drugs, sides.targets)
    filled = scores.clip(0, 1)
    scores[block], filled[block] = whole.block.scores, whole.block.filled
    return replace(whole, scores=scores, filled=filled)


def _only_similar(held: Whole, known: np.ndarray, sides: Sides, share: float) -> Whole:
    """Further drugs without interactions below a completion, which stays: they follow from their similarities."""
    similarity, n = sides.similarities[0], len(held.scores)
    assert similarity is not None
    weights = held.extension.weights(similarity[n:, sides.drugs])
    scores = (weights @ held.profiles).astype(held.scores.dtype, copy=False)
    regressed, mix = held.regressed and held.regressed.above_zeros(known), (1 - share) * scores
    if regressed is not None:
        mix += share * regressed.scores[n:]
    return replace(
        held.plain,
        scores=np.concatenate([held.plain.scores, mix]),
        filled=np.concatenate([held.filled, scores.clip(0, 1)]),
        known=known,
        regressed=regressed,
        sides=sides,
        rows=AllRows(sides.drugs, np.concatenate([held.rows.weights, weights])),
    )


def mixed(whole: Whole, regressed: Regressed, share: float) -> Whole:
    """Return a completion without a regression with this share of one in its scores."""
    return replace(whole, scores=(1 - share) * whole.scores + share * regressed.scores, regressed=regressed)


class Lifts(NamedTuple):
    """Factors in the scores of missing pairs, by their drugs and targets."""

    rows: np.ndarray  # (n_drugs,)
    columns: np.ndarray  # (n_targets,)
    missing: np.ndarray  # (n_drugs, n_targets)

    def factors(self) -> np.ndarray:
        """Return the factor of each pair, (n_drugs, n_targets)."""
        return np.where(self.missing, np.outer(self.rows, self.columns), 1)


def lifted(whole: Whole, weights: np.ndarray, missing: np.ndarray, held: Whole | None = None) -> Whole:
    r"""Return a completion with scores that know why drugs and targets are in the table: they interact.

    A drug with records, none of which interacts, then interacts with one of its missing pairs at least. With scores
    :math:`p_j` of these, they become :math:`p_j / (1 - \prod_k (1 - p_k))`, by the share of such drugs that missing
    pairs explain; the other ones may be inactive. As in a count of unseen species, for each drug with one interaction
    that is recorded :math:`f / (1 - f)` are to be expected without any, f the share of its pairs that is missing.
    Targets then likewise. Below a completion that is held its targets keep their factors.

    Source: Good, Toulmin, The Number of New Species, Biometrika 43, 1956.
    """
    rows, known = _lifts(whole.scores, whole.known, weights, missing), 0 if held is None else len(held.scores)
    rows[:known] = 1  # those of the held ones are in its own scores
    if held is None:
        scores = np.where(missing, whole.scores * rows[:, None], whole.scores)
        columns = _lifts(scores.T, whole.known.T, weights.T, missing.T)
    else:
        columns = np.ones(missing.shape[1]) if held.lifts is None else held.lifts.columns
    if (rows == 1).all() and (columns == 1).all():
        return whole
    lifts = Lifts(rows, columns, missing)
    return replace(whole, scores=(whole.scores * lifts.factors()).astype(whole.scores.dtype, copy=False), lifts=lifts)


def _lifts(scores: np.ndarray, known: np.ndarray, shown: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return the factors of rows, (m,)."""
    found, absent = np.ones(len(scores)), missing.mean(axis=1)
    empty = np.flatnonzero(~known.any(axis=1) & shown.any(axis=1) & (absent > 0))
    if empty.size:
        single = (np.count_nonzero(known, axis=1) == 1) & (absent < 1)
        explained = min(1.0, float((absent[single] / (1 - absent[single])).sum()) / empty.size)
        likely = np.where(missing[empty], scores[empty].clip(0, 1), 0)
        some = 1 - np.prod(1 - likely, axis=1)
        found[empty] = 1 - explained + explained / some.clip(np.finfo(some.dtype).eps)
    return found


def chosen_regression(
    values: np.ndarray,
    weights: np.ndarray,
    similarities: Similarities,
    strengths: Strengths,
    orders: tuple[np.ndarray, np.ndarray],
) -> float:
    """Return the share of the regression that ranks hidden recorded pairs best, drawn to what is usual.

    A tenth of the recorded pairs is hidden, up to five times if few interact: it is missing, or where nothing is
    missing its values are 0. (Closed forms that leave a pair out judge graphs that have seen it.) They are drawn from
    the pairs in the given orders of drugs and of targets, so that the rows of a table may come in any order.
    """
    rng, places = np.random.RandomState(2), np.arange(weights.size).reshape(weights.shape)[np.ix_(*orders)]
    recorded = places[weights[np.ix_(*orders)] > 0]
    complete, found = recorded.size == weights.size, []
    repeats = int(np.clip(_ENOUGH // max(np.count_nonzero(values), 1), 1, _REPEATS))
    for hidden in np.array_split(rng.permutation(recorded), min(10, recorded.size))[:repeats]:
        shown = without(values, hidden), weights if complete else without(weights, hidden)
        if (shown[0] * shown[1]).any():
            regressed = regress(shown[0] * shown[1]).scores.flat[hidden]
            scores = complete_all(*shown, similarities, strengths._replace(regression_weight=0.0)).scores.flat[hidden]
            found.append((scores, regressed, values.flat[hidden]))
    if not any(labels.any() for _, _, labels in found):
        return _PRIOR
    return chosen_share(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def score_parts(whole: Whole, share: float, drug: int, target: int) -> np.ndarray:
    """Return what the value of each pair adds to the score of one, (n_drugs, n_targets): the sum is the score.

    The share is that of the regression in the scores.
    """
    sides = whole.sides
    if sides.drugs[drug] and sides.targets[target]:
        place = (int(np.count_nonzero(side[:own])) for side, own in zip(sides[1:], (drug, target), strict=True))
        parts = contributions(whole.block, *place)
    else:
        parts = np.outer(whole.rows.of_one(drug), whole.columns.of_one(target)) * whole.carried()
    added = np.zeros(whole.scores.shape)
    added[np.ix_(sides.drugs, sides.targets)] = parts
    if whole.regressed is not None:
        added = (1 - share) * added + share * whole.regressed.contributions(whole.known, drug, target)
    return added if whole.lifts is None else added * whole.lifts.factors()[drug, target]


DECAY = 10.0
_PRIOR = 0.2  # chosen on validation parts: benchmarks/reports/drug-target.md
_SHARES = np.linspace(0, 1, 11)
_FEW = 50  # interactions


class Regressed(NamedTuple):
    """The scores of both regressions and of the counts, and what their weights are made of."""

    scores: np.ndarray  # E, (m, n)
    solved: np.ndarray  # Z (Z^T Z + decay)^-1, which is (Z Z^T + decay)^-1 Z, (m, n)
    decay: float

    def above_zeros(self, known: np.ndarray) -> Regressed:
        """Return the same with further rows of `known`, in which nothing is."""
        n = len(self.scores)
        scores = np.concatenate([self.scores, base_rates(known)[n:]])
        return Regressed(scores, np.concatenate([self.solved, np.zeros_like(known[n:])]), self.decay)

    def contributions(self, known: np.ndarray, row: int, column: int) -> np.ndarray:
        """Return what each known interaction adds to the score of a pair, (m, n)."""
        added = np.zeros(known.shape)
        added[row] = known[row] * _weights(known.T @ self.solved[:, column], column, self.decay) / 2
        added[:, column] += known[:, column] * _weights(known @ self.solved[row], row, self.decay) / 2
        rate = base_rates(known)[row, column] / 2
        for own in (np.s_[row], np.s_[:, column]):
            count = known[own].sum()
            added[own if count else (row, column)] += rate * known[own] / count if count else rate
        return added


def regress(known: np.ndarray, decay: float = DECAY) -> Regressed:
    """Regress targets on targets and drugs on drugs, and add `base_rates`.

    Both take one system of equations, of the smaller side: with :math:`S = Z (Z^T Z + c)^{-1}`, which is
    :math:`(Z Z^T + c)^{-1} Z`, the inverses that the weights are ratios of are :math:`(1 - Z^T S) / c` and
    :math:`(1 - S Z^T) / c`.

    Z is `known`, (m, n), and c of both ridge regressions is `decay`.
    """
    solved = _solved(known, decay) if known.shape[0] >= known.shape[1] else _solved(known.T, decay).T
    explained = known * solved
    rows, columns = 1 - explained.sum(axis=1), 1 - explained.sum(axis=0)  # diagonals of both inverses, times c
    scores = known - decay / 2 * solved * (1 / rows[:, None] + 1 / columns)
    return Regressed(scores + base_rates(known), solved, decay)


def base_rates(known: np.ndarray) -> np.ndarray:
    """Return the share of interactions by the counts of both sides alone, as if they were independent, (m, n).

    Without it scores below 0, which frequent drugs and targets have among unlike ones, come after the zeros of rare
    ones; hubs, which are like nothing else, have no scores of their own.
    """
    rows, columns = known.sum(axis=1) + 0.5, known.sum(axis=0) + 0.5
    return np.minimum(np.outer(rows, columns / max(known.sum(), 1)), 1)


def chosen_share(completed: np.ndarray, regressed: np.ndarray, labels: np.ndarray) -> float:
    """Return g for scores of recorded pairs that lack them, shape (n_hidden,) all: the usual one if few interact."""
    precisions = [average_precision(labels, (1 - share) * completed + share * regressed) for share in _SHARES]
    number = np.count_nonzero(labels)
    trust = number**2 / (number**2 + _FEW**2)
    return float(trust * _SHARES[int(np.argmax(precisions))] + (1 - trust) * _PRIOR)


def _solved(known: np.ndarray, decay: float) -> np.ndarray:
    factor = cho_factor(known.T @ known + decay * np.eye(known.shape[1], dtype=known.dtype), overwrite_a=True)
    return cho_solve(factor, known.T).T


def _weights(product: np.ndarray, own: int, decay: float) -> np.ndarray:
    """Return the weights of a line on all others, of its own 0, by its row of Z^T S or of S Z^T; (n,)."""
    weights = product / (1 - product[own])
    weights[own] = 0
    return weights


_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_HIDDEN = 0.1


def chosen_weight(
    values: np.ndarray,
    weights: np.ndarray,
    similarities: tuple[np.ndarray | None, np.ndarray | None],
    *,
    noise: float,
    n_rounds: int,
    device: str = "cpu",
) -> float:
    """Return the similarity weight with the highest average precision on recorded pairs that are hidden in turn.

    A tenth of the recorded pairs is hidden, five times, always the same ones for the same data. Parameters are those
    of `models.drug_target.completion.complete`; where no hidden pair interacts the weight is the middle one.
    """
    rng, recorded = np.random.RandomState(0), np.flatnonzero(weights)
    scores = np.zeros(len(_WEIGHTS))
    for _ in range(_REPEATS):
        hidden = rng.permutation(recorded)[: max(1, round(_HIDDEN * recorded.size))]
        labels = values.ravel()[hidden]
        if not labels.any():
            continue
        shown = without(weights, hidden)
        for k, weight in enumerate(_WEIGHTS):
            settings = {"similarity_weight": weight, "noise": noise, "n_rounds": n_rounds}
            completed = complete(values, shown, similarities, **settings, device=device)
            scores[k] += average_precision(labels, in_numpy(completed.scores).flat[hidden])
    return float(_WEIGHTS[int(np.argmax(scores))]) if scores.any() else 0.5
