"""The drugs and targets that take part in a completion, and the weights that add the others to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from air_recsys.dti.extension import extension_weights

Similarities = tuple[np.ndarray | None, np.ndarray | None]  # of drugs and of targets


class Sides(NamedTuple):
    """Similarities, and the drugs and targets that take part in the completion."""

    similarities: Similarities
    drugs: np.ndarray  # bool, (n_drugs,)
    targets: np.ndarray  # bool, (n_targets,)

    def block(self, values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, Similarities]:
        """Return values, weights and similarities of the drugs and targets that take part."""
        inner = np.ix_(self.drugs, self.targets)
        drugs, targets = (
            None if similarity is None else similarity[np.ix_(side, side)]
            for similarity, side in zip(self.similarities, self[1:], strict=True)
        )
        return values[inner], weights[inner], (drugs, targets)


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
) -> np.ndarray:
    """Return the weights that map the rows of the block to all rows, (n, n_known): 1 for a known row and itself."""
    weights = np.zeros((known.size, len(rows)))
    weights[known] = np.eye(len(rows))
    if similarity is not None and not known.all():
        weights[~known] = extension_weights(similarity, known, rows, labels, recorded)
    return weights


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
