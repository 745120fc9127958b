"""Recall and NDCG of lists of 10, 20 and 100: every system sealed, on the same split, in one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import scipy.sparse as sp
from tqdm import tqdm

from air_recsys.benchmarks.accuracy.published import published_figures
from air_recsys.benchmarks.accuracy.ranking_data import RANKING_SETS
from air_recsys.benchmarks.accuracy.ranking_systems import LENGTHS, ask_lists, ask_lists_of_new
from air_recsys.benchmarks.accuracy.sealed import Sealed, rated_pairs, run_sealed
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.holdouts import NewUsersFold, given_rows, users_asked
from air_recsys.evaluation.systems import System
from air_recsys.metrics import ndcg_at_k, recall_at_k
from air_recsys.results import ResultTable

_TITLES = {"test": "", "validation": "a validation part of ", "new users": "new users of "}
_HIDDEN = {
    "test": "",
    "validation": "; tested: {part} of the training items, not the test items",
    "new users": "; joined, and a tenth of the users held out of the training; tested: a random fifth of their items, "
    "with the rest of their items given",
}
_PARTS = {"random": "a random fifth of each user's", "last": "each user's last", "time": "the latest fifth"}


def bench_ranking(
    data: str, fold: Fold | NewUsersFold, systems: Mapping[str, System], *, seed: int = 0, threads: int = 1
) -> ResultTable:
    """Train every system in a sealed process, one after the other, and measure its lists.

    Parameters
    ----------
    data : str
        A key of `RANKING_SETS`.
    fold : Fold or NewUsersFold
        Its split, or the validation part of its training part, or a split by users; published figures stand beside
        the first only.
    seed : int
        Of the systems, for the protocol.

    Returns
    -------
    ResultTable
        A row a system: recall of lists of 20, NDCG of lists of 20, 10 and 100, the mean over the users with test
        items, all items ranked that are not among the user's training items; seconds on the clock and of the
        processors and the memory at the peak, in GiB, all of the training alone. Then a row a published figure.
    """
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    users, tested = users_asked(fold), rated_pairs(fold.test)
    ask, asked = (ask_lists, users) if isinstance(fold, Fold) else (ask_lists_of_new, given_rows(fold))
    for name, system in tqdm(systems.items(), unit="fit", desc=f"bench ranking {data}"):
        sealed = run_sealed(system.train, ask, fold.train, asked, pairs_of_asked=lambda _: tested, threads=threads)
        rows.append({"system": name} | list_figures(fold, sealed))
        chosen = sealed.answer.settings
        notes.append(f"{name}: {system.settings}" + (f"; chosen: {chosen}" if chosen else ""))
    kind = fold.name if isinstance(fold, Fold) else "new users"
    if kind == "test":
        rows += [{"system": name} | figure for name, figure in published_figures("ranking", data)]
    title = f"Lists on {_TITLES[kind]}{RANKING_SETS[data].title}"
    hidden = _HIDDEN[kind].format(part=_PARTS[RANKING_SETS[data].kind])
    return ResultTable(title, _protocol(data, fold, hidden, seed, threads), rows, notes)


def list_figures(fold: Fold | NewUsersFold, sealed: Sealed) -> dict[str, float]:
    """Return recall and NDCG of the lists of a system, and the costs of its training."""
    relevant = sp.csr_array(fold.test.to_csr())[users_asked(fold)]
    lists = sealed.answer.items

    def of_length(measure: Callable[..., float], k: int) -> float:
        return measure(lists, relevant, min(k, lists.shape[1]))

    figures = {"recall@20": of_length(recall_at_k, 20), "ndcg@20": of_length(ndcg_at_k, 20)}
    others = {f"ndcg@{k}": of_length(ndcg_at_k, k) for k in LENGTHS if k != 20}
    return figures | others | sealed.costs()


def _protocol(data: str, fold: Fold | NewUsersFold, hidden: str, seed: int, threads: int) -> str:
    return (
        f"{RANKING_SETS[data].title}, {RANKING_SETS[data].origin}{hidden}; {fold.train.n_ratings} interactions shown, "
        f"{fold.test.n_ratings} asked of {users_asked(fold).size} users; all items ranked that a user was not shown; "
        f"recall over all test items of a user, NDCG against the best list of that length; means over users; "
        f"seed {seed}, CPU, {threads} thread(s), a process a training, one after the other; time and memory of the "
        "training alone"
    )
