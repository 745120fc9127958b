"""The completion of all pairs: of the drugs and targets with known interactions, and of those that are like them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from air_recsys.metrics import average_precision
from air_recsys.models.drug_target.completion import Completed, Spectrum, complete, contributions
from air_recsys.models.drug_target.similarities import AllRows, Sides, Similarities, known_sides, to_all_rows, without

_ENOUGH, _REPEATS = 1000, 5  # interactions, of which a tenth is to be ranked


class Strengths(NamedTuple):
    """The settings of a completion, as in `complete`, and the share of the regression."""

    similarity_weight: float
    noise: float
    n_rounds: int
    device: str
    regression_weight: float


class Whole(NamedTuple):
    """The result: scores of all pairs, and what they are made of."""

    scores: np.ndarray  # (n_drugs, n_targets)
    filled: np.ndarray  # (n_drugs, n_targets), in [0, 1] where nothing is recorded
    known: np.ndarray  # (n_drugs, n_targets), what the regression is of
    regressed: Regressed | None  # where its share is not 0
    lifts: np.ndarray | None  # factors in the scores of `lifted`, (n_drugs, n_targets)
    block: Completed  # of the drugs and targets that take part
    sides: Sides
    rows: AllRows  # the drugs
    columns: AllRows  # the targets

    def carried(self) -> np.ndarray:
        """Return the values of the block that the scores outside of it are made of."""
        return _carried(self.block)

    def turned(self) -> Whole:
        """Return the same with targets for drugs and drugs for targets."""
        scores, filled, smoothed, (rows, columns, shares) = self.block
        block = Completed(scores.T, filled.T, smoothed.T, Spectrum(columns, rows, shares.T))
        mixed_in, (first, second) = self.regressed, self.sides.similarities
        regressed = mixed_in and mixed_in._replace(scores=mixed_in.scores.T, solved=mixed_in.solved.T)
        sides = Sides((second, first), self.sides.targets, self.sides.drugs)
        rest = None if self.lifts is None else self.lifts.T, block, sides, self.columns, self.rows
        return Whole(self.scores.T, self.filled.T, self.known.T, regressed, *rest)


def complete_all(
    values: np.ndarray,
    weights: np.ndarray,
    similarities: Similarities,
    strengths: Strengths,
    held: Whole | None = None,
    missing: np.ndarray | None = None,
    **watched: Any,
) -> Whole:
    """Complete the known block, by `complete` and `watched`, add what is similar to it, and mix in the regression.

    Below a completion that is held, only further drugs are completed, over its targets; the regression is of all.
    Pairs that are said to be missing are `lifted`.
    """
    sides, known = known_sides(values, similarities), values * weights
    if held is not None:
        sides = sides._replace(targets=held.sides.targets)
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
    carried, recorded = _carried(completed), shown > shown.max() / 2
    rows = to_all_rows(similarities[0], sides.drugs, carried, inner, recorded)
    columns = held.columns if held else to_all_rows(similarities[1], sides.targets, carried.T, inner.T, recorded.T)
    scores, filled = completed.scores.numpy(), completed.filled.numpy()
    if not sides.complete():
        extended, block = rows.of(columns.of(carried.T).T), np.ix_(sides.drugs, sides.targets)
        whole_scores, whole_filled = extended, extended.clip(0, 1)
        whole_scores[block], whole_filled[block] = scores, filled
        scores, filled = whole_scores, whole_filled
    whole = Whole(scores, filled, known, None, None, completed, sides, rows, columns)
    if strengths.regression_weight:
        whole = mixed(whole, regress(known), strengths.regression_weight)
    return whole if missing is None else lifted(whole, weights, missing)


def mixed(whole: Whole, regressed: Regressed, share: float) -> Whole:
    """Return a completion without a regression with this share of one in its scores."""
    return whole._replace(scores=(1 - share) * whole.scores + share * regressed.scores, regressed=regressed)


def lifted(whole: Whole, weights: np.ndarray, missing: np.ndarray) -> Whole:
    r"""Return a completion with scores that know why drugs and targets are in the table: they interact.

    A drug with records, none of which interacts, then interacts with one of its missing pairs at least. With scores
    :math:`p_j` of these, they become :math:`p_j / (1 - \prod_k (1 - p_k))`, by the share of such drugs that missing
    pairs explain; the other ones may be inactive. As in a count of unseen species, for each drug with one interaction
    that is recorded :math:`f / (1 - f)` are to be expected without any, f the share of its pairs that is missing.

    Source: Good, Toulmin, The Number of New Species, Biometrika 43, 1956.
    """
    lifts = np.ones_like(whole.scores)
    for turn in (np.asarray, np.transpose):
        known, shown, unseen, own = (turn(each) for each in (whole.known, weights, missing, lifts))
        absent = unseen.mean(axis=1)
        empty = np.flatnonzero(~known.any(axis=1) & shown.any(axis=1) & (absent > 0))
        if not empty.size:
            continue
        single = (np.count_nonzero(known, axis=1) == 1) & (absent < 1)
        explained = min(1.0, float((absent[single] / (1 - absent[single])).sum()) / empty.size)
        scores = np.where(unseen[empty], (turn(whole.scores)[empty] * own[empty]).clip(0, 1), 0)
        some = 1 - np.prod(1 - scores, axis=1, keepdims=True)
        factors = 1 - explained + explained / some.clip(np.finfo(some.dtype).eps)
        own[empty] *= np.where(unseen[empty], factors, 1)
    return whole if (lifts == 1).all() else whole._replace(scores=whole.scores * lifts, lifts=lifts)


def chosen_regression(
    values: np.ndarray, weights: np.ndarray, similarities: Similarities, strengths: Strengths
) -> float:
    """Return the share of the regression that ranks hidden recorded pairs best, halfway to what is usual.

    A tenth of the recorded pairs is hidden, up to five times if few interact: it is missing, or where nothing is
    missing its values are 0. (Closed forms that leave a pair out judge graphs that have seen it.)
    """
    rng, recorded = np.random.RandomState(2), np.flatnonzero(weights)
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
    return added if whole.lifts is None else added * whole.lifts[drug, target]


def _carried(block: Completed) -> np.ndarray:
    return ((block.scores + block.filled) / 2).numpy()


DECAY = 10.0
_PRIOR = 0.2  # chosen on validation parts: benchmarks/reports/drug-target.md
_SHARES = np.linspace(0, 1, 11)


class Regressed(NamedTuple):
    """The scores of both regressions and of the counts, and what their weights are made of."""

    scores: np.ndarray  # E, (m, n)
    solved: np.ndarray  # Z (Z^T Z + decay)^-1, which is (Z Z^T + decay)^-1 Z, (m, n)
    decay: float

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
    """Return g for scores of recorded pairs that lack them, shape (n_hidden,) all."""
    precisions = [average_precision(labels, (1 - share) * completed + share * regressed) for share in _SHARES]
    return float(_SHARES[int(np.argmax(precisions))] + _PRIOR) / 2


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
            scores[k] += average_precision(labels, completed.scores.numpy().flat[hidden])
    return float(_WEIGHTS[int(np.argmax(scores))]) if scores.any() else 0.5
