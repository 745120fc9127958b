"""The drugs and targets that take part in a completion, and the weights that add the others to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from air_recsys.models.drug_target.extension import extension_weights

Similarities = tuple[np.ndarray | None, np.ndarray | None]  # of drugs and of targets


class Sides(NamedTuple):
    """Similarities, and the drugs and targets that take part in the completion."""

    similarities: Similarities
    drugs: np.ndarray  # bool, (n_drugs,)
    targets: np.ndarray  # bool, (n_targets,)

    def block(self, values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, Similarities]:
        """Return values, weights and similarities of the drugs and targets that take part."""
        if self.complete():
            return values, weights, self.similarities
        inner = np.ix_(self.drugs, self.targets)
        drugs, targets = (
            None if similarity is None else similarity[np.ix_(side, side)]
            for similarity, side in zip(self.similarities, self[1:], strict=True)
        )
        return values[inner], weights[inner], (drugs, targets)

    def complete(self) -> bool:
        """Return whether all drugs and targets take part."""
        return bool(self.drugs.all() and self.targets.all())


class AllRows(NamedTuple):
    """All rows of a side: those of the block, and those that are weighted sums of them."""

    known: np.ndarray  # bool, (n,)
    weights: np.ndarray  # of the others, (n_unknown, n_known)

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Return all rows, (n, c), of those of the block, (n_known, c)."""
        found = np.empty((self.known.size, rows.shape[1]), dtype=rows.dtype)
        found[self.known], found[~self.known] = rows, self.weights @ rows
        return found

    def of_one(self, row: int) -> np.ndarray:
        """Return the weights of one row, (n_known,): 1 for a known row and itself."""
        before = int(np.count_nonzero(self.known[:row]))
        return np.eye(1, self.weights.shape[1], before)[0] if self.known[row] else self.weights[row - before]


def known_sides(values: np.ndarray, similarities: Similarities) -> Sides:
    """Return the sides without drugs and targets that have no interaction but a similarity to be predicted from.

    Examples
    --------
    >>> values = np.array([[1, 0], [0, 0]])
    >>> known_sides(values, (np.eye(2), None))[1:]
    (array([ True, False]), array([ True,  True]))
    """
    drugs, targets = (
        np.ones(len(rows), dtype=bool) if similarity is None else np.asarray(rows.any(axis=1))
        for rows, similarity in zip((values, values.T), similarities, strict=True)
    )
    return Sides(similarities, drugs, targets)


def to_all_rows(
    similarity: np.ndarray | None, known: np.ndarray, rows: np.ndarray, labels: np.ndarray, recorded: np.ndarray
) -> AllRows:
    """Return how all rows follow from those of the block, (n_known, n_columns), as `extension_weights` has them."""
    if similarity is None or known.all():
        return AllRows(known, np.zeros((0, len(rows)), dtype=rows.dtype))
    return AllRows(known, extension_weights(similarity, known, rows, labels, recorded))


def without(weights: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Return the weights of records without some of them, by flat positions; the shape stays.

    Examples
    --------
    >>> without(np.ones((2, 2)), np.array([1, 2])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    shown = weights.copy()
    shown.flat[hidden] = 0
    return shown
