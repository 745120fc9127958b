"""The completion of all pairs: of the drugs and targets with known interactions, and of those that are like them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from air_recsys.dti.completion import Completed, complete, contributions
from air_recsys.dti.sides import Sides, Similarities, known_sides, to_all_rows


class Strengths(NamedTuple):
    """The settings of a completion, as in `air_recsys.dti.completion.complete`."""

    similarity_weight: float
    noise: float
    n_rounds: int


class Whole(NamedTuple):
    """The result: scores of all pairs, and what they are made of."""

    scores: np.ndarray  # (n_drugs, n_targets)
    filled: np.ndarray  # (n_drugs, n_targets), in [0, 1] where nothing is recorded
    block: Completed  # of the drugs and targets that take part
    sides: Sides
    rows: np.ndarray  # (n_drugs, n_known_drugs)
    columns: np.ndarray  # (n_targets, n_known_targets)

    def carried(self) -> np.ndarray:
        """Return the values of the block that the scores outside of it are made of."""
        return _carried(self.block)


def complete_all(values: np.ndarray, weights: np.ndarray, similarities: Similarities, strengths: Strengths) -> Whole:
    """Complete the known block first, then add what is similar to it.

    Parameters
    ----------
    values, weights : ndarray, shape (n_drugs, n_targets)
        As in `air_recsys.dti.completion.complete`.
    """
    sides = known_sides(values, similarities)
    block = np.ix_(sides.drugs, sides.targets)
    completed = complete(*sides.block(values, weights), **strengths._asdict())
    carried = _carried(completed)
    evidence = values[block], weights[block] == 1
    rows = to_all_rows(sides.similarities[0], sides.drugs, carried, *evidence)
    columns = to_all_rows(sides.similarities[1], sides.targets, carried.T, *(each.T for each in evidence))
    extended = rows @ carried @ columns.T
    scores, filled = extended.copy(), extended.clip(0, 1)
    scores[block], filled[block] = completed.scores, completed.filled
    return Whole(scores, filled, completed, sides, rows, columns)


def score_parts(whole: Whole, strengths: Strengths, drug: int, target: int) -> np.ndarray:
    """Return what the value of each pair adds to the score of one, (n_drugs, n_targets): the sum is the score."""
    sides = whole.sides
    if sides.drugs[drug] and sides.targets[target]:
        similarities = sides.block(whole.scores, whole.scores)[2]
        place = (int(np.count_nonzero(side[:own])) for side, own in zip(sides[1:], (drug, target), strict=True))
        given = {"similarity_weight": strengths.similarity_weight, "noise": strengths.noise}
        parts = contributions(whole.block.smoothed, similarities, *place, **given)
    else:
        parts = np.outer(whole.rows[drug], whole.columns[target]) * whole.carried()
    added = np.zeros(whole.scores.shape)
    added[np.ix_(sides.drugs, sides.targets)] = parts
    return added


def _carried(block: Completed) -> np.ndarray:
    return (block.scores + block.filled) / 2
