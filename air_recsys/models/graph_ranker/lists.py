"""The lists of a `GraphRanker`: candidates by scores in single precision, their order by scores in double precision.

The scores of the factors are exponentials of a product, which single precision finds several times as fast. Its error
is bounded; a user whose list could depend on it is given the scores of all items in double precision. The length that
the factors' scores are divided by is of single precision, too: it is the weight of the term for a user, and scores are
the same to about seven digits, whoever else is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

import numpy as np
import torch

from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.scorers import BlockScores, WeightedScorers
from air_recsys.models.ranking import ties
from air_recsys.models.ranking.allowed import among
from air_recsys.nn.devices import in_workers

_CACHED_ENTRIES, _MOST_ENTRIES = 2**20, 2**24  # scores of a term that a thread holds
_FEWEST_USERS, _ENOUGH_USERS = 64, 128  # of a block, for products of matrices
_GROUP = 16  # columns whose maximum is taken first
_SPARE = 32  # candidates beyond the length of the list
_ERROR = 2e-4  # of single precision, in scores of length 1


class _Buffers(threading.local):
    """Memory of each thread for the scores of a block: new memory for each takes longer than a product."""

    def __init__(self, names: Iterable[str], size: int, n_items: int) -> None:
        self._buffers = {name: np.empty((size, n_items), dtype=np.float32) for name in names}
        self._total = np.empty((size, n_items), dtype=np.float32)

    def of(self, n_users: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
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

    Ties are those of `air_recsys.models.ranking.ties`: no score is larger than the sum of the weights.

    `seen`, (b, n_items), stores items to leave out; `allowed` are the at least n items that a list may hold,
    ascending. Places without an item have -1 and -inf.
    """
    items, scores = np.full((users.size, n), -1), np.full((users.size, n), -np.inf)
    if allowed is not None and not allowed.size:
        return items, scores
    size = _users_of_block(scorers.n_items)
    buffers = _Buffers(scorers.weights, min(size, users.size), scorers.n_items)

    def rank(start: int) -> None:
        block = slice(start, min(start + size, users.size))
        hidden = None if seen is None else seen[block]
        held, total = buffers.of(block.stop - start)
        blocks = {name: scorers.scorers[name].block(users[block], buffer) for name, buffer in held.items()}
        sure, *found = _by_candidates(blocks, scorers.weights, total, n, hidden, allowed)
        items[block], scores[block] = found
        for place in np.flatnonzero(~sure) + start:  # one at a time: they are few
            whole = slice(place, place + 1)
            every = _left(scorers.scores(users[whole]), None if seen is None else seen[whole], allowed)
            places, scores[whole] = ties.best_of(every, n, scorers.reach)
            items[whole] = among(allowed, places)

    in_workers(rank, range(0, users.size, size))
    return items, scores


def _users_of_block(n_items: int) -> int:
    within = min(max(_FEWEST_USERS, _MOST_ENTRIES // n_items), _ENOUGH_USERS)
    return max(within, _CACHED_ENTRIES // n_items)


def _by_candidates(
    blocks: Mapping[str, BlockScores],
    weights: Mapping[str, float],
    total: np.ndarray,
    n: int,
    seen: Csr | None,
    allowed: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whose lists are sure, (b,), and items and scores, (b, n); writes over `total`."""
    _add_up(blocks, weights, total)
    left = _left(total, seen, allowed)
    near, places = largest_of_rows(torch.from_numpy(left), min(n + _SPARE, left.shape[1]))
    items, reach = among(allowed, places.numpy()), sum(weights.values())
    exact = sum(weight * blocks[name].exact(items) for name, weight in weights.items())
    candidates = torch.from_numpy(np.where(near.isneginf().numpy(), -np.inf, exact))
    lowest = near[:, -1].double()
    others = torch.full_like(lowest, -torch.inf) if near.shape[1] == left.shape[1] else lowest + _ERROR * reach
    tolerance = ties.tolerance_of(torch.full_like(lowest, reach))
    sure, values, found = ties.choose(candidates, torch.from_numpy(items), n, tolerance, others)
    return sure.numpy(), torch.where(values.isneginf(), -1, found).numpy(), values.numpy()


def largest_of_rows(scores: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k largest of each row and their columns, (b, k) each, in descending order.

    In long rows they are among the columns of the k groups with the largest maxima: most columns are read once.
    """
    n_groups = scores.shape[1] // _GROUP
    if n_groups < 2 * k:
        found = scores.topk(k)
        return found.values, found.indices
    whole = n_groups * _GROUP
    groups = scores[:, :whole].view(len(scores), _GROUP, n_groups).amax(dim=1).topk(k).indices  # (b, k)
    columns = groups[:, None] + n_groups * torch.arange(_GROUP)[:, None]  # (b, _GROUP, k)
    rest = torch.arange(whole, scores.shape[1]).expand(len(scores), -1)
    columns = torch.cat([columns.flatten(1), rest], dim=1)
    found = scores.gather(1, columns).topk(k)
    return found.values, columns.gather(1, found.indices)


def _add_up(blocks: Mapping[str, BlockScores], weights: Mapping[str, float], total: np.ndarray) -> None:
    """Write the weighted sum of scores into `total`, (b, n_items), in single precision."""
    for number, (name, weight) in enumerate(weights.items()):
        scales = (weight / blocks[name].lengths).astype(np.float32)
        if number == 0:
            np.multiply(blocks[name].values, scales, out=total, casting="same_kind")
        else:
            torch.from_numpy(total).addcmul_(*(torch.from_numpy(each) for each in (blocks[name].values, scales)))


def _left(scores: np.ndarray, seen: Csr | None, allowed: np.ndarray | None) -> np.ndarray:
    """The scores of the items allowed, those of items seen at -inf; overwrites `scores`."""
    if seen is not None:
        scores[seen.nonzero()] = -np.inf
    return scores if allowed is None else scores[:, allowed]
