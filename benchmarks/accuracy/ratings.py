"""Error on test ratings of AIR and of other libraries: every system sealed, on the same splits, in one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation import systems as compared
from air_recsys.evaluation.comparison import rating_figures
from air_recsys.evaluation.experiment import Answer, Question, Task, Trial, ask, process_place, trials, way_of_asking
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.system import System, check_changes, check_installed
from air_recsys.evaluation.systems import AIR_SETTINGS, air_systems, myfm_system
from air_recsys.metrics import rmse
from air_recsys.storage.validation import check_choice
from benchmarks.accuracy.experiments import experiment, published_rows
from benchmarks.accuracy.ratings_data import RATING_SETS, check_times, chosen_folds, known_tables, validation_fold

READ_FEATURES = (
    *("AIR", "AIR langevin", "myFM Bayesian MF", "myFM Bayesian SVD++ flipped", "myFM ordered SVD++ flipped"),
    *("myFM timeSVD++ flipped", "myFM ordered timeSVD++ flipped"),
)
"""Systems that read features of users and items."""


def rating_systems(data: str, changes: dict[str, Any] | None = None, seed: int = 0) -> dict[str, System]:
    """All systems by name: those of `air_recsys.evaluation.systems.rating_systems`.

    Parameters
    ----------
    data : str
        A key of `RATING_SETS`: myFM takes more factors for the largest.
    changes, seed
    """
    rank, n_steps = experiment("ratings")["set"][data].get("myfm", (10, 300))
    return compared.rating_systems(changes, seed, myfm=(rank, n_steps))


def systems_with_features(systems: Mapping[str, System], tables: Mapping[str, pd.DataFrame]) -> dict[str, System]:
    """The systems that read features, with tables of them, and "AIR without features"."""
    told = {
        name: system._replace(train=partial(_train_with_features, system.train, dict(tables)))
        for name, system in systems.items()
        if name in READ_FEATURES
    }
    return told | {"AIR without features": systems["AIR"]}


def systems_with_times(changes: dict[str, Any] | None = None, seed: int = 0) -> dict[str, System]:
    """The systems that read when ratings were given, and AIR under the name "AIR without times".

    myFM's are those of its example for MovieLens-100K, with the day of a rating as a further indicator.
    """
    timed = {name: AIR_SETTINGS[name] | {"time": "drift"} for name in ("AIR", "AIR langevin")}
    systems = air_systems(timed, changes or {}, seed)
    for name, ordered in (("timeSVD++ flipped", False), ("ordered timeSVD++ flipped", True)):
        options = {"implicit": True, "dates": True, "ordered": ordered}
        systems[f"myFM {name}"] = myfm_system(10, 300, 42 + seed, ", days", **options)
    return systems | {"AIR without times": air_systems({"AIR": {}}, changes or {}, seed)["AIR"]}


def chosen_systems(systems: dict[str, System], names: list[str]) -> dict[str, System]:
    """The systems of some names, all for none; raises where a name is unknown or a package is not installed."""
    for name in names:
        check_choice("systems", name, list(systems))
    chosen = {name: system for name, system in systems.items() if not names or name in names}
    check_installed(chosen)
    return chosen


def ratings(
    root: Path,
    seed: int,
    threads: int,
    case: str,
    *,
    systems: list[str],
    folds: list[str],
    validation: bool,
    features: bool,
    times: bool,
    settings: dict[str, Any],
) -> list[ResultTable]:
    """The table of a set, see `bench_ratings`.

    Parameters
    ----------
    systems, folds : list of str
        Names; all where empty.
    validation : bool
        Test on parts of the training parts.
    features, times : bool
        Whether the systems are shown features of users and items, and the times of ratings.
    settings : dict
        Parameters of AIR, for the systems that read them.
    """
    every = systems_with_times(settings, seed) if times else rating_systems(case, settings, seed)
    every = systems_with_features(every, known_tables(case, root)) if features else every
    chosen = chosen_systems(every, systems)
    check_changes(chosen, settings)
    parts = chosen_folds(RATING_SETS[case].load(root), folds)
    if times:
        check_times(case, parts)
    if validation:
        parts = [validation_fold(fold, seed) for fold in parts]
    known = ["age, gender, occupation, year, genres"] * features + ["the time of each"] * times
    origin = f"{RATING_SETS[case].origin}; beside the ratings {' and '.join(known)}" if known else None
    how = {"validation": validation, "origin": origin, "timed": times, "seed": seed, "threads": threads}
    return [bench_ratings(case, parts, chosen, **how)]


def bench_ratings(
    data: str,
    folds: list[Fold],
    systems: Mapping[str, System],
    *,
    validation: bool = False,
    origin: str | None = None,
    timed: bool = False,
    seed: int = 0,
    threads: int = 1,
) -> ResultTable:
    """Train every system on every fold, each in a sealed process, one after the other.

    Parameters
    ----------
    data : str
        A key of `RATING_SETS`.
    folds : list of Fold
        Of that data.
    validation : bool
        Whether these folds are within the training parts, so that no published figure stands beside.
    origin : str, optional
        How the folds were made, where they are not those of `RATING_SETS`; no published figure then stands beside.
    timed : bool
        Whether the times of the test ratings are part of the question.
    seed : int
        Of the systems, for the protocol.

    Returns
    -------
    ResultTable
        A row a system: RMSE (mean and single folds) and MAE of the predictions, clipped to the range of the training
        ratings; share of the test ratings inside of 90 % intervals and their mean width, of systems that tell a
        standard deviation; logarithmic loss of the probabilities of the values, and RMSE of their means, of systems
        that tell these; per fold the seconds on the clock and of the processors and the memory at the peak, in
        GiB, all of the training alone. Then a row a published figure.
    """
    rows, notes = [], []
    tasks = [Task.of_ratings(fold, timed=timed, ask=ask_values).sealed() for fold in folds]
    found = trials(systems, tasks, place=process_place(threads), each_apart=True, title=f"ratings {data}")
    for name, of_system in groupby(found, lambda trial: trial.system):
        errors = [fold_errors(trial) for trial in of_system]
        rows.append({"system": name} | _mean(folds, errors))
        notes.append(f"{name}: {systems[name].settings}{_inside(errors)}")
    if not validation and origin is None:
        rows += published_rows("ratings", data)
    title = f"Error on {'validation parts of ' if validation else ''}{RATING_SETS[data].title}"
    return ResultTable(title, _protocol(data, folds, validation, origin, seed, threads), rows, notes)


def ask_values(model: Any, shown: Interactions, question: Question) -> tuple[Answer, np.ndarray | None]:
    """The predicted ratings, and probabilities of the values of the training ratings, (n, k), where told."""
    tells = getattr(model, "knows_deviations_", False) or getattr(model, "ordered", False)
    probable = getattr(model, "predict_proba", None) if tells else None
    assert question.pairs is not None
    answer = ask(model, shown, question)
    if probable is None:
        return answer, None
    return answer, probable(*question.pairs[:2], **way_of_asking(model, question.pairs))


def fold_errors(trial: Trial) -> dict[str, float]:
    """The errors of a system's answers to the test pairs of a fold, and the costs of its training."""
    fold, (answer, shares) = trial.task.fold, trial.answer
    assert isinstance(fold, Fold)
    errors, _ = rating_figures(fold, answer)
    if shares is not None:
        errors |= value_figures(fold.test.ratings, shares, np.unique(fold.train.ratings))
    return errors | trial.costs.of_training()


def value_figures(truth: np.ndarray, shares: np.ndarray, values: np.ndarray) -> dict[str, float]:
    """The mean logarithmic loss of probabilities (n, k) of values (k,), and the RMSE of their means.

    The loss leaves out true ratings that are none of the values.

    Examples
    --------
    >>> value_figures(np.array([1.0, 2.0]), np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([1.0, 2.0]))
    {'log loss': 0.693..., 'rmse of values': 0.5}
    """
    places = np.searchsorted(values, truth).clip(max=values.size - 1)
    known = values[places] == truth
    losses = -np.log(shares[known, places[known]])
    return {"log loss": float(losses.mean()), "rmse of values": rmse(truth, shares @ values)}


def _mean(folds: list[Fold], errors: list[dict[str, float]]) -> dict[str, Any]:
    mean: dict[str, Any] = {name: fmean(each[name] for each in errors) for name in errors[0]}
    single = {fold.name: each["rmse"] for fold, each in zip(folds, errors, strict=True)} if len(folds) > 1 else {}
    return {"rmse": mean.pop("rmse")} | single | mean


def _inside(errors: list[dict[str, float]]) -> str:
    if "inside 90 %" not in errors[0] or len(errors) == 1:
        return ""
    shares = ", ".join(f"{100 * each['inside 90 %']:.1f}" for each in errors)
    return f"; inside of its 90 % intervals are {shares} % of the test ratings of the single folds"


def _protocol(data: str, folds: list[Fold], validation: bool, origin: str | None, seed: int, threads: int) -> str:
    tested = f"{sum(fold.test.n_ratings for fold in folds)} ratings of {', '.join(fold.name for fold in folds)}"
    if validation:
        tested += ", random parts of the training parts, as large a share of them as the unused test parts are of all"
    return (
        f"{RATING_SETS[data].title}, {origin or RATING_SETS[data].origin}; tested: {tested}; predictions clipped to "
        f"the range of the training ratings; seed {seed}, CPU, {threads} thread(s), a process a training, one after "
        "the other; time (per fold) and memory of the training alone, the making of a library's own form of the data "
        "included"
    )


def _train_with_features(
    train: Callable[[Interactions], Any], tables: dict[str, pd.DataFrame], shown: Interactions
) -> Any:
    return train(shown.with_features(**tables))
