"""Similarities within a completion, and those that are given for a side."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np
import scipy.sparse as sp

from air_recsys.data.described.sides import Described, Given, argument, as_given, ids_of
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, DataWarning, ParameterError, quoted
from air_recsys.models.drug_target.completion import affinity, row_errors
from air_recsys.storage.arrays import largest_of_rows


class Same(TypedDict, total=False):
    """Other names of the similarities of drugs and targets."""

    user_similarity: Any
    item_similarity: Any


Pair = tuple[Described | None, Described | None]  # of drugs and of targets


def by_sides(drug_similarity: Any, target_similarity: Any, same: Same) -> tuple[Given, Given]:
    """Return what is given for drugs, and for targets, by names."""
    found: list[Given] = []
    others: dict[str, Any] = dict(same)
    for side, common, given in (("drug", "user", drug_similarity), ("target", "item", target_similarity)):
        other = others.pop(f"{common}_similarity", None)
        if given is not None and other is not None:
            names = f"{side}_similarity or {common}_similarity"
            raise ParameterError(f"expected {names}, which are the same, found both")
        found.append(as_given(side, other if given is None else given))
    if others:
        raise TypeError(f"unexpected arguments: {', '.join(others)}")
    return found[0], found[1]


def check_sides(data: Interactions, given: tuple[Given, Given], words: tuple[str, str], *, is_long: bool) -> None:
    """Raise `DataError` for descriptions that are those of the other side, or of no id of the data.

    Warn of such without names beside a table of one pair a row, which may have its ids in another order.
    """
    sides = (("drug", words[0], data.users, given[0]), ("target", words[1], data.items, given[1]))
    for (side, word, own, own_given), (_, _, other, _) in zip(sides, reversed(sides), strict=True):
        for key, content in own_given.items():
            ids, shape, name = ids_of({key: content}), getattr(content, "shape", ()), argument(side, key)
            if is_long and not ids.size and own.ids.dtype == object:
                told = f"{name} has no names: taken in the order of sorted names, {quoted(own.ids.tolist())}"
                warnings.warn(told, DataWarning, stacklevel=3)
            if ids.size:
                is_own, is_other = (bool((index.lookup(ids) >= 0).any()) for index in (own, other))
            else:
                is_own, is_other = (shape[:1] in ((), (len(index),)) for index in (own, other))
            if not is_own and (is_other or ids.size):
                found = f"its index has such as {quoted(ids.tolist()[0])}" if ids.size else f"its shape is {shape}"
                mend = "; are the rows of the pairs targets? Then pass table.T (in the shell --transpose)"
                raise DataError(
                    f"expected {name} of the {len(own)} {word}s, such as {quoted(own.ids.tolist()[0])}, but "
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
    dense = affinity(profiles, similarity, weight)
    np.fill_diagonal(dense, 0)
    n = len(dense)
    if n <= WHOLE:
        return dense
    weights, places = (part.ravel() for part in largest_of_rows(dense, _KEPT))
    kept = sp.csr_array((weights, (np.repeat(np.arange(n), _KEPT), places)), shape=(n, n))
    return sp.csr_array(kept.maximum(kept.T))


_MIXES = 40  # that are compared at most
_MOST_ROWS = 1000  # of which they are compared


def learned_shares(kernels: Sequence[np.ndarray], values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Return the share of each similarity (n, n) of rows in their mean, by rows that are left out one by one.

    Each row with interactions is predicted from the others by ridge regression in the mean of the kernels, for mixes
    on a grid. Those whose errors are not surely above the least ones, by one standard error over the rows, are
    averaged, so kernels that say the same have equal shares.

    Parameters
    ----------
    kernels : sequence of ndarray, shape (n, n)
    values, weights : ndarray, shape (n, m)
        What is recorded, 0 where nothing is, and how much it counts.
    """
    known = np.flatnonzero((values * weights).any(axis=1))
    even = np.full(len(kernels), 1 / len(kernels))
    if len(kernels) == 1 or known.size < 3:
        return even
    if known.size > _MOST_ROWS:
        known = np.sort(np.random.RandomState(0).choice(known, _MOST_ROWS, replace=False))
    inner = [each[np.ix_(known, known)] for each in kernels]
    shown = weights[known] > 0
    mixes = _mixes(len(kernels))
    errors = np.array(
        [row_errors(np.tensordot(mix, inner, axes=1), values[known] * shown, shown) for mix in mixes]
    )  # (n_mixes, n_known)
    apart = errors - errors[errors.sum(axis=1).argmin()]
    unsure = apart.mean(axis=1) <= apart.std(axis=1) / np.sqrt(known.size)
    return mixes[unsure].mean(axis=0)


def _mixes(n: int) -> np.ndarray:
    """Shares on a grid, as fine as there are few kernels, (n_mixes, n)."""
    for steps in (4, 3, 2, 1):
        found = [each for each in itertools.product(range(steps + 1), repeat=n) if sum(each) == steps]
        if len(found) <= _MIXES or steps == 1:
            return np.vstack([np.array(found) / steps, np.full(n, 1 / n)])
    raise AssertionError
