"""WkNNIR against its program, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest

from air_recsys.exceptions import DataError
from benchmarks.accuracy.peers.wknnir import _predicted, wknnir_scores

SIZE, DECAY = 3, 0.7


def case(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    pairs = (rng.random((12, 9)) < 0.3).astype(float)
    similarities = [(each + each.T) / 2 for each in (rng.random((12, 12)), rng.random((9, 9)))]
    for each in similarities:
        np.fill_diagonal(each, 1)
    return pairs, *similarities


def nearest(row: np.ndarray) -> np.ndarray:
    return np.argsort(-row, kind="stable")[:SIZE]


def recovered(rows: np.ndarray, similarity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the program computes of one side, and the imbalance of each interaction."""
    similarity = similarity - np.diag(np.diag(similarity))
    lacks = np.zeros(rows.shape)
    for i, row in enumerate(rows):
        lacks[i] = np.where(row == 1, (SIZE - rows[nearest(similarity[i])].sum(axis=0)) / SIZE, 0)
    found = np.zeros(rows.shape)
    for i in range(len(rows)):
        near = nearest(similarity[i])
        weights = DECAY ** np.arange(SIZE) * similarity[i, near]
        counts = rows[near].sum(axis=0)
        counts[counts == 0] = 1
        found[i] = weights @ rows[near] / similarity[i, near].sum() * np.exp(-lacks[near].sum(axis=0) / counts)
    return found, lacks


@pytest.mark.parametrize("hides", ["drugs", "targets", "both"])
def test_scores_are_those_of_the_program(hides: str) -> None:
    pairs, drugs, targets = case()
    new = np.zeros(12, dtype=bool), np.zeros(9, dtype=bool)
    new[0][[1, 5]], new[1][[0, 7]] = hides != "targets", hides != "drugs"
    known = ~new[0], ~new[1]
    shown = pairs[np.ix_(*known)]
    by_drugs, lack_drugs = recovered(shown, drugs[np.ix_(known[0], known[0])])
    by_targets, lack_targets = recovered(shown.T, targets[np.ix_(known[1], known[1])])
    rows = np.maximum(shown, (by_drugs + by_targets.T) / 2)
    found = _predicted(pairs, new, (drugs, targets), SIZE, DECAY)
    for d, t in np.argwhere(new[0][:, None] & new[1] if hides == "both" else new[0][:, None] | new[1]):
        near = nearest(drugs[d, known[0]]), nearest(targets[t, known[1]])
        alike = drugs[d, known[0]][near[0]], targets[t, known[1]][near[1]]
        faded = DECAY ** np.arange(SIZE)
        if hides == "drugs":
            place = int(known[1][:t].sum())
            expected = faded * alike[0] @ rows[near[0], place] / alike[0].sum()
        elif hides == "targets":
            place = int(known[0][:d].sum())
            expected = faded * alike[1] @ rows[place, near[1]] / alike[1].sum()
        else:
            block = np.ix_(*near)
            ratio = lack_drugs[block].sum() / lack_targets.T[block].sum()
            first, second = alike[0] ** min(ratio, 1), alike[1] ** min(1 / ratio, 1)
            weights = np.outer(first, second)
            expected = (weights * np.outer(faded, faded) * rows[block]).sum() / weights.sum()
        assert found[d, t] == pytest.approx(expected)


def test_a_new_side_is_needed_and_its_settings_are_chosen_inside() -> None:
    pairs, drugs, targets = case()
    with pytest.raises(DataError, match="without any value"):
        wknnir_scores(pairs, drugs, targets)
    pairs[3] = np.nan
    scores = wknnir_scores(pairs, drugs, targets)
    assert scores[3].any()
    assert not np.delete(scores, 3, axis=0).any()
