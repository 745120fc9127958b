"""A model beside its baselines on the same folds: errors of ratings, or lists of items by many measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from air_recsys.evaluation.experiment import Task, Trial, task_by_task, told_of_elsewhere, trials
from air_recsys.evaluation.folds import Fold, NewUsersFold, given_rows, shown_rows, told_of_unknown, users_asked
from air_recsys.evaluation.lists import (
    catalogue_figures,
    diversity_figure,
    holm,
    measure_figures,
    paired_p_value,
    thirds_of_users,
)
from air_recsys.evaluation.resampling import UserResamples
from air_recsys.evaluation.results import ResultTable, mean_of, peak_memory
from air_recsys.evaluation.system import System
from air_recsys.exceptions import ParameterError
from air_recsys.metrics import mae, nmae, rmse, user_measures


def evaluate_ratings(
    folds: Sequence[Fold], systems: Mapping[str, System], *, progress: bool = True, protocol: str = ""
) -> tuple[ResultTable, ResultTable]:
    """Fit every system on every fold and return the means over folds and the single results."""
    single = ResultTable("Test error of single folds", protocol)
    tasks = [Task.of_ratings(fold) for fold in folds]
    told_of_elsewhere(systems, tasks)
    for trial in task_by_task(trials(systems, tasks, progress=progress), tasks):
        single.rows.append({"fold": trial.task.fold.name, "model": trial.system} | _errors(trial))
    means = ResultTable(f"Test error, mean of {len(folds)} fold(s)", protocol, mean_of(single.rows, ("model",)))
    means.notes += filter(None, [told_of_unknown(folds)])
    means.notes.append(f"peak memory of the whole run {peak_memory():.2f} GiB")
    return means, single


def _errors(trial: Trial) -> dict[str, float]:
    fold, predicted = trial.task.fold, trial.answer.predicted
    truth = fold.test.ratings
    value_range = float(fold.train.ratings.max() - fold.train.ratings.min()) or 1.0
    return {
        "rmse": rmse(truth, predicted),
        "mae": mae(truth, predicted),
        "nmae": nmae(truth, predicted, value_range=value_range),
        "fit_seconds": trial.costs.seconds,
        "predict_seconds": trial.costs.answer_seconds,
    }


def evaluate_lists(
    fold: Fold | NewUsersFold,
    systems: Mapping[str, System],
    *,
    k: int = 10,
    seed: int = 0,
    progress: bool = True,
    protocol: str = "",
) -> tuple[ResultTable, ResultTable]:
    """Train every system on a fold and measure its lists of k items for all users with test items.

    All test interactions are relevant, whatever their values. The first system is the one that the others are tested
    against; models of your own become systems by `air_recsys.evaluation.system.system_of`. The seed is that of the
    bootstrap.

    Returns
    -------
    ResultTable
        One row per system: all measures of `air_recsys.metrics`, and seconds; those of lists of new users include
        their fold-in. What is a mean over the users (NDCG, precision, recall, MAP, MRR, hit rate) has a 95 % interval
        (percentile bootstrap over the users) in columns such as "recall low" and "recall high"; the text shows that
        of NDCG alone. "p" is the p-value of a paired t-test of NDCG against the first system. "p holm" is the same
        corrected for the number of systems by the method of Holm: read it where several systems are compared.
    ResultTable
        NDCG of the users with few, some and many training items, or items given, a third of the users each.
    """
    if not 1 <= k <= fold.train.n_items:
        raise ParameterError(f"k must be in 1..{fold.train.n_items}, the number of items, found {k}")
    if isinstance(fold, NewUsersFold):
        _check_new_users(systems)
    users, shown, task = users_asked(fold), shown_rows(fold), Task.of_lists(fold, k)
    notes = told_of_elsewhere(systems, [task])
    sizes, resamples = np.diff(given_rows(fold).indptr), UserResamples(users, seed=seed)
    bands = thirds_of_users(sizes)
    means = ResultTable(f"Lists of {k} items for {users.size} users", protocol, notes=notes)
    known_by = "training items" if isinstance(fold, Fold) else "items given"
    groups = ResultTable(f"NDCG@{k} by the number of {known_by} of a user", "")
    first: np.ndarray | None = None
    for name, _, answer, costs in trials(systems, [task], progress=progress):
        by_user = user_measures(answer.lists, task.relevant, k)
        ndcg = by_user.pop("ndcg_at_k")
        first = ndcg if first is None else first
        means.rows.append(
            {"system": name}
            | measure_figures({"ndcg_at_k": ndcg}, resamples, k)
            | {"p": paired_p_value(ndcg, first), "p holm": np.nan}
            | measure_figures(by_user, resamples, k)
            | catalogue_figures(answer.lists, users, fold.train, shown)
            | diversity_figure(answer.lists, fold.train)
            | {"fit_seconds": costs.seconds, "list_seconds": costs.answer_seconds}
        )
        means.aside = [f"{each.removesuffix('_at_k')} {end}" for each in by_user for end in ("low", "high")]
        groups.rows.append({"system": name} | {band: ndcg[mask].mean() for band, mask in bands.items()})
    for row, corrected in zip(means.rows, holm([row["p"] for row in means.rows]).tolist(), strict=True):
        row["p holm"] = corrected
    groups.notes.append(", ".join(f"{band}: {_range(sizes[mask])}" for band, mask in bands.items()))
    return means, groups


def _check_new_users(systems: Mapping[str, System]) -> None:
    known_alone = [name for name, system in systems.items() if not system.new_users]
    if known_alone:
        raise ParameterError(
            f"expected systems with lists_of_new, for users held out of the training, found {', '.join(known_alone)}"
        )


def _range(sizes: np.ndarray) -> str:
    return f"{sizes.min()}..{sizes.max()}"
