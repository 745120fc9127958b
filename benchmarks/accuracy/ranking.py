"""Recall and NDCG of lists of 10, 20 and 100: every system sealed, on the same split, in one run; and their times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.experiment import Answer, Question, Task, ask, process_place, trials
from air_recsys.evaluation.folds import Fold, NewUsersFold, shown_rows, users_asked
from air_recsys.evaluation.lists import catalogue_figures, measure_figures, paired_p_value
from air_recsys.evaluation.resampling import UserResamples
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.system import System
from air_recsys.exceptions import ParameterError
from air_recsys.metrics import recall_at_k
from air_recsys.metrics.at_k import graded_ndcg
from air_recsys.models import GraphRanker
from air_recsys.models.graph_ranker.hidden import gains_of
from benchmarks.accuracy.experiments import published_rows
from benchmarks.accuracy.ranking_data import RANKING_SETS, new_users_part, split_of, validation_part
from benchmarks.accuracy.ranking_systems import choice_of, ranking_systems, systems_by_default
from benchmarks.accuracy.ratings import chosen_systems
from benchmarks.harness import check_settings

LENGTHS = (20, 10, 100)
"""Of the lists that are measured."""
_TITLES = {"test": "", "validation": "a validation part of ", "new users": "new users of "}
_HIDDEN = {
    "test": "",
    "validation": "; tested: {part} of the training items, not the test items",
    "new users": "; joined, and a tenth of the users held out of the training; tested: a random fifth of their items, "
    "with the rest of their items given",
}
_EFFECTS_LENGTH = 20
_SPREAD_LENGTHS = (20, 10)
_PARTS = {
    "random": "a random fifth of each user's",
    "last": "each user's last",
    "latest": "the latest fifth of each user's",
    "time": "the latest fifth",
}


def ranking(
    root: Path,
    seed: int,
    threads: int,
    case: str,
    *,
    systems: list[str],
    validation: bool,
    new_users: bool,
    settings: dict[str, Any],
) -> list[ResultTable]:
    """The tables of a set, see `bench_ranking`: of its split, a part of the training part, or a split by users.

    `systems` are names, by default those of `systems_by_default`; `settings` are parameters of `GraphRanker`.
    """
    if new_users and validation:
        raise ParameterError("new_users has a split of its own: expected it without validation")
    check_settings(GraphRanker(), settings)
    every = ranking_systems(case, settings, seed, threads, new_users=new_users)
    chosen = chosen_systems(every, systems or systems_by_default(case, new_users=new_users))
    fold: Fold | NewUsersFold = RANKING_SETS[case].fold(root, seed)
    if validation:
        fold = validation_part(fold, seed, RANKING_SETS[case].kind)
    elif new_users:
        fold = new_users_part(fold, seed)
    return list(bench_ranking(case, fold, chosen, seed=seed, threads=threads))


def bench_ranking(
    data: str, fold: Fold | NewUsersFold, systems: Mapping[str, System], *, seed: int = 0, threads: int = 1
) -> tuple[ResultTable, ResultTable]:
    """Train every system in a sealed process, one after the other, and measure its lists.

    Parameters
    ----------
    data : str
        A key of `RANKING_SETS`.
    fold : Fold or NewUsersFold
        Its split, or the validation part of its training part, or a split by users; published figures stand beside
        the first only.
    systems : mapping of str to System
        The first is the one that the others are tested against.
    seed : int
        Of the bootstrap, and of the systems, for the protocol.

    Returns
    -------
    ResultTable
        A row a system: recall of lists of 20, NDCG of lists of 20, 10 and 100, the mean over the users with test
        items, all items ranked that are not among the user's training items; seconds on the clock and of the
        processors and the memory at the peak, in GiB, all of the training alone. Then a row a published figure.
    ResultTable
        A row a system, of the same lists: the 95 % intervals of NDCG, the p-values of paired t-tests against the
        first system, and the effects on the catalogue.
    """
    means = ResultTable(_title(data, fold), _protocol(data, fold, seed, threads))
    spreads = ResultTable(f"{_title(data, fold)}: intervals and catalogue", _spread_protocol(systems))
    task = Task.of_lists(fold, min(max(LENGTHS), fold.train.n_items), ask=ask_lists).sealed()
    assert task.relevant is not None
    users, shown = users_asked(fold), shown_rows(fold)
    gains = gains_of(sp.csr_array(fold.test.to_csr())[users], sp.csr_array(fold.train.to_csr()))
    first, resamples = None, UserResamples(users, seed=seed)
    for name, _, (lists, chosen), costs in trials(
        systems, [task], place=process_place(threads), each_apart=True, title=f"ranking {data}"
    ):
        ndcg = user_ndcg(lists, gains)
        first = ndcg if first is None else first
        means.rows.append({"system": name} | list_figures(lists, task.relevant, ndcg) | costs.of_training())
        effects = catalogue_figures(lists[:, :_EFFECTS_LENGTH], users, fold.train, shown)
        spreads.rows.append({"system": name} | _spread_figures(ndcg, first, resamples) | effects)
        means.notes.append(f"{name}: {systems[name].settings}" + (f"; chosen: {chosen}" if chosen else ""))
    if _kind(fold) == "test":
        means.rows += published_rows("ranking", split_of(data))
    return means, spreads


def ask_lists(model: Any, shown: Interactions, question: Question) -> tuple[np.ndarray | None, str]:
    """The lists of some users, by positions, and the settings that the model has chosen, in words."""
    answer: Answer = ask(model, shown, question)
    return answer.lists, choice_of(model)


def list_figures(lists: np.ndarray, relevant: sp.csr_array, ndcg: dict[int, np.ndarray]) -> dict[str, float]:
    """Recall of the lists of a system, and the means of NDCG over the users, by the length of the lists."""
    recall = recall_at_k(lists, relevant, min(20, lists.shape[1]))
    return {"recall@20": recall} | {f"ndcg@{k}": float(values.mean()) for k, values in ndcg.items()}


def user_ndcg(lists: np.ndarray, gains: sp.csr_array) -> dict[int, np.ndarray]:
    """NDCG of each user with test items, (b,), by their gains, by the length of the lists."""
    return {k: graded_ndcg(lists[:, :k], gains) for k in LENGTHS}


def _spread_figures(
    ndcg: dict[int, np.ndarray], first: dict[int, np.ndarray], resamples: UserResamples
) -> dict[str, float]:
    figures: dict[str, float] = {}
    for k in _SPREAD_LENGTHS:
        found = measure_figures({"ndcg_at_k": ndcg[k]}, resamples, k)
        figures |= {name.replace("ndcg ", f"@{k} "): value for name, value in found.items()}
        figures[f"@{k} p"] = paired_p_value(ndcg[k], first[k])
    return figures


def _kind(fold: Fold | NewUsersFold) -> str:
    return fold.name if isinstance(fold, Fold) else "new users"


def _title(data: str, fold: Fold | NewUsersFold) -> str:
    return f"Lists on {_TITLES[_kind(fold)]}{RANKING_SETS[data].title}"


def _protocol(data: str, fold: Fold | NewUsersFold, seed: int, threads: int) -> str:
    hidden = _HIDDEN[_kind(fold)].format(part=_PARTS[RANKING_SETS[data].kind])
    return (
        f"{RANKING_SETS[data].title}, {RANKING_SETS[data].origin}{hidden}; {fold.train.n_ratings} interactions shown, "
        f"{fold.test.n_ratings} asked of {users_asked(fold).size} users; all items ranked that a user was not shown; "
        f"recall over all test items of a user, NDCG against the best list of that length; means over users; "
        f"seed {seed}, CPU, {threads} thread(s), a process a training, one after the other; time and memory of the "
        "training alone"
    )


def _spread_protocol(systems: Mapping[str, System]) -> str:
    return (
        "The lists of the table before; low and high: the 95 % interval of the mean NDCG, bootstrap over the users; "
        f"p: paired t-test of the NDCG of the users against {next(iter(systems))}, not corrected for the number of "
        f"tests; effects on the catalogue of lists of {_EFFECTS_LENGTH}"
    )
