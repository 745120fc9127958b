"""Which drugs and targets take part in a completion, and how the others are added to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from air_recsys.dti.extension import extension_weights

Similarities = tuple[np.ndarray | None, np.ndarray | None]  # of drugs and of targets


class Sides(NamedTuple):
    """Similarities, and which drugs and targets take part in the completion, the rest being added afterwards."""

    similarities: Similarities
    drugs: np.ndarray  # bool, (n_drugs,)
    targets: np.ndarray  # bool, (n_targets,)

    def block(self, values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, Similarities]:
        """Return values, weights and similarities of what takes part."""
        drugs, targets = self.similarities
        inner = np.ix_(self.drugs, self.targets)
        within = (
            None if drugs is None else drugs[np.ix_(self.drugs, self.drugs)],
            None if targets is None else targets[np.ix_(self.targets, self.targets)],
        )
        return values[inner], weights[inner], within


def known_sides(values: np.ndarray, similarities: Similarities) -> Sides:
    """Leave out of the completion what has no interaction, where a similarity brings it back.

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
    """Return what maps the rows of the block to all rows, (n, n_known): the known ones are themselves."""
    weights = np.zeros((known.size, len(rows)))
    weights[known] = np.eye(len(rows))
    if similarity is not None and not known.all():
        weights[~known] = extension_weights(similarity, known, rows, labels, recorded)
    return weights
