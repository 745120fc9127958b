"""The check of the similarities of drugs and targets that `DrugTargetAIR` takes."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch

from air_recsys.data.columns import as_float
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, DataWarning, quoted
from air_recsys.models.drug_target.completion import affinity, extension_weights

_EVEN = 1e-6  # of the two values of a pair: rounding
_UNEVEN = 0.1  # more is no similarity
_SHOWN = 3


def as_similarity(name: str, given: Any, ids: np.ndarray, stacklevel: int = 2) -> np.ndarray | None:
    """Return a similarity in the order of `ids`, symmetric and with unit diagonal; None stays None.

    Parameters
    ----------
    name : str
        For messages.
    given : DataFrame with ids as index and columns, or ndarray in the order of `ids`, shape (n, n)
        In [0, 1], nothing more similar to a row than itself. Of two values that differ by 0.1 at most the mean is
        taken.
    ids : ndarray, shape (n,)

    Warns
    -----
    DataWarning
        Of a matrix that is a little off symmetry.
    """
    if given is None:
        return None
    if isinstance(given, pd.DataFrame):
        _check_aligned(name, given, ids, ids)
        given = given.loc[ids, ids]
    if sp.issparse(given):
        raise DataError(f"expected {name} as a DataFrame or an array, found a {type(given).__name__}")
    given = as_float(given, name)
    near = given.clip(0, 1)  # of values that rounding has put a little outside
    matrix = np.where(np.abs(given - near) <= _EVEN, near, given)
    if matrix.shape != (len(ids), len(ids)):
        raise DataError(f"expected {name} of shape {(len(ids), len(ids))}, found {matrix.shape}")
    _check_scale(name, matrix)
    _check_own(name, matrix, ids)
    _check_symmetry(name, matrix, ids, stacklevel + 1)
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, 1)
    return matrix


def with_new(name: str, known: np.ndarray | None, given: Any, ids: np.ndarray, n_known: int) -> np.ndarray | None:
    """Return the similarity of all ids, of which the last are new: the known one, with their rows of a table.

    Without a table they are like none, and without columns of new ids these are unlike each other.
    """
    new = ids[n_known:]
    if given is not None and known is None:
        raise DataError(f"expected no {name}, as the model was trained without one, found one")
    if known is None or not new.size:
        return known
    given = pd.DataFrame(0.0, new, ids) if given is None else given
    if not isinstance(given, pd.DataFrame):
        raise DataError(f"expected {name} of new and known ids as a DataFrame, found a {type(given).__name__}")
    _check_aligned(name, given, new, ids[:n_known])
    absent = dict.fromkeys((id for id in new.tolist() if id not in given.columns), 0.0)
    rows = as_float(given.loc[new].reindex(columns=ids).fillna(absent), name)
    whole = np.block([[known, rows[:, :n_known].T], [rows]])
    np.fill_diagonal(whole, 1)
    return as_similarity(name, whole, ids)


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


def _check_aligned(name: str, table: pd.DataFrame, rows: np.ndarray, columns: np.ndarray) -> None:
    for axis, labels, ids in (("rows", table.index, rows), ("columns", table.columns, columns)):
        twice = labels[labels.duplicated()].unique()
        if len(twice):
            raise DataError(
                f"expected {name} with each id once in its {axis}, found again: {quoted(list(twice[:_SHOWN]))}"
            )
        lacking = [id for id in ids.tolist() if id not in labels]
        if lacking:
            shown = ", ".join(with_nearest(id, labels.tolist()) for id in lacking[:_SHOWN])
            more = "" if len(lacking) <= _SHOWN else ", ..."
            raise DataError(
                f"expected {name} with the {len(ids)} ids among its {axis}, found {len(lacking)} of them without one: "
                f"{shown}{more}"
            )


def with_nearest(id: Any, labels: Sequence[Any]) -> str:
    """Return an id as text, with the nearest of some labels if one is near."""
    names = {str(label).casefold(): label for label in labels}
    close = difflib.get_close_matches(str(id).casefold(), names, n=1)
    return f"{id!r}" + (f" (the nearest is {names[close[0]]!r})" if close else "")


def _check_scale(name: str, matrix: np.ndarray) -> None:
    outside = matrix[~((matrix >= 0) & (matrix <= 1))]  # NaN too
    if not outside.size:
        return
    largest = matrix.max()
    by_scale = f": on a scale of 0..{largest:g}, divide by {largest:g}" if largest > 1 and matrix.min() >= 0 else ""
    raise DataError(f"expected {name} in [0, 1], found {outside[0]:g}{by_scale}")


def _check_own(name: str, matrix: np.ndarray, ids: np.ndarray) -> None:
    """Refuse distances: nothing is more similar to a row than itself."""
    own, others = np.diag(matrix), matrix - np.diag(np.diag(matrix))
    if len(ids) > 1 and not own.any() and others.any():
        raise DataError(
            f"expected {name} of 1 between an id and itself, found 0 everywhere, as distances have it: take "
            "1 - distance, or exp(-distance); if they are similarities, fill the diagonal with 1"
        )
    over = np.flatnonzero(others.max(axis=1, initial=0) > own + _EVEN)
    if over.size:
        row = over[0]
        nearest = int(others[row].argmax())
        raise DataError(
            f"expected {name} largest between an id and itself, found {own[row]:g} for {ids[row]!r} and "
            f"{others[row, nearest]:g} between it and {ids[nearest]!r}"
        )


def _check_symmetry(name: str, matrix: np.ndarray, ids: np.ndarray, stacklevel: int) -> None:
    apart = np.abs(matrix - matrix.T)
    if apart.max(initial=0) <= _EVEN:
        return
    first, second = np.unravel_index(int(apart.argmax()), apart.shape)
    found = (
        f"{matrix[first, second]:g} from {ids[first]!r} to {ids[second]!r} and {matrix[second, first]:g} the other way"
    )
    if apart.max() > _UNEVEN:
        raise DataError(f"expected a symmetric {name}, found {found}")
    warnings.warn(
        f"{name} is a little off symmetry, {found}: the mean of both is taken", DataWarning, stacklevel=stacklevel
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
