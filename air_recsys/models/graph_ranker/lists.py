"""The lists of a `GraphRanker`: candidates by scores in single precision, their order by scores in double precision.

The scores of the factors are exponentials of a product, which single precision finds several times as fast. Its error
is bounded; a user whose list could depend on it is given the scores of all items in double precision. The length that
the factors' scores are divided by is of single precision, too: it is the weight of the term for a user, and scores are
the same to about seven digits, whoever else is asked for. A GPU makes the same lists, of scores as near.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.scorers import BlockScores, WeightedScorers
from air_recsys.models.ranking import ties
from air_recsys.models.ranking.allowed import among
from air_recsys.models.ranking.catalogue import eps_of_single_products
from air_recsys.models.ranking.top_items import hide
from air_recsys.storage.arrays import Array, empty, in_numpy, largest_of_rows, library_of, like, wide
from air_recsys.storage.threads import in_workers

_CACHED_ENTRIES, _MOST_ENTRIES = 2**20, 2**24  # scores of a term that a thread holds
_FEWEST_USERS, _ENOUGH_USERS = 64, 128  # of a block, for products of matrices
_SPARE = 32  # candidates beyond the length of the list
_ERROR = 2e-4  # of single precision, in scores of length 1


class _Buffers(threading.local):
    """Memory of each thread for the scores of a block: new memory for each takes longer than a product."""

    def __init__(self, names: Iterable[str], size: int, n_items: int, other: Array) -> None:
        self._buffers = {name: empty((size, n_items), other, "float32") for name in names}
        self._total = empty((size, n_items), other, "float32")

    def of(self, n_users: int) -> tuple[dict[str, Array], Array]:
        """A buffer for each scorer, and one for their sum."""
        return {name: buffer[:n_users] for name, buffer in self._buffers.items()}, self._total[:n_users]


def best_lists(
    scorers: WeightedScorers,
    users: np.ndarray,
    n: int,
    *,
    seen: Csr | None = None,
    allowed: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The n items with the highest scores of each user, best first, and these scores.

    Ties are those of `air_recsys.models.ranking.ties`: no score is larger than the sum of the weights. On a GPU, where
    the scorers are on one, few lists that single precision does not settle are still made on the CPU.

    `seen`, (b, n_items), stores items to leave out; `allowed` are the at least n items that a list may hold,
    ascending. Places without an item have -1 and -inf.
    """
    items, scores = np.full((users.size, n), -1), np.full((users.size, n), -np.inf)
    if allowed is not None and not allowed.size:
        return items, scores
    if scorers.cold is not None:  # whose scores are sums in double precision
        for start in range(0, users.size, size := max(1, _MOST_ENTRIES // scorers.n_items)):
            block = slice(start, start + size)
            hidden = None if seen is None else seen[block]
            items[block], scores[block] = lists_of(scorers.scores(users[block]), n, scorers.reach, hidden, allowed)
        return items, scores
    on_cpu, place = scorers.device is None, scorers.place()
    size = max(1, _MOST_ENTRIES // scorers.n_items)
    if on_cpu:
        size = max(min(max(_FEWEST_USERS, size), _ENOUGH_USERS), _CACHED_ENTRIES // scorers.n_items)
    buffers = _Buffers(scorers.weights, min(size, users.size), scorers.n_items, place)

    def rank(start: int) -> None:
        block = slice(start, min(start + size, users.size))
        hidden = None if seen is None else seen[block]
        held, total = buffers.of(block.stop - start)
        blocks = {name: scorers.scorers[name].block(users[block], buffer) for name, buffer in held.items()}
        sure, *found = _by_candidates(blocks, scorers.weights, total, n, hidden, allowed)
        items[block], scores[block] = found
        for place in np.flatnonzero(~sure) + start:  # one at a time: they are few
            whole = slice(place, place + 1)
            hidden = None if seen is None else seen[whole]
            items[whole], scores[whole] = lists_of(scorers.scores(users[whole]), n, scorers.reach, hidden, allowed)

    for starts in [range(0, users.size, size)] if on_cpu else [[start] for start in range(0, users.size, size)]:
        in_workers(rank, starts)  # a single item in this thread
    return items, scores


def lists_of(
    scores: np.ndarray, n: int, reach: float, seen: Csr | None, allowed: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """What `best_lists` returns, from scores of all items in double precision, (b, n_items), which it overwrites."""
    places, found = ties.best_of(_left(scores, seen, allowed), n, reach)
    return among(allowed, places), found


def _by_candidates(
    blocks: Mapping[str, BlockScores],
    weights: Mapping[str, float],
    total: Array,
    n: int,
    seen: Csr | None,
    allowed: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whose lists are sure, (b,), and items and scores, (b, n); writes over `total`."""
    _add_up(blocks, weights, total)
    left = _left(total, seen, allowed)
    near, places = largest_of_rows(left, min(n + _SPARE, left.shape[1]))
    items = places if allowed is None else like(places, allowed)[places]
    exact: Any = sum(weight * blocks[name].exact(items) for name, weight in weights.items())
    library, reach = library_of(near), sum(weights.values())
    candidates, lowest = library.where(library.isneginf(near), -np.inf, exact), wide(near[:, -1])
    rounded = 1.0 if library is np else eps_of_single_products() / float(np.finfo(np.float32).eps)
    others = lowest + _ERROR * rounded * reach  # tensor cores may round more
    others = library.full_like(lowest, -np.inf) if near.shape[1] == left.shape[1] else others
    tolerance = ties.tolerance_of(library.full_like(lowest, reach))
    sure, values, found = ties.choose(candidates, items, n, tolerance, others)
    found = library.where(library.isneginf(values), -1, found)
    return in_numpy(sure), in_numpy(found), in_numpy(values)


def _add_up(blocks: Mapping[str, BlockScores], weights: Mapping[str, float], total: Array) -> None:
    """Write the weighted sum of scores into `total`, (b, n_items), in single precision."""
    for number, (name, weight) in enumerate(weights.items()):
        scores, scales = blocks[name].values, empty(blocks[name].lengths.shape, total, "float32")
        scales[:] = weight / blocks[name].lengths
        if number == 0:
            library_of(total).multiply(scores, scales, out=total)
        else:
            total += scores * scales


def _left(scores: Array, seen: Csr | None, allowed: np.ndarray | None) -> Array:
    """The scores of the items allowed, those of items seen at -inf; overwrites `scores`."""
    hide(scores, seen)
    return scores if allowed is None else scores[:, like(scores, allowed)]
