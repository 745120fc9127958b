"""Recall and NDCG of lists of 20: every system sealed, on the same split, in one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from air_recsys.benchmarks.accuracy.published import published_figures
from air_recsys.benchmarks.accuracy.ranking_data import RANKING_SETS
from air_recsys.benchmarks.accuracy.ranking_systems import LENGTH, ask_lists
from air_recsys.benchmarks.accuracy.ratings_systems import System
from air_recsys.benchmarks.accuracy.sealed import Pairs, Sealed, rated_pairs, run_sealed
from air_recsys.evaluation.folds import Fold
from air_recsys.metrics import ndcg_at_k, recall_at_k
from air_recsys.results import ResultTable


def bench_ranking(
    data: str, fold: Fold, systems: Mapping[str, System], *, seed: int = 0, threads: int = 1
) -> ResultTable:
    """Train every system in a sealed process, one after the other, and measure its lists.

    Parameters
    ----------
    data : str
        A key of `RANKING_SETS`.
    fold : Fold
        Its split, or the validation part of its training part; published figures stand beside the former only.
    systems : mapping of str to System
    seed : int
        Of the systems, for the protocol.
    threads : int

    Returns
    -------
    ResultTable
        A row a system: recall and NDCG of lists of 20, the mean over the users with test items, all items ranked that
        are not among the user's training items; seconds on the clock and of the processors and the memory at the
        peak, in GiB, all of the training alone. Then a row a published figure.
    """
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for name, system in tqdm(systems.items(), unit="fit", desc=f"bench ranking {data}"):
        sealed = _sealed(fold, system, threads)
        rows.append({"system": name} | list_figures(fold, sealed))
        chosen = sealed.answer.settings
        notes.append(f"{name}: {system.settings}" + (f"; chosen: {chosen}" if chosen else ""))
    if fold.name == "test":
        rows += [{"system": name} | figure for name, figure in published_figures("ranking", data)]
    return ResultTable(_title(data, fold), _protocol(data, fold, seed, threads), rows, notes)


def list_figures(fold: Fold, sealed: Sealed) -> dict[str, float]:
    """Return how good the lists of a system are, and what its training took."""
    users = users_asked(fold)
    relevant = sp.csr_array(fold.test.to_csr())[users]
    lists = sealed.answer.items
    return {
        f"recall@{LENGTH}": recall_at_k(lists, relevant, lists.shape[1]),
        f"ndcg@{LENGTH}": ndcg_at_k(lists, relevant, lists.shape[1]),
        "seconds": sealed.seconds,
        "cpu_seconds": sealed.cpu_seconds,
        "peak_gib": sealed.peak_gib,
    }


def users_asked(fold: Fold) -> np.ndarray:
    """Return the positions of the users with test items, ascending."""
    return np.unique(fold.test.user_index)


def _sealed(fold: Fold, system: System, threads: int) -> Sealed:
    def tested(_: Any) -> Pairs:
        return rated_pairs(fold.test)

    return run_sealed(system.train, ask_lists, fold.train, users_asked(fold), pairs_of_asked=tested, threads=threads)


def _title(data: str, fold: Fold) -> str:
    part = "" if fold.name == "test" else "a validation part of "
    return f"Lists of {LENGTH} items on {part}{RANKING_SETS[data].title}"


def _protocol(data: str, fold: Fold, seed: int, threads: int) -> str:
    hidden = (
        "" if fold.name == "test" else "; tested: a random fifth of each user's training items, not the test items"
    )
    return (
        f"{RANKING_SETS[data].title}, {RANKING_SETS[data].origin}{hidden}; {fold.train.n_ratings} interactions shown, "
        f"{fold.test.n_ratings} asked of {users_asked(fold).size} users; all items ranked that a user was not shown; "
        f"recall over all test items of a user, NDCG against the best list of {LENGTH}; means over users; "
        f"seed {seed}, CPU, {threads} thread(s), a process a training, one after the other; time and memory of the "
        "training alone"
    )
