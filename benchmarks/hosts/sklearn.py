"""AIRImputer beside scikit-learn's imputers, on the tables that scikit-learn brings."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from tqdm import tqdm

from air_recsys.evaluation.results import mean_of
from air_recsys.metrics import rmse
from benchmarks.harness import Found


def bench_sklearn(*, hidden: list[float], seeds: list[int], tables: list[str]) -> Found:
    """Hide entries at random and fill them, every imputer with its defaults; the error is in standard deviations.

    Parameters
    ----------
    hidden : list of float
        Shares of hidden entries.
    seeds : list of int
        Masks to average over.
    tables : list of str
        Data sets of `sklearn.datasets`.
    """
    single = []
    cases = [(table, share, seed) for table in tables for share in hidden for seed in seeds]
    for table, share, seed in tqdm(cases, unit="mask", desc="hosts: scikit-learn"):
        truth = standardised(table)
        mask = np.random.default_rng(seed).random(truth.shape) < share
        mask[0] = False  # no feature is without entries
        for name, make in _imputers().items():
            single.append({"table": table, "hidden": share, "imputer": name} | _measure(make(seed), truth, mask))
    return Found(mean_of(single, ("table", "hidden", "imputer")))


def _imputers() -> dict[str, Callable[[int], Any]]:
    from air_recsys.adapters.sklearn import AIRImputer

    return {
        "mean": lambda seed: SimpleImputer(),
        "KNNImputer": lambda seed: KNNImputer(),
        "IterativeImputer": lambda seed: IterativeImputer(random_state=seed),
        "AIRImputer": lambda seed: AIRImputer(random_state=seed, device="cpu"),
    }


def standardised(table: str) -> np.ndarray:
    """A table of scikit-learn with every feature at mean 0 and standard deviation 1."""
    data = getattr(datasets, f"load_{table}")().data
    data = data[:, data.std(axis=0) > 0]
    return (data - data.mean(axis=0)) / data.std(axis=0)


def _measure(imputer: Any, truth: np.ndarray, mask: np.ndarray) -> dict[str, float]:
    start = time.perf_counter()
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # IterativeImputer in ten rounds
        filled = imputer.fit_transform(np.where(mask, np.nan, truth))
    return {"rmse": rmse(truth[mask], filled[mask]), "seconds": time.perf_counter() - start}
