"""Time and memory of `AIR.for_likes` on planted likes by size: the training, and the lists of all users."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import MemoryWatch, run_apart
from air_recsys.metrics.at_k import recall_at_k
from air_recsys.models import AIR
from benchmarks.scale.sweeps import growth_exponent

_GROUPS = 200  # of users and of items
_WITHIN = 0.6  # of the likes of a user that are of its group
_TAIL, _HEAD = 0.8, 10  # popularity of the item at place k: (k + head)^-tail
_TESTED = 5000  # users with hidden likes
_LENGTH = 20
_ASKED = 50_000  # users of one call


class LikesSize(NamedTuple):
    """The sizes of planted likes."""

    n_users: int
    n_items: int
    n_likes: int

    def times(self, share: float) -> LikesSize:
        """Return a share of the users and of the likes, of the same items."""
        return self._replace(n_users=round(self.n_users * share), n_likes=round(self.n_likes * share))


def bench_likes(
    size: LikesSize, shares: Sequence[float], settings: dict[str, Any], *, seed: int = 0, threads: int = 1
) -> tuple[ResultTable, ResultTable]:
    """Train `AIR.for_likes` on shares of the users, each in a process of its own, and make the lists of all of them.

    Parameters
    ----------
    size : LikesSize
        Of a share of 1.
    settings : dict
        Parameters of `AIR.for_likes`.
    seed : int
        Of data and model.

    Returns
    -------
    ResultTable
        A row a share: sizes, seconds of the training and of the lists, memory in GiB with the data alone and at the
        peak, Recall@20 on hidden likes of some users and that of the most popular items, and what was chosen.
    ResultTable
        The exponents of the seconds by the number of likes.
    """
    rows = [
        run_apart(measure_likes, size.times(share), settings, seed, threads=threads)
        for share in tqdm(shares, unit="size", desc="bench scale-likes")
    ]
    given = ", ".join(f"{name}={value}" for name, value in settings.items())
    protocol = (
        f"planted likes of {_GROUPS} groups with long tails, seed {seed}; a fifth of the likes of {_TESTED} users "
        f"hidden; AIR.for_likes({given}), CPU, {threads} thread(s), a process a size; the {_LENGTH} best new items of "
        "all users"
    )
    n_likes = [row["n_likes"] for row in rows]
    exponents = {name: growth_exponent(n_likes, [row[name] for row in rows]) for name in _SECONDS}
    slope = "slope of the logarithm of the seconds over that of the likes, users growing with them; least squares"
    return ResultTable("Likes by size", protocol, rows), ResultTable("Growth with the likes", slope, [exponents])


_SECONDS = ("fit_seconds", "lists_seconds")


def measure_likes(size: LikesSize, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Make the likes, train, make all lists, and return the row of this size."""
    shown, users, hidden = _divided(planted_likes(size, seed), seed)
    data = Interactions.from_csr(shown)
    memory, start = MemoryWatch(), time.perf_counter()
    model = AIR.for_likes(**{"random_state": seed, "device": "cpu"} | settings).fit(data)
    fitted = time.perf_counter()
    lists = np.empty((size.n_users, _LENGTH), dtype=np.int32)
    for begin in tqdm(range(0, size.n_users, _ASKED), unit="block", desc="lists", leave=False):
        asked = data.user_ids[begin : begin + _ASKED]
        lists[begin : begin + _ASKED] = model.recommend(asked, _LENGTH)["item"].to_numpy().reshape(-1, _LENGTH)
    counts = np.bincount(shown.indices, minlength=size.n_items)
    popular = np.argsort(-counts, kind="stable")
    seen = shown[users].toarray() > 0
    by_popularity = np.array([popular[~row[popular]][:_LENGTH] for row in seen])
    return {
        **size._asdict(),
        "n_likes": int(shown.nnz),
        "fit_seconds": fitted - start,
        "lists_seconds": time.perf_counter() - fitted,
        "data_gib": memory.before_gib,
        "peak_gib": memory.peak_gib(),
        "recall_at_20": recall_at_k(lists[users].astype(np.int64), hidden, _LENGTH),
        "popularity": recall_at_k(by_popularity, hidden, _LENGTH),
        "chosen": model.search_line_,
    }


def planted_likes(size: LikesSize, seed: int) -> sp.csr_array:
    """Return likes of users and items in groups, about as many as asked for where few are repeated: those are one.

    Examples
    --------
    >>> likes = planted_likes(LikesSize(300, 400, 6000), 0)
    >>> likes.shape, 3000 < likes.nnz <= 6900, set(likes.data.tolist())
    ((300, 400), True, {1.0})
    """
    rng = np.random.default_rng(seed)
    popularity = (np.arange(size.n_items) + _HEAD) ** -_TAIL
    groups, own = rng.integers(_GROUPS, size=size.n_items), rng.integers(_GROUPS, size=size.n_users)
    users = rng.integers(size.n_users, size=int(1.15 * size.n_likes), dtype=np.int64)
    items = _drawn(popularity, users.size, rng)
    within = np.flatnonzero(rng.random(users.size) < _WITHIN)
    within = within[np.argsort(own[users[within]], kind="stable")]
    starts = np.searchsorted(own[users[within]], np.arange(_GROUPS + 1))
    for group in range(_GROUPS):
        members, places = np.flatnonzero(groups == group), within[starts[group] : starts[group + 1]]
        if members.size:
            items[places] = members[_drawn(popularity[members], places.size, rng)]
    pairs = np.unique(users * size.n_items + items)
    ones = np.ones(pairs.size, dtype=np.float32)
    return sp.csr_array((ones, np.divmod(pairs, size.n_items)), shape=(size.n_users, size.n_items))


def _drawn(shares: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """Return positions drawn with chances that follow shares."""
    ends = np.cumsum(shares / shares.sum())
    return np.minimum(np.searchsorted(ends, rng.random(number)), shares.size - 1)


def _divided(likes: sp.csr_array, seed: int) -> tuple[sp.csr_array, np.ndarray, sp.csr_array]:
    """Return the likes to train on, some users, and their hidden likes, one row each of them."""
    rng = np.random.default_rng(seed)
    able = np.flatnonzero(np.diff(likes.indptr) >= 5)
    users = np.sort(rng.choice(able, min(_TESTED, able.size), replace=False))
    rows = likes[users]
    hide = sp.csr_array((rng.random(rows.nnz) < 0.2, rows.indices, rows.indptr), shape=rows.shape)
    hidden = sp.csr_array(hide.multiply(rows), dtype=np.float32)
    hidden.eliminate_zeros()
    of_all = sp.csr_array(
        (hidden.data, hidden.indices, _ends(users, np.diff(hidden.indptr), likes)), shape=likes.shape
    )
    shown = sp.csr_array(likes - of_all)
    shown.eliminate_zeros()
    return shown, users, hidden


def _ends(users: np.ndarray, sizes: np.ndarray, likes: sp.csr_array) -> np.ndarray:
    """Return the row pointers of a matrix with so many entries in the rows of some users, and none in the others."""
    every = np.zeros(likes.indptr.size, dtype=np.int64)
    every[users + 1] = sizes
    return np.cumsum(every)
