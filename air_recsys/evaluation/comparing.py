"""`compare`: systems side by side on the same training and test parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from air_recsys.data.interactions import Interactions, as_interactions
from air_recsys.data.scales import told_of_test
from air_recsys.evaluation.comparison import Comparison, Measures, Run, measure, task_of, verdict
from air_recsys.evaluation.experiment import Place, Task, here, process_place, told_of_elsewhere, trials
from air_recsys.evaluation.folds import told_of_unknown
from air_recsys.evaluation.groups import groups_of
from air_recsys.evaluation.parts import AnySplit, Parts, given_parts, is_likes, make_parts
from air_recsys.evaluation.system import System, installed, named, system_of
from air_recsys.evaluation.systems import FOR_LIKES, FOR_RATINGS, comparable_systems
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.metrics.at_k import find_hits
from air_recsys.storage.validation import check_integer, check_real

Models = Mapping[str, Any] | Iterable[Any] | None


def compare(
    models: Models,
    data: Any,
    split: AnySplit = None,
    *,
    test: Any = None,
    test_fraction: float | None = None,
    k: int = 10,
    relevant: float | None = None,
    n_users: int = 1000,
    seed: int = 0,
    groups: Any = None,
    apart: bool = False,
    threads: int = 1,
    progress: bool = True,
) -> Comparison:
    """Train systems on the same parts of ratings or likes, and compare their errors, lists and costs.

    Ratings that are all equal are likes, for which only lists are compared.

    Parameters
    ----------
    models : iterable of str, model or table, mapping of str to these, or None
        Names of systems (`air_recsys.evaluation.systems.comparable_systems`) and of classes that installed packages
        register, and models of your own, which have ``fit(interactions)`` and ``predict(user_ids, item_ids)``, or
        ``lists(users, n)`` by positions, or both, or are an algorithm of Surprise or a model of implicit; they are
        copied before each training. The others are tested against the first one. A table, or the path of its file, has
        lists that another program made from only the training part: columns user and item, and rank or score, or
        else its rows in order; or with a column rating what it predicts for all test pairs. None is the installed
        ones of `FOR_RATINGS` or `FOR_LIKES`, in the same module.
    data : Interactions, DataFrame, SciPy sparse matrix or ndarray
        All ratings, or with `test` those of the training.
    split : {"random", "time", "last"}, int, Split or sequence of Split, optional
        By default a random share is held out: of all ratings, or of the likes of each user. "time" holds out the
        latest share, and "last" the last one of each user, or with `test_fraction` the latest share of each. An int is
        a number of random folds, and masks are those of `air_recsys.splits`.
    test : as data, optional
        Test ratings, instead of a split.
    test_fraction : float, optional
        The share to hold out, by default 0.1, and 0.2 for likes; for "last" by default one rating of each user.
    k : int
        Length of the lists of items.
    relevant : float, optional
        Least test rating of a relevant item for lists. By default the mean of the training ratings.
    n_users : int
        Maximum number of users with relevant test items whose lists are compared, drawn at random.
    seed : int
        Seed of the split, of the named systems, of the drawn users and of the bootstrap.
    groups : DataFrame or Series, optional
        Attributes of users, indexed by user id or with a column of these: figures of each group are compared, too.
        More than 12 numbers make five groups of about as many users.
    apart : bool
        Train each system in a new process, so that its memory can be measured; your own models must then be picklable,
        and a script needs ``if __name__ == "__main__":``.
    threads : int
        Of each process.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Comparison
        Its notes name systems whose package is not installed, that failed, or that score all items alike, and say
        what is odd about lists made elsewhere. Its verdict says which system to take for lists and for ratings.

    Raises
    ------
    ParameterError
        For an unknown name, both `split` and `test`, a parameter out of range, or if none of the systems is installed.
    DataError
        If the data cannot be split in this way, no test rating is relevant, no system could be trained, or a table is
        not one of lists or of ratings, or has ids of other data.

    Examples
    --------
    >>> from air_recsys.models import BiasModel
    >>> rng = np.random.default_rng(0)
    >>> ratings = np.where(rng.random((30, 20)) < 0.5, rng.integers(1, 6, (30, 20)), np.nan)
    >>> found = compare({"mine": BiasModel(bias_decay=50), "mean": "GlobalMean"}, ratings, k=3, progress=False)
    >>> found.to_frame().index.tolist()
    ['mine', 'mean']
    >>> bool(found.to_frame().loc["mean", "rmse low"] < found.to_frame().loc["mean", "rmse"])
    True
    >>> import pandas as pd
    >>> hidden = np.where(np.isnan(ratings) & (rng.random((30, 20)) < 0.3), 4, np.nan)
    >>> lists = pd.DataFrame({"user": np.repeat(range(30), 2), "item": [3, 7] * 30, "rank": [1, 2] * 30})
    >>> found = compare({"popular": "Popularity", "production": lists}, ratings, test=hidden, k=2, progress=False)
    >>> found.verdict.startswith("for lists take ")
    True

    Notes
    -----
    The command is ``air-recsys compare``. `Cornac's Experiment <https://cornac.readthedocs.io>`_ compares models
    of Cornac in this way.
    """
    interactions = as_interactions(data, allow_negative=True, reads=("relation",))
    check_integer("n_users", n_users, minimum=1)
    check_integer("seed", seed)
    check_integer("threads", threads, minimum=1)
    if relevant is not None:
        check_real("relevant", relevant, minimum=-np.inf)
    likes = is_likes(interactions)
    systems, notes = _systems(models, likes, seed, split)
    parts = _parts(interactions, split, test, test_fraction, seed)
    check_integer("k", k, minimum=1, maximum=parts.folds[0].train.n_items)
    tasks = [task_of(fold, likes, k, relevant, n_users, seed) for fold in parts.folds]
    notes += told_of_elsewhere(systems, tasks)
    masks, left_out = ({}, []) if groups is None else groups_of(groups, tasks[0].fold.train.user_ids)
    place = process_place(threads) if apart else here
    runs, failed = _run(systems, tasks, place, progress)
    return Comparison(
        _protocol(parts, tasks, seed, threads if apart else None),
        k,
        max(task.question.n_lists for task in tasks),
        [run.row(runs[0], tasks, seed) for run in runs],
        [row for run in runs for row in run.single(tasks)],
        {run.name: systems[run.name].settings for run in runs},
        notes + left_out + failed,
        verdict(runs, tasks),
        [run.of_group(runs[0], tasks, seed, *group) for group in masks.items() for run in runs],
    )


def _parts(data: Interactions, split: AnySplit, test: Any, test_fraction: float | None, seed: int) -> Parts:
    if test is None:
        return make_parts(data, split, test_fraction, seed)
    if split is not None or test_fraction is not None:
        raise ParameterError("expected either test ratings or a split, found both")
    zero = None if np.ptp(data.ratings) else 0  # in a matrix no like
    return given_parts(data, as_interactions(test, allow_negative=True, missing=zero, reads=("relation",)))


def _systems(models: Models, likes: bool, seed: int, split: AnySplit) -> tuple[dict[str, System], list[str]]:
    """The systems that can be trained, and a line a package that is not installed."""
    if isinstance(models, str):
        raise ParameterError(f"models must be a list of names or models, found the text {models!r}")
    given = (FOR_LIKES if likes else FOR_RATINGS) if models is None else models
    pairs = given.items() if isinstance(given, Mapping) else [(None, model) for model in given]
    every = comparable_systems(seed=seed, split=split)
    systems: dict[str, System] = {}
    for label, model in pairs:
        if isinstance(model, str):
            found = named(every, [model], seed)
            systems |= found if label is None else {label: next(iter(found.values()))}
        else:
            systems[label or _free(getattr(model, "stem", type(model).__name__), systems)] = system_of(model)
    there, absent = installed(systems)
    if not there:
        raise ParameterError("; ".join(["expected a system to compare", *absent]))
    return there, absent


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """A name, with a number where it is taken.

    Examples
    --------
    >>> _free("AIR", {"AIR": 1, "AIR 2": 1})
    'AIR 3'
    """
    names = [name, *(f"{name} {number}" for number in range(2, len(taken) + 2))]
    return next(each for each in names if each not in taken)


def _run(
    systems: Mapping[str, System], tasks: list[Task], place: Place, progress: bool
) -> tuple[list[Run], list[str]]:
    """The systems on all folds, and a line for each that failed or ranks nothing."""
    failed: dict[str, Exception] = {}
    measures: dict[str, list[Measures]] = {}
    ordered: dict[str, str] = {}
    for trial in trials(systems, tasks, place=place, title="compare", progress=progress, failed=failed):
        measures.setdefault(trial.system, []).append(measure(trial))
        if (lists := trial.answer.lists) is None:
            continue
        if (lists[:, 1:] >= 0).sum() >= 10 and (np.diff(np.where(lists < 0, lists.max(), lists)) >= 0).all():
            ordered[trial.system] = f"{trial.system}: all lists are in the order of the items, which it scores alike"
        if n_shown := find_hits(lists, trial.task.fold.train.to_csr()[trial.task.question.users]).sum():
            ordered[trial.system] = f"{trial.system}: {n_shown} places of its lists are items that the user was shown"
    lines = [f"failed: {name} ({type(error).__name__}: {error})" for name, error in failed.items()]
    if not measures:
        raise DataError(f"none of the systems could be trained; {'; '.join(lines)}") from list(failed.values())[-1]
    return [Run(name, found) for name, found in measures.items()], lines + list(ordered.values())


def _protocol(parts: Parts, tasks: list[Task], seed: int, threads: int | None) -> str:
    first, rated = tasks[0].fold.train, tasks[0].question.pairs is not None
    what = "ratings" if rated else "likes"
    sizes = [" + ".join(f"{len(getattr(task.fold, part).ratings):,}" for task in tasks) for part in ("train", "test")]
    least = ", ".join(dict.fromkeys(f"{task.threshold:.3g}" for task in tasks if task.threshold is not None))
    are_all = all(task.threshold is not None and task.fold.test.ratings.min() >= task.threshold for task in tasks)
    whole = ", which all of them are" if are_all else ""
    sentences = [
        f"{first.n_users:,} users, {first.n_items:,} items, {sizes[0]} {what} to train on, {sizes[1]} to test on",
        parts.told,
        told_of_unknown([task.fold for task in tasks], what),
        told_of_test(tasks[0].fold.test.ratings, (first.ratings.min(), first.ratings.max())),
        "predictions are clipped to the range of the training ratings" if rated else "",
        f"relevant for lists are test ratings of at least {least}{whole}" if rated else "all test items are relevant",
        "all items are ranked that a user was not shown",
        "95 % intervals by bootstrap over the users",
        "p of a paired t-test over the users against the first system, not corrected for the number of systems",
        f"seed {seed}" + ("" if threads is None else f", a process a system, {threads} thread(s)"),
    ]
    return "; ".join(sentence for sentence in sentences if sentence)
