"""What a `GraphRanker` hides of its training data in order to choose: random parts, the latest ones, or rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.data.splits.base import numbers_held_out, rank_within
from air_recsys.metrics.checks import Csr

_SHARE = 0.2
_LEANS = {"alike": 0.0, "popular_first": 0.5, "rare_first": -0.5}  # power of the counts in the chance to be hidden
_WINDOWS = 3  # fifths in time that are hidden
_HELD_OUT = 0.1  # share of the rows
_FEWEST = 10  # rows with hidden entries; fewer tell nothing
VALIDATIONS = ("auto", "random", "users", "last", "time")


class HiddenPart(NamedTuple):
    """A part of the training data that is hidden, and what is left."""

    name: str
    shown: Csr  # to train on
    hidden: Csr
    times: Csr | None = None  # of what is left
    given: Csr | None = None  # what is left of the rows of `hidden`, where these are not among the rows to train on

    @property
    def left(self) -> Csr:
        """What is left of the rows of `hidden`."""
        return self.shown if self.given is None else self.given

    @property
    def of_times(self) -> tuple[str, ...]:
        """The settings that read times and can be chosen here."""
        if self.times is None:
            return ()
        return ("item_trend", "user_half_life") if self.name == "last" else ("item_trend",)


def hidden_parts(pattern: Csr, times: Csr | None, validation: str, seed: int) -> list[HiddenPart]:
    """Return the hidden parts that settings are compared on.

    A random part shows the quality of lists if the future is like the past. Most often popularity changes, and no part
    of the past shows in which direction. Therefore a fifth of each row is hidden in three ways: alike, popular first
    and rare first. With times, the latest fifth of each row is hidden, or each of the latest three fifths of all, of
    which what is earlier is left. Rows held out show the quality of lists of rows that are folded in: a tenth of them
    takes no part in the training, and a fifth of each of these is hidden in the three ways.

    Parameters
    ----------
    pattern : csr_array, shape (m, n)
    times : csr_array, shape (m, n), optional
        Of the entries of the pattern.
    validation : {"auto", "random", "users", "last", "time"}
        "users" holds out rows, "last" hides the latest fifth of each row, "time" the latest fifths of all, and "auto"
        is "time". Parts are hidden at random if there are no times, or if fewer than ten rows have hidden entries.
    seed : int
        Of what is random; interactions of the same time are hidden at random.

    Examples
    --------
    >>> pattern = sp.csr_array(np.ones((2, 5), dtype=np.float32))
    >>> [part.name for part in hidden_parts(pattern, None, "auto", 0)]
    ['alike', 'popular_first', 'rare_first']
    """
    parts: list[HiddenPart] = []
    if validation == "users":
        parts = _rows_held_out(pattern, seed)
    elif validation == "last" and times is not None:
        parts = [latest_of_rows(pattern, times, seed)]
    elif validation != "random" and times is not None:
        parts = [latest_of_all(pattern, times, seed, number) for number in range(_WINDOWS)]
    told = [part for part in parts if np.count_nonzero(np.diff(part.hidden.indptr)) >= _FEWEST]
    return told or _random_parts(pattern, seed)


def _random_parts(pattern: Csr, seed: int) -> list[HiddenPart]:
    return [HiddenPart(name, *hide_leaning(pattern, lean, seed)) for name, lean in _LEANS.items()]


def _rows_held_out(pattern: Csr, seed: int) -> list[HiddenPart]:
    order = np.random.default_rng(seed).permutation(pattern.shape[0])
    size = round(_HELD_OUT * pattern.shape[0])
    held_out, others = np.sort(order[:size]), np.sort(order[size:])
    return [
        HiddenPart(f"users_{part.name}", pattern[others], part.hidden[held_out], given=part.shown[held_out])
        for part in _random_parts(pattern, seed)
    ]


def hide_leaning(pattern: Csr, lean: float, seed: int) -> tuple[Csr, Csr]:
    """Return what is left and a hidden fifth of every row, drawn with chances that follow the counts of the columns.

    Parameters
    ----------
    pattern : csr_array, shape (m, n)
    lean : float
        The chance of an entry is proportional to (number of entries in its column)^lean: 0 for all alike, above 0 for
        columns of many entries before those of few.
    seed : int

    Returns
    -------
    shown, hidden : csr_array, shape (m, n)
        A fifth of each row, rounded, is hidden, but never all of it.

    Examples
    --------
    >>> shown, hidden = hide_leaning(sp.csr_array(np.ones((2, 5), dtype=np.float32)), 0, 0)
    >>> shown.sum(axis=1).tolist(), hidden.sum(axis=1).tolist()
    ([4.0, 4.0], [1.0, 1.0])
    """
    popularity = np.bincount(pattern.indices, minlength=pattern.shape[1])[pattern.indices]
    waits = np.random.default_rng(seed).exponential(size=pattern.nnz) / popularity**lean  # the shortest are drawn
    hide = _fifth_of_rows(pattern, np.lexsort((waits, _rows(pattern))))
    return _kept(pattern, ~hide), _kept(pattern, hide)


def latest_of_rows(pattern: Csr, times: Csr, seed: int) -> HiddenPart:
    """Return the latest fifth of every row as the hidden part, of columns that occur in what is left.

    Examples
    --------
    >>> times = sp.csr_array(np.array([[1, 2, 3], [3, 2, 1], [1, 1, 1]]))
    >>> latest_of_rows(times > 0, times, 0).hidden.toarray()[:2].astype(int)
    array([[0, 0, 1],
           [1, 0, 0]])
    """
    order = np.lexsort((_draws(pattern, seed), -times.data, _rows(pattern)))
    hide = _fifth_of_rows(pattern, order)
    return _known_alone("last", pattern, times, ~hide, hide)


def latest_of_all(pattern: Csr, times: Csr, seed: int, number: int = 0) -> HiddenPart:
    """Return a fifth of all as the hidden part, of rows and columns that occur in what is left: all that is earlier.

    Parameters
    ----------
    pattern, times : csr_array, shape (m, n)
    seed : int
    number : int
        0: the latest fifth; 1: the one before it, and so on. What is later takes no part.

    Examples
    --------
    >>> times = sp.csr_array(np.array([[1, 2, 5], [2, 1, 1], [9, 0, 0]]))
    >>> latest_of_all(times > 0, times, 0).hidden.toarray().astype(int)  # the third row does not occur before
    array([[0, 0, 1],
           [0, 0, 0],
           [0, 0, 0]])
    """
    size, from_last = int(np.ceil(_SHARE * pattern.nnz)), np.empty(pattern.nnz, dtype=np.int64)
    from_last[np.lexsort((_draws(pattern, seed), -times.data))] = np.arange(pattern.nnz)
    fifth = from_last // size
    return _known_alone(f"time_{number + 1}", pattern, times, fifth > number, fifth == number)


def _known_alone(name: str, pattern: Csr, times: Csr, show: np.ndarray, hide: np.ndarray) -> HiddenPart:
    shown, rows = _kept(pattern, show), _rows(pattern)
    in_column = np.bincount(shown.indices, minlength=pattern.shape[1]) > 0
    known = (np.diff(shown.indptr) > 0)[rows] & in_column[pattern.indices]
    return HiddenPart(name, shown, _kept(pattern, hide & known), _kept(times, show))


def _fifth_of_rows(pattern: Csr, order: np.ndarray) -> np.ndarray:
    """Return a mask of the first fifth of each row, rounded and never all of it, by an order that sorts by rows."""
    rows = _rows(pattern)
    return rank_within(rows, order) < numbers_held_out("share", _SHARE, np.diff(pattern.indptr))[rows]


def _draws(pattern: Csr, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(pattern.nnz)


def _rows(pattern: Csr) -> np.ndarray:
    return np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))


def _kept(matrix: Csr, mask: np.ndarray) -> Csr:
    return sp.csr_array((matrix.data[mask], (_rows(matrix)[mask], matrix.indices[mask])), shape=matrix.shape)
