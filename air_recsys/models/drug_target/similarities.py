"""Similarities within a completion, and those that are given for a side."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, DataWarning, quoted
from air_recsys.models.drug_target.completion import affinity, extension_weights

def ids_of(given: Any) -> np.ndarray:
    """Return the ids that a table of similarities names, in its order; none for what has no names."""
    return np.asarray(given.index) if isinstance(given, pd.DataFrame) else np.empty(0, dtype=object)


def check_sides(data: Interactions, drug_similarity: Any, target_similarity: Any, *, is_long: bool) -> None:
    """Raise `DataError` for similarities that are those of the other side, or of no id of the data.

    Warn of such without names beside a table of one pair a row, which may have its ids in another order.
    """
    sides = (("drug", data.users, drug_similarity), ("target", data.items, target_similarity))
    for (kind, own, given), (_, other, _) in zip(sides, reversed(sides), strict=True):
        ids, shape = ids_of(given), getattr(given, "shape", ())
        if given is not None and is_long and not ids.size and own.ids.dtype == object:
            told = f"{kind}_similarity has no names: taken in the order of sorted names, {quoted(own.ids.tolist())}"
            warnings.warn(told, DataWarning, stacklevel=3)
        if isinstance(given, pd.DataFrame):
            is_own, is_other = (bool((index.lookup(ids) >= 0).any()) for index in (own, other))
        else:
            is_own, is_other = (shape[:1] in ((), (len(index),)) for index in (own, other))
        if not is_own and (is_other or ids.size):
            found = f"its index has such as {quoted(ids.tolist()[0])}" if ids.size else f"its shape is {shape}"
            mend = "; are the rows of the pairs targets? Then pass table.T (in the shell --transpose)"
            raise DataError(
                f"expected {kind}_similarity of the {len(own)} {kind}s, such as {quoted(own.ids.tolist()[0])}, but "
                f"{found}{mend if is_other else ''}"
            )


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


WHOLE = 4096  # nodes of the largest graph that keeps all of its edges
_KEPT = 100  # strongest edges of a node of a larger one


def adjacency_of(profiles: np.ndarray, similarity: np.ndarray | None, weight: float) -> np.ndarray | sp.csr_array:
    """Return the affinities of all rows (n, c) without the diagonal, (n, n).

    Of more than 4096 rows an edge stays where it is among the 100 strongest of one of its ends.

    Examples
    --------
    >>> adjacency_of(np.eye(2), None, 0.5).round(3).tolist()
    [[0.0, 0.135], [0.135, 0.0]]
    """
    given = None if similarity is None else torch.from_numpy(similarity)
    dense = affinity(torch.from_numpy(profiles), given, weight).fill_diagonal_(0)
    n = len(dense)
    if n <= WHOLE:
        return dense.numpy()
    weights, places = (part.numpy().ravel() for part in dense.topk(_KEPT, dim=1))
    kept = sp.csr_array((weights, (np.repeat(np.arange(n), _KEPT), places)), shape=(n, n))
    return sp.csr_array(kept.maximum(kept.T))
