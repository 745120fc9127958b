"""One order of scores everywhere: scores that differ by rounding alone tie, and ties come in the order of the items.

The last bits of a product depend on the processor, on the number of threads and on who else is scored with it. So
exact comparison would order equal items by chance. The rule: of a user's scores, sorted from the highest, neighbours
that differ by at most a tolerance form one tie, however long it grows. Within a tie the item at the lower position
comes first, and all show the tie's highest score, so that lists stay sorted. A list is cut after that.
"""

from __future__ import annotations

import numpy as np

from air_recsys.storage.arrays import (
    Array,
    from_highest,
    largest_of_rows,
    library_of,
    like,
    running_maximum,
    taken,
)

TOLERANCE = 2.0**-40  # of the largest score that a user can have: far above rounding in double precision
_STEPS = 8  # looks at all scores for the end of a tie, before they are sorted
_BLOCK_ENTRIES = 2**21  # scores that are ordered at a time


def tolerance_of(reach: Array) -> Array:
    """The tolerance for users whose scores are at most `reach` in size; 0 where that is infinite or NaN."""
    return (library := library_of(reach)).where(library.isfinite(reach), TOLERANCE * reach, 0.0)


def find_links(scores: Array, tolerance: Array) -> Array:
    """The neighbours that tie in rows sorted from the highest, (b, m - 1); tolerance (b,)."""
    with np.errstate(invalid="ignore"):
        return ~(scores[:, :-1] - scores[:, 1:] > tolerance[:, None])  # two infinities have no difference, and tie


def end_of_tie(scores: Array, links: Array, n: int) -> Array:
    """The lowest score of the tie that holds the n-th place, (b,), of sorted scores (b, m) and their links."""
    ends = library_of(links).concatenate([~links[:, n - 1 :], _true(links)], axis=1)  # (b, m - n + 1)
    return taken(scores, n - 1 + (ends + 0).argmax(axis=1)[:, None])[:, 0]


def settle(scores: Array, items: Array, links: Array) -> tuple[Array, Array]:
    """Sorted scores and their items, (b, m) each, with ties in the order of the items at their highest score."""
    if not links.any():
        return scores, items
    library = library_of(links)
    starts = library.concatenate([_true(links), ~links], axis=1)
    first = running_maximum(library.where(starts, like(starts, np.arange(starts.shape[1])), 0))  # of each tie
    order = (first * (items.max() + 1) + items).argsort(axis=1)  # by tie, then by position
    return taken(scores, first), taken(items, order)


def _true(links: Array) -> Array:
    """A column of True beside links."""
    return like(links, np.ones((len(links), 1), dtype=bool))


def choose(scores: Array, items: Array, n: int, tolerance: Array, others: Array) -> tuple[Array, Array, Array]:
    """The n first candidates of each row by the rule: which rows are sure, (b,), scores and items, (b, n).

    Parameters
    ----------
    scores, items : Tensor, shape (b, m)
        Candidates in any order.
    n : int
        In 1..m.
    tolerance : Tensor, shape (b,)
    others : Tensor, shape (b,)
        A bound of the scores of all items that are no candidates. A row is sure where it does not reach the tie that
        holds the n-th place.
    """
    scores, order = from_highest(scores)
    links = find_links(scores, tolerance)
    sure = library_of(others).isneginf(others) | (others + tolerance < end_of_tie(scores, links, n))
    values, items = settle(scores, taken(items, order), links)
    return sure, values[:, :n], items[:, :n]


def best(scores: Array, n: int, tolerance: Array) -> tuple[Array, Array]:
    """The n first scores of each row by the rule and their positions, (b, n) each."""
    values, items = largest_of_rows(
        scores, min(n + 1, scores.shape[1])
    )  # one more shows whether a tie reaches over the end
    if values.shape[1] > n:
        library = library_of(values)
        over = library.where(find_links(values[:, n - 1 :], tolerance)[:, 0] & ~library.isneginf(values[:, n]))[0]
        values, items = values[:, :n], items[:, :n]
        if len(over):
            values[over], items[over] = _cut(scores[over], values[over], tolerance[over])
    return settle(values, items, find_links(values, tolerance))


def best_of(scores: np.ndarray, n: int, reach: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Positions and scores of the n first by the rule, (b, n) each, of scores in double precision (b, m).

    Scores are not NaN; -inf is for what is left out. `reach`, the size that scores can have, decides what ties. Places
    where nothing is left have -1 and -inf.
    """
    n_rows, width = scores.shape
    tolerance = tolerance_of(np.broadcast_to(np.asarray(reach, dtype=np.float64), n_rows))
    items, values = np.empty((n_rows, n), dtype=np.int64), np.empty((n_rows, n))
    block = max(1, _BLOCK_ENTRIES // width)
    for start in range(0, n_rows, block):
        rows = slice(start, start + block)
        values[rows], items[rows] = best(scores[rows], n, tolerance[rows])
    items[np.isneginf(values)] = -1
    return items, values


def _cut(scores: Array, top: Array, tolerance: Array) -> tuple[Array, Array]:
    """The n places of each row, where a tie reaches over the n-th: all before the tie, and the tie's first items.

    `top` are the n highest scores. The places stand in no order, and the tie shows its highest score.
    """
    n = top.shape[1]
    library = library_of(scores)
    ties = library.cumsum(~find_links(top, tolerance), axis=1)  # the number of the tie of each place but the first
    last = library.zeros_like(top[:, :1], dtype=library.int64)
    if n > 1:
        last = (ties[:, -1:] > ties).sum(axis=1, keepdims=True) + (ties[:, -1:] > 0)
    head = taken(top, last)  # (b, 1)
    floor = _floors(scores, top[:, -1], tolerance, n)[:, None]
    above = scores > head
    equal = ~above & (scores >= floor)
    left = n - above.sum(axis=1, keepdims=True)
    chosen = above | (equal & (equal.cumsum(axis=1, dtype=library.int32) <= left))  # n in each row
    items = library.where(chosen)[1].reshape(-1, n)
    values, order = from_highest(taken(library.where(equal, head, scores), items))
    return values, taken(items, order)


def _floors(scores: Array, low: Array, tolerance: Array, n: int) -> Array:
    """The lower end of the tie that holds a score, (b,)."""
    for _ in range(_STEPS):
        within = scores >= (low - tolerance)[:, None]
        lower = (library := library_of(scores)).amin(library.where(within, scores, np.inf), axis=1)
        if (lower == low).all():
            return low
        low = lower
    ordered = from_highest(scores)[0]
    return end_of_tie(ordered, find_links(ordered, tolerance), n)
