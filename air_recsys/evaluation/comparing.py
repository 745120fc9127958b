"""`compare`: systems side by side on the same training and test parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from air_recsys.data.interactions import Interactions, as_interactions
from air_recsys.evaluation.answers import answer, place_of_work
from air_recsys.evaluation.comparison import Comparison
from air_recsys.evaluation.measuring import Measures, Run, Task, measure
from air_recsys.evaluation.parts import AnySplit, Parts, given_parts, is_likes, make_parts
from air_recsys.evaluation.systems import FOR_LIKES, FOR_RATINGS, System, comparable_systems, installed, named, of_host
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.storage.progress import messages_beside, progress_bar
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
    apart: bool = False,
    threads: int = 1,
    progress: bool = True,
) -> Comparison:
    """Train systems on the same parts of ratings or likes, and compare their errors, lists and costs.

    Ratings that are all equal are likes, for which only lists are compared.

    Parameters
    ----------
    models : iterable of str or model, mapping of str to str or model, or None
        Names of systems (`air_recsys.evaluation.systems.comparable_systems`), and models of your own, which have
        ``fit(interactions)`` and ``predict(user_ids, item_ids)``, or ``lists(users, n)`` by positions, or both, or
        are an algorithm of Surprise or a model of implicit; they are copied before each training. The others are
        tested against the first one. None is the installed ones of `FOR_RATINGS` or `FOR_LIKES`, in the same module.
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
        Its notes name systems whose package is not installed, and systems that failed.

    Raises
    ------
    ParameterError
        For an unknown name, both `split` and `test`, a parameter out of range, or if none of the systems is installed.
    DataError
        If the data cannot be split in this way, no test rating is relevant, or no system could be trained.

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

    Notes
    -----
    The command is ``air-recsys compare``. `Cornac's Experiment <https://cornac.readthedocs.io>`_ compares models
    of Cornac in this way.
    """
    interactions = as_interactions(data, allow_negative=True)
    check_integer("n_users", n_users, minimum=1)
    check_integer("seed", seed)
    check_integer("threads", threads, minimum=1)
    if relevant is not None:
        check_real("relevant", relevant, minimum=-np.inf)
    likes = is_likes(interactions)
    systems, notes = _systems(models, likes, seed, split)
    parts = _parts(interactions, split, test, test_fraction, seed)
    check_integer("k", k, minimum=1, maximum=parts.folds[0].train.n_items)
    tasks = [Task.of(fold, likes, k, relevant, n_users, seed) for fold in parts.folds]
    runs, failed = _run(systems, tasks, apart, threads, progress)
    rows = [run.row(runs[0], tasks, seed) for run in runs]
    return Comparison(
        _protocol(parts, tasks, seed, threads if apart else None),
        k,
        max(task.question.users.size for task in tasks),
        rows,
        [row for run in runs for row in run.single(tasks)],
        {run.name: systems[run.name].settings for run in runs},
        notes + failed,
    )


def _parts(data: Interactions, split: AnySplit, test: Any, test_fraction: float | None, seed: int) -> Parts:
    if test is None:
        return make_parts(data, split, test_fraction, seed)
    if split is not None or test_fraction is not None:
        raise ParameterError("expected either test ratings or a split, found both")
    return given_parts(data, as_interactions(test, allow_negative=True))


def _systems(models: Models, likes: bool, seed: int, split: AnySplit) -> tuple[dict[str, System], list[str]]:
    """Return the systems that can be trained, and a line a package that is not installed."""
    if isinstance(models, str):
        raise ParameterError(f"models must be a list of names or models, found the text {models!r}")
    given = (FOR_LIKES if likes else FOR_RATINGS) if models is None else models
    pairs = given.items() if isinstance(given, Mapping) else [(None, model) for model in given]
    every = comparable_systems(seed=seed, split=split)
    systems: dict[str, System] = {}
    for label, model in pairs:
        if isinstance(model, str):
            found = named(every, [model])
            systems |= found if label is None else {label: next(iter(found.values()))}
        else:
            systems[label or _free(type(model).__name__, systems)] = _system(model)
    there, absent = installed(systems)
    if not there:
        raise ParameterError("; ".join(["expected a system to compare", *absent]))
    return there, absent


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """Return a name, with a number where it is taken.

    Examples
    --------
    >>> _free("AIR", {"AIR": 1, "AIR 2": 1})
    'AIR 3'
    """
    names = [name, *(f"{name} {number}" for number in range(2, len(taken) + 2))]
    return next(each for each in names if each not in taken)


def _system(model: Any) -> System:
    """Return a system of a model of the caller's, or of one that is a system already."""
    if isinstance(model, System):
        return model
    if (found := of_host(model)) is not None:
        return found
    answers = hasattr(model, "predict") or hasattr(model, "lists")
    if isinstance(model, type) or not hasattr(model, "fit") or not answers:
        raise ParameterError(
            "expected the name of a system, a model with fit, and with predict or lists, or one of Surprise or "
            f"implicit, found {_shown(model)}"
        )
    return System(partial(_fit_copy, model), repr(model))


def _shown(model: Any) -> str:
    return f"the class {model.__name__}: make a model of it" if isinstance(model, type) else repr(model)


def _fit_copy(model: Any, shown: Interactions) -> Any:
    copied: Any = clone(model) if hasattr(model, "get_params") else deepcopy(model)
    copied.fit(shown)
    return copied


def _run(
    systems: Mapping[str, System], tasks: list[Task], apart: bool, threads: int, progress: bool
) -> tuple[list[Run], list[str]]:
    """Return the systems on all folds, and a line for each that failed."""
    runs, failed, cause = [], [], None
    shown = progress_bar(progress, total=len(systems) * len(tasks), unit="fit", desc="compare")
    with shown as bar, messages_beside(bar):
        for name, system in systems.items():
            bar.set_postfix_str(name)
            try:
                runs.append(Run(name, _measures(system, tasks, apart, threads, bar.update)))
            except Exception as error:  # of another library: the other systems go on
                bar.update(len(tasks) - bar.n % len(tasks))
                failed.append(f"failed: {name} ({type(error).__name__}: {error})")
                cause = error
    if not runs:
        raise DataError(f"none of the systems could be trained; {'; '.join(failed)}") from cause
    return runs, failed


def _measures(system: System, tasks: list[Task], apart: bool, threads: int, done: Callable[[], Any]) -> list[Measures]:
    measures = []
    with place_of_work(apart, threads) as call:
        for task in tasks:
            measures.append(measure(task, answer(call, system.train, task.fold.train, task.question)))
            done()
    return measures


def _protocol(parts: Parts, tasks: list[Task], seed: int, threads: int | None) -> str:
    first, rated = tasks[0].fold.train, tasks[0].question.pairs is not None
    what = "ratings" if rated else "likes"
    sizes = [" + ".join(f"{len(getattr(task.fold, part).ratings):,}" for task in tasks) for part in ("train", "test")]
    least = ", ".join(dict.fromkeys(f"{task.threshold:.3g}" for task in tasks if task.threshold is not None))
    sentences = [
        f"{first.n_users:,} users, {first.n_items:,} items, {sizes[0]} {what} to train on, {sizes[1]} to test on",
        parts.told,
        "predictions are clipped to the range of the training ratings" if rated else "",
        f"relevant for lists are test ratings of at least {least}" if rated else "all test items are relevant",
        "all items are ranked that a user was not shown",
        "95 % intervals by bootstrap over the users",
        "p of a paired t-test over the users against the first system, not corrected for the number of systems",
        f"seed {seed}" + ("" if threads is None else f", a process a system, {threads} thread(s)"),
    ]
    return "; ".join(sentence for sentence in sentences if sentence)
