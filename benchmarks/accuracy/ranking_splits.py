"""How a split was made: whether what is tested of a user belongs together, as what it did in one time does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.evaluation.folds import Fold, holdout_of_users
from air_recsys.evaluation.results.table import ResultTable
from air_recsys.models.graph_ranker.regression import evened_items
from air_recsys.models.graph_ranker.smoothings import interaction_pattern
from benchmarks.accuracy.ranking_data import RANKING_SETS

_SHARE = 0.2
_MOST_USERS = 6000
_FEWEST_TESTED, _FEWEST_LEFT = 3, 6  # items of a user that is asked


class Likeness(NamedTuple):
    """Mean cosines of items over the users asked."""

    within: float  # of pairs of tested items
    across: float  # of a tested item and one that is left
    n_users: int

    @property
    def ratio(self) -> float:
        """About 1 where what is tested is drawn at random."""
        return self.within / self.across if self.across else np.inf


def bench_ranking_splits(sets: dict[str, Fold], seed: int = 0) -> ResultTable:
    """Compare the likeness of what each split tests with that of a random part of its training data.

    Half of the users, drawn at random, give the cosines of items; the others are asked. A random part hides a fifth of
    the training items of each user.

    Parameters
    ----------
    sets : dict
        Splits, by the keys of `benchmarks.accuracy.ranking_data.RANKING_SETS`.

    Returns
    -------
    ResultTable
        Two rows a split: "within" is the mean cosine of two tested items of a user, "across" that of a tested and an
        untested one, and "ratio" the first over the second.
    """
    protocol = (
        f"cosines of items by the training data of one half of the users, drawn with seed {seed}; up to {_MOST_USERS} "
        f"users of the other half are asked, with {_FEWEST_TESTED} tested items and {_FEWEST_LEFT} others at least; "
        "random: a fifth of each user's training items in place of the test part"
    )
    table = ResultTable("Whether tested items belong together", protocol)
    for name, fold in sets.items():
        for part, tested in {"test": fold, "random": holdout_of_users(fold.train, _SHARE, seed)}.items():
            found = likeness(tested, seed)
            figures = {"within": found.within, "across": found.across, "ratio": found.ratio, "n_users": found.n_users}
            table.rows.append({"set": RANKING_SETS[name].title, "part": part} | figures)
    return table


def likeness(fold: Fold, seed: int = 0) -> Likeness:
    """Return how alike the tested items of a user are to each other, and to its training items; NaN for no user.

    Examples
    --------
    >>> from air_recsys import Interactions
    >>> same = Interactions.from_csr(sp.csr_array(np.ones((40, 9))))  # all items are alike
    >>> round(likeness(Fold("test", same, same.select(same.item_index < 3))).ratio, 2)
    1.0
    """
    order = np.random.default_rng(seed).permutation(fold.train.n_users)
    half, asked = np.sort(order[: order.size // 2]), order[order.size // 2 :]
    left, tested = interaction_pattern(fold.train), interaction_pattern(fold.test)
    enough = (np.diff(tested.indptr) >= _FEWEST_TESTED) & (np.diff(left.indptr) >= _FEWEST_LEFT)
    users = asked[enough[asked]][:_MOST_USERS]
    if not users.size:
        return Likeness(np.nan, np.nan, 0)
    columns = sp.csc_array(evened_items(left[half], 0.0, 1.0).rows)  # of length 1
    within, across = np.mean(
        [_cosines(columns, tested[[user]].indices, left[[user]].indices) for user in users], axis=0
    )
    return Likeness(float(within), float(across), users.size)


def _cosines(columns: sp.csc_array, tested: np.ndarray, left: np.ndarray) -> tuple[float, float]:
    """Return the mean cosine of two tested items, and of a tested one and one that is left."""
    cosines = (columns[:, tested].T @ columns[:, np.concatenate([tested, left])]).toarray()
    pairs = cosines[:, : tested.size][~np.eye(tested.size, dtype=bool)]
    return float(pairs.mean()), float(cosines[:, tested.size :].mean())
