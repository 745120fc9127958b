"""The completion of all pairs: of the drugs and targets with known interactions, and of those that are like them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from air_recsys.models.drug_target.completion import Completed, complete, contributions, left_out
from air_recsys.models.drug_target.regression import Regressed, chosen_share, regress
from air_recsys.models.drug_target.sides import AllRows, Sides, Similarities, known_sides, to_all_rows

_COMPARED = 2**22  # recorded pairs, of which more say nothing new


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
    block: Completed  # of the drugs and targets that take part
    sides: Sides
    rows: AllRows  # the drugs
    columns: AllRows  # the targets

    def carried(self) -> np.ndarray:
        """Return the values of the block that the scores outside of it are made of."""
        return _carried(self.block)


def complete_all(values: np.ndarray, weights: np.ndarray, similarities: Similarities, strengths: Strengths) -> Whole:
    """Complete the known block first, add what is similar to it, and mix in the regression.

    Parameters
    ----------
    values, weights : ndarray, shape (n_drugs, n_targets)
        As in `air_recsys.models.drug_target.completion.complete`.
    """
    sides, known = known_sides(values, similarities), values * weights
    inner, shown, given = sides.block(values, weights)
    completed = complete(
        inner,
        shown,
        given,
        similarity_weight=strengths.similarity_weight,
        noise=strengths.noise,
        n_rounds=strengths.n_rounds,
        device=strengths.device,
    )
    carried, recorded = _carried(completed), shown == 1
    rows = to_all_rows(similarities[0], sides.drugs, carried, inner, recorded)
    columns = to_all_rows(similarities[1], sides.targets, carried.T, inner.T, recorded.T)
    scores, filled = completed.scores.numpy(), completed.filled.numpy()
    if not sides.complete():
        extended, block = rows.of(columns.of(carried.T).T), np.ix_(sides.drugs, sides.targets)
        whole_scores, whole_filled = extended, extended.clip(0, 1)
        whole_scores[block], whole_filled[block] = scores, filled
        scores, filled = whole_scores, whole_filled
    whole = Whole(scores, filled, known, None, completed, sides, rows, columns)
    return mixed(whole, regress(known), strengths.regression_weight) if strengths.regression_weight else whole


def mixed(whole: Whole, regressed: Regressed, share: float) -> Whole:
    """Return a completion without a regression with this share of one in its scores."""
    return whole._replace(scores=(1 - share) * whole.scores + share * regressed.scores, regressed=regressed)


def chosen_regression(whole: Whole, regressed: Regressed, values: np.ndarray, weights: np.ndarray) -> float:
    """The share of the regression for a completion without one, see `models.drug_target.regression`."""
    sides = whole.sides
    recorded = np.flatnonzero(sides.block(values, weights)[1])
    if recorded.size > _COMPARED:
        recorded = np.random.RandomState(0).choice(recorded, _COMPARED, replace=False)
    within = (sides.block(each, weights)[0].flat[recorded] for each in (regressed.scores, values))
    return chosen_share(left_out(whole.block).flat[recorded], *within)


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
    if whole.regressed is None:
        return added
    return (1 - share) * added + share * whole.regressed.contributions(whole.known, drug, target)


def _carried(block: Completed) -> np.ndarray:
    return ((block.scores + block.filled) / 2).numpy()
