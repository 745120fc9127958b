"""The completion of all pairs: of the drugs and targets with known interactions, and of those that are like them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from air_recsys.dti.completion import Completed, complete, contributions, left_out
from air_recsys.dti.regression import Regressed, chosen_share, regress
from air_recsys.dti.sides import Sides, Similarities, known_sides, to_all_rows


class Strengths(NamedTuple):
    """The settings of a completion, as in `air_recsys.dti.completion.complete`, and the share of the regression."""

    similarity_weight: float
    noise: float
    n_rounds: int
    regression_weight: float


class Whole(NamedTuple):
    """The result: scores of all pairs, and what they are made of."""

    scores: np.ndarray  # (n_drugs, n_targets)
    filled: np.ndarray  # (n_drugs, n_targets), in [0, 1] where nothing is recorded
    known: np.ndarray  # (n_drugs, n_targets), what the regression is of
    regressed: Regressed | None  # where its share is not 0
    block: Completed  # of the drugs and targets that take part
    sides: Sides
    rows: np.ndarray  # (n_drugs, n_known_drugs)
    columns: np.ndarray  # (n_targets, n_known_targets)

    def carried(self) -> np.ndarray:
        """Return the values of the block that the scores outside of it are made of."""
        return _carried(self.block)


def complete_all(values: np.ndarray, weights: np.ndarray, similarities: Similarities, strengths: Strengths) -> Whole:
    """Complete the known block first, add what is similar to it, and mix in the regression.

    Parameters
    ----------
    values, weights : ndarray, shape (n_drugs, n_targets)
        As in `air_recsys.dti.completion.complete`.
    """
    sides, known = known_sides(values, similarities), values * weights
    block = np.ix_(sides.drugs, sides.targets)
    completed = complete(
        *sides.block(values, weights),
        similarity_weight=strengths.similarity_weight,
        noise=strengths.noise,
        n_rounds=strengths.n_rounds,
    )
    carried = _carried(completed)
    evidence = values[block], weights[block] == 1
    rows = to_all_rows(sides.similarities[0], sides.drugs, carried, *evidence)
    columns = to_all_rows(sides.similarities[1], sides.targets, carried.T, *(each.T for each in evidence))
    extended = rows @ carried @ columns.T
    scores, filled = extended.copy(), extended.clip(0, 1)
    scores[block], filled[block] = completed.scores, completed.filled
    whole = Whole(scores, filled, known, None, completed, sides, rows, columns)
    return mixed(whole, strengths.regression_weight)


def mixed(whole: Whole, share: float) -> Whole:
    """Return a completion without a regression with this share of one in its scores."""
    if not share:
        return whole
    regressed = regress(whole.known)
    return whole._replace(scores=(1 - share) * whole.scores + share * regressed.scores, regressed=regressed)


def chosen_regression(whole: Whole, values: np.ndarray, weights: np.ndarray) -> float:
    """Return the share of the regression for a completion without one: see `air_recsys.dti.regression`."""
    inner, shown, _ = whole.sides.block(values, weights)
    recorded = shown > 0
    return chosen_share(left_out(whole.block)[recorded], regress(inner * shown).scores[recorded], inner[recorded])


def score_parts(whole: Whole, share: float, drug: int, target: int) -> np.ndarray:
    """Return what the value of each pair adds to the score of one, (n_drugs, n_targets): the sum is the score.

    The share is that of the regression in the scores.
    """
    sides = whole.sides
    if sides.drugs[drug] and sides.targets[target]:
        place = (int(np.count_nonzero(side[:own])) for side, own in zip(sides[1:], (drug, target), strict=True))
        parts = contributions(whole.block, *place)
    else:
        parts = np.outer(whole.rows[drug], whole.columns[target]) * whole.carried()
    added = np.zeros(whole.scores.shape)
    added[np.ix_(sides.drugs, sides.targets)] = parts
    if whole.regressed is None:
        return added
    return (1 - share) * added + share * whole.regressed.contributions(whole.known, drug, target)


def _carried(block: Completed) -> np.ndarray:
    return (block.scores + block.filled) / 2
