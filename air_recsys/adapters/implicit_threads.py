"""implicit's `num_threads` for torch: training, and rankings by several threads at once."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
import torch

from air_recsys.models.ranking.top_items import top_items
from air_recsys.nn.devices import torch_threads

_USERS_AT_A_TIME = 512


def best_items(
    users: np.ndarray, items: np.ndarray, offsets: np.ndarray, n: int, seen: sp.csr_matrix | None, n_threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lists of `air_recsys.models.ranking.top_items.top_items`, by `n_threads` threads (0: one a core).

    Each thread ranks its own users and waits for no other, which is faster than several threads for the same users,
    and much faster on a busy machine.
    """

    def ranked(start: int) -> tuple[np.ndarray, np.ndarray]:
        rows = slice(start, start + _USERS_AT_A_TIME)
        return top_items(users[rows], items, offsets, n, seen=None if seen is None else seen[rows])

    workers = n_threads or os.cpu_count() or 1
    # The number of threads that a worker sets becomes torch's default for later threads: the context restores it.
    with torch_threads(0), ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        lists = list(pool.map(ranked, range(0, len(users), _USERS_AT_A_TIME)))
    ids, scores = (np.concatenate(column) for column in zip(*lists, strict=True))
    return ids.astype(np.int32), scores  # the type of implicit's ids
