"""Implicit feedback in the layout of NGCF and LightGCN: one line per user, ids separated by blanks."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.data.readers.lines import build_interactions, malformed, read_lines
from air_recsys.data.sets.registry import find_file
from air_recsys.data.splits.base import rank_within
from air_recsys.exceptions import DataFileError
from air_recsys.storage.validation import check_choice

ListName = Literal["gowalla", "yelp2018"]


def load_implicit_lists(root: str | Path, name: ListName, *, order: bool = False) -> tuple[Interactions, Interactions]:
    """Load the published train/test split of Gowalla or Yelp 2018.

    Parameters
    ----------
    root : str or Path
        The folder with ``train.txt`` and ``test.txt`` of the set, or a folder above it. A line holds a user and
        the items that the user interacted with.
    name : {"gowalla", "yelp2018"}
        Gowalla: 29,858 users, 40,981 items, 810,128 + 217,242 interactions. Yelp 2018: 31,668 users, 38,048
        items, 1,237,259 + 324,147 interactions.
    order : bool
        Give the training part times: k / n for the k-th of the n items of a line. The published lines are not sorted
        by the ids: an author of NGCF says that they are in the order of time, and that the test part has the latest
        fifth (issue 19 of its repository). The times are shares of the way through the items of a user.

    Returns
    -------
    train, test : Interactions
        Over the same ids, with the value 1 for every pair. A pair that a file repeats counts once.

    Raises
    ------
    DataFileError
        For a malformed line, and with `order` where all lines are in ascending order of the ids: such a copy has lost
        the order of the published file.

    References
    ----------
    X. He et al., "LightGCN: Simplifying and Powering Graph Convolution Network for Recommendation", SIGIR 2020.

    Examples
    --------
    >>> from air_recsys.datasets import data_root, load_implicit_lists
    >>> train, test = load_implicit_lists(data_root(), "gowalla")  # doctest: +SKIP
    >>> train.n_ratings, test.n_ratings  # doctest: +SKIP
    (810128, 217242)
    """
    check_choice("name", name, ("gowalla", "yelp2018"))
    train_path, test_path = (find_file(root, name, [file]) for file in ("train.txt", "test.txt"))
    pairs = _read_pairs(train_path), _read_pairs(test_path)
    user_ids, user_index = np.unique(np.concatenate([users for users, _ in pairs]), return_inverse=True)
    item_ids, item_index = np.unique(np.concatenate([items for _, items in pairs]), return_inverse=True)
    n_train = pairs[0][0].size
    places = _places(train_path, user_index[:n_train], item_index[:n_train]) if order else None

    def ones(path: Path, rows: slice, times: np.ndarray | None = None) -> Interactions:
        users, items = user_index[rows], item_index[rows]
        build = partial(Interactions, users, items, np.ones(users.size), user_ids, item_ids, timestamps=times)
        return build_interactions(path, partial(build, duplicates="first"))

    return ones(train_path, slice(n_train), places), ones(test_path, slice(n_train, None))


def _places(path: Path, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return k / n for the k-th of the n items of a user, (pairs,)."""
    counts = np.bincount(users)
    if not (np.diff(items)[np.diff(users) == 0] < 0).any():
        raise DataFileError(
            f"{path}: expected the items of a user in the order of the published file, found all "
            f"{np.count_nonzero(counts)} lines in ascending order of the ids"
        )
    return (rank_within(users, np.arange(users.size)) + 1) / counts[users]


def _read_pairs(path: Path) -> tuple[np.ndarray, np.ndarray]:
    users: list[int] = []
    counts: list[int] = []
    items: list[int] = []
    for number, line in enumerate(read_lines(path), start=1):
        try:
            user, *liked = map(int, line.split())
        except ValueError:
            raise malformed(path, number, "a user id and item ids, integers separated by blanks", line) from None
        users.append(user)
        counts.append(len(liked))
        items.extend(liked)
    try:
        return np.repeat(np.array(users, dtype=np.int64), counts), np.array(items, dtype=np.int64)
    except OverflowError:
        raise DataFileError(f"{path}: expected ids below 2**63, found a larger one") from None
