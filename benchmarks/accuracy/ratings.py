"""Error on test ratings of AIR and of other libraries: every system sealed, on the same splits, in one run."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import numpy as np
from tqdm import tqdm

from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.rating_errors import clipped, interval_figures
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.systems import System
from air_recsys.metrics import mae, rmse
from benchmarks.accuracy.published import published_figures
from benchmarks.accuracy.ratings_data import RATING_SETS
from benchmarks.accuracy.ratings_systems import ask_values
from benchmarks.accuracy.sealed import Sealed, bare_pairs, rated_pairs, run_sealed, timed_pairs


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
    with tqdm(total=len(systems) * len(folds), unit="fit", desc=f"bench ratings {data}") as bar:
        for name, system in systems.items():
            errors = []
            for fold in folds:
                asked = (*rated_pairs(fold.test), fold.test.timestamps) if timed else rated_pairs(fold.test)
                bare = timed_pairs if timed else bare_pairs
                sealed = run_sealed(system.train, ask_values, fold.train, asked, pairs_of_asked=bare, threads=threads)
                errors.append(fold_errors(fold, sealed))
                bar.update()
            rows.append({"system": name} | _mean(folds, errors))
            notes.append(f"{name}: {system.settings}{_inside(errors)}")
    if not validation and origin is None:
        rows += [{"system": name} | figure for name, figure in published_figures("ratings", data)]
    title = f"Error on {'validation parts of ' if validation else ''}{RATING_SETS[data].title}"
    return ResultTable(title, _protocol(data, folds, validation, origin, seed, threads), rows, notes)


def fold_errors(fold: Fold, sealed: Sealed) -> dict[str, float]:
    """Return the errors of a system's answers to the test pairs of a fold, and the costs of its training."""
    truth, (predicted, deviation, shares) = fold.test.ratings, sealed.answer
    within = clipped(predicted, fold.train)
    errors = {"rmse": rmse(truth, within), "mae": mae(truth, within)}
    if deviation is not None:
        errors |= interval_figures(truth, predicted, deviation)
    if shares is not None:
        errors |= value_figures(truth, shares, np.unique(fold.train.ratings))
    return errors | sealed.costs()


def value_figures(truth: np.ndarray, shares: np.ndarray, values: np.ndarray) -> dict[str, float]:
    """Return the mean logarithmic loss of probabilities (n, k) of values (k,), and the RMSE of their means.

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
