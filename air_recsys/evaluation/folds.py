"""AIR beside its baselines, and beside Surprise, on the same splits of rating data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from sklearn.base import clone
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.results import ResultTable, mean_of, peak_memory
from air_recsys.exceptions import ParameterError
from air_recsys.metrics import mae, nmae, rmse
from air_recsys.models import AIR, DMF, BiasModel, GlobalMean, Recommender
from air_recsys.models.solvers import Adam, as_solver
from air_recsys.splits import k_fold, random_holdout

PEERS = {"svd": "SVD", "svdpp": "SVDpp", "knnbaseline": "KNNBaseline"}
"""Names on the command line and the classes of Surprise behind them, run with Surprise's defaults."""


class Fold(NamedTuple):
    """A training and a test part over the same users and items."""

    name: str
    train: Interactions
    test: Interactions


class Predictor(Protocol):
    """What can be compared."""

    def fit(self, interactions: Any) -> Self:
        """Train."""
        ...

    def predict(self, user_ids: Any, item_ids: Any) -> np.ndarray:
        """Return one score a pair."""
        ...


def holdout_folds(data: Interactions, test_fraction: float, seed: int) -> list[Fold]:
    """Return one fold with a random test part."""
    split = random_holdout(data, test_fraction, random_state=seed)
    return [Fold("hold-out", data.select(split.train), data.select(split.test))]


def cross_validation_folds(data: Interactions, n_splits: int, seed: int) -> list[Fold]:
    """Return k folds."""
    splits = k_fold(data, n_splits, random_state=seed)
    return [
        Fold(f"fold {number}", data.select(split.train), data.select(split.test))
        for number, split in enumerate(splits, start=1)
    ]


def contenders(air: AIR, peers: Iterable[str], seed: int) -> Iterator[tuple[str, Callable[[], Predictor]]]:
    """Yield name and factory of AIR, its baselines, and the peers asked for; DMF where its objective is AIR's."""
    yield "AIR", partial(clone, air)  # pyright: ignore[reportReturnType]
    if not air.chooses_solver and isinstance(as_solver(air.solver), Adam):
        yield "DMF", partial(DMF.like, air)
    yield "BiasModel", BiasModel
    yield "GlobalMean", GlobalMean
    for peer in peers:
        if peer not in PEERS:
            raise ParameterError(f"peers must be of {list(PEERS)}, found {peer!r}")
        from air_recsys.adapters.surprise_peer import SurpriseModel

        options = {"verbose": False} if peer == "knnbaseline" else {"random_state": seed}
        factory = partial(SurpriseModel, PEERS[peer], **options)
        factory()  # a missing extra is told before anything is trained
        yield f"Surprise {PEERS[peer]}", factory


def evaluate_on(
    folds: list[Fold],
    air: AIR,
    *,
    peers: Iterable[str] = (),
    seed: int = 0,
    progress: bool = True,
    protocol: str = "",
) -> tuple[ResultTable, ResultTable]:
    """Fit every contender on every fold and return the means over folds and the single results.

    Parameters
    ----------
    folds : list of Fold
    air : AIR
        The model to compare; with the solver `Adam` DMF takes its settings.
    peers : iterable of str
        Keys of `PEERS` (need the extra ``surprise``).
    seed : int
        For the peers.
    progress : bool
        Show a progress bar.
    protocol : str
        Where the folds came from.
    """
    single = ResultTable("Test error of single folds", protocol)
    entrants = list(contenders(air, peers, seed))
    with tqdm(total=len(folds) * len(entrants), disable=not progress, unit="fit", desc="evaluate") as bar:
        for fold in folds:
            for name, factory in entrants:
                single.rows.append({"fold": fold.name, "model": name} | _measure(fold, factory))
                bar.update()
    means = ResultTable(f"Test error, mean of {len(folds)} fold(s)", protocol, mean_of(single.rows, ("model",)))
    means.notes.append(f"peak memory of the whole run {peak_memory():.2f} GiB")
    return means, single


def mean_of_unknown(model: Any) -> dict[str, Any]:
    """Return the argument by which a model answers pairs with unknown ids without a warning; peers have none."""
    return {"unknown": "mean"} if isinstance(model, Recommender) else {}


def _measure(fold: Fold, factory: Callable[[], Predictor]) -> dict[str, float]:
    start = time.perf_counter()
    model = factory().fit(fold.train)
    trained = time.perf_counter()
    test = fold.test.to_frame()
    predicted = model.predict(test["user"].to_numpy(), test["item"].to_numpy(), **mean_of_unknown(model))
    truth = fold.test.ratings
    value_range = float(fold.train.ratings.max() - fold.train.ratings.min()) or 1.0
    return {
        "rmse": rmse(truth, predicted),
        "mae": mae(truth, predicted),
        "nmae": nmae(truth, predicted, value_range=value_range),
        "fit_seconds": trained - start,
        "predict_seconds": time.perf_counter() - trained,
    }
