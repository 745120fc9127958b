"""One order of scores everywhere: scores that differ by rounding alone tie, and ties come in the order of the items.

The last bits of a product depend on the processor, on the number of threads and on who else is scored with it. So
exact comparison would order equal items by chance. The rule: of a user's scores, sorted from the highest, neighbours
that differ by at most a tolerance form one tie, however long it grows. Within a tie the item at the lower position
comes first, and all show the tie's highest score, so that lists stay sorted. A list is cut after that.
"""

from __future__ import annotations

import numpy as np

from air_recsys.storage.lazy import functional, torch

TOLERANCE = 2.0**-40  # of the largest score that a user can have: far above rounding in double precision
_STEPS = 8  # looks at all scores for the end of a tie, before they are sorted
_BLOCK_ENTRIES = 2**21  # scores that are ordered at a time


def tolerance_of(reach: torch.Tensor) -> torch.Tensor:
    """The tolerance for users whose scores are at most `reach` in size; 0 where that is infinite or NaN."""
    return torch.where(reach.isfinite(), TOLERANCE * reach, 0.0)


def find_links(scores: torch.Tensor, tolerance: torch.Tensor) -> torch.Tensor:
    """The neighbours that tie in rows sorted from the highest, (b, m - 1); tolerance (b,).

    Examples
    --------
    >>> find_links(torch.tensor([[3.0, 2.9, 2.8, 1.0]]), torch.tensor([0.2]))
    tensor([[ True,  True, False]])
    """
    return ~(scores[:, :-1] - scores[:, 1:] > tolerance[:, None])  # two infinities have no difference, and tie


def end_of_tie(scores: torch.Tensor, links: torch.Tensor, n: int) -> torch.Tensor:
    """The lowest score of the tie that holds the n-th place, (b,), of sorted scores (b, m) and their links."""
    ends = functional.pad(~links[:, n - 1 :], (0, 1), value=True)  # (b, m - n + 1)
    return scores.gather(1, n - 1 + ends.int().argmax(dim=1, keepdim=True))[:, 0]


def settle(scores: torch.Tensor, items: torch.Tensor, links: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sorted scores and their items, (b, m) each, with ties in the order of the items at their highest score.

    Examples
    --------
    >>> scores, items = torch.tensor([[3.0, 2.9, 1.0]]), torch.tensor([[7, 4, 2]])
    >>> settle(scores, items, find_links(scores, torch.tensor([0.2])))
    (tensor([[3., 3., 1.]]), tensor([[4, 7, 2]]))
    """
    tied = links.any(dim=1).nonzero()[:, 0]
    if not len(tied):
        return scores, items
    starts = functional.pad(~links[tied], (1, 0), value=True)
    places = torch.arange(starts.shape[1], device=starts.device)
    first = torch.where(starts, places, 0).cummax(dim=1).values  # where the tie of each place starts
    own = items[tied]
    order = (first * (own.max() + 1) + own).argsort(dim=1)  # by tie, then by position
    scores, items = scores.clone(), items.clone()
    scores[tied], items[tied] = scores[tied].gather(1, first), own.gather(1, order)
    return scores, items


def choose(
    scores: torch.Tensor, items: torch.Tensor, n: int, tolerance: torch.Tensor, others: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
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

    Examples
    --------
    >>> scores, items = torch.tensor([[1.0, 3.0, 2.9]]), torch.tensor([[5, 8, 6]])
    >>> choose(scores, items, 1, torch.tensor([0.2]), torch.tensor([2.8]))
    (tensor([False]), tensor([[3.]]), tensor([[6]]))
    """
    scores, order = scores.sort(dim=1, descending=True)
    links = find_links(scores, tolerance)
    sure = others.isneginf() | (others + tolerance < end_of_tie(scores, links, n))
    values, items = settle(scores, items.gather(1, order), links)
    return sure, values[:, :n], items[:, :n]


def best(scores: torch.Tensor, n: int, tolerance: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The n first scores of each row by the rule and their positions, (b, n) each.

    Examples
    --------
    >>> best(torch.tensor([[1.0, 2.8, 2.9, 3.0]]), 2, torch.tensor([0.2]))
    (tensor([[3., 3.]]), tensor([[1, 2]]))
    """
    values, items = scores.topk(min(n + 1, scores.shape[1]))  # one more shows whether a tie reaches over the end
    if values.shape[1] > n:
        over = (find_links(values[:, n - 1 :], tolerance)[:, 0] & ~values[:, n].isneginf()).nonzero()[:, 0]
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
    tolerance = tolerance_of(torch.from_numpy(np.broadcast_to(np.asarray(reach, dtype=np.float64), n_rows).copy()))
    items, values = np.empty((n_rows, n), dtype=np.int64), np.empty((n_rows, n))
    block = max(1, _BLOCK_ENTRIES // width)
    for start in range(0, n_rows, block):
        rows = slice(start, start + block)
        found = best(torch.from_numpy(np.require(scores[rows], np.float64, "W")), n, tolerance[rows])
        values[rows], items[rows] = found[0].numpy(), found[1].numpy()
    items[np.isneginf(values)] = -1
    return items, values


def _cut(scores: torch.Tensor, top: torch.Tensor, tolerance: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The n places of each row, where a tie reaches over the n-th: all before the tie, and the tie's first items.

    `top` are the n highest scores. The places stand in no order, and the tie shows its highest score.
    """
    n = top.shape[1]
    ties = torch.cumsum(~find_links(top, tolerance), dim=1)  # the number of the tie of each place but the first
    last = (
        (ties[:, -1:] > ties).sum(dim=1, keepdim=True) + (ties[:, -1:] > 0) if n > 1 else ties.new_zeros(len(top), 1)
    )
    head = top.gather(1, last)  # (b, 1)
    floor = _floors(scores, top[:, -1], tolerance, n)[:, None]
    above = scores > head
    equal = ~above & (scores >= floor)
    left = n - above.sum(dim=1, keepdim=True)
    chosen = above | (equal & (equal.cumsum(dim=1, dtype=torch.int32) <= left))  # n in each row
    items = chosen.nonzero()[:, 1].view(-1, n)
    values = torch.where(equal, head, scores).gather(1, items)
    values, order = values.sort(dim=1, descending=True)
    return values, items.gather(1, order)


def _floors(scores: torch.Tensor, low: torch.Tensor, tolerance: torch.Tensor, n: int) -> torch.Tensor:
    """The lower end of the tie that holds a score, (b,)."""
    for _ in range(_STEPS):
        within = scores >= (low - tolerance)[:, None]
        lower = torch.where(within, scores, torch.inf).amin(dim=1)
        if torch.equal(lower, low):
            return low
        low = lower
    ordered = scores.sort(dim=1, descending=True).values
    return end_of_tie(ordered, find_links(ordered, tolerance), n)
