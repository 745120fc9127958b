"""New users and new items: fold-in beside training again with their ratings."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from sklearn.base import clone
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import StrongSplit
from air_recsys.datasets import load_movielens
from air_recsys.evaluation.results import mean_of
from air_recsys.metrics import rmse
from air_recsys.models import AIR, BiasModel
from air_recsys.splits import strong_generalisation
from benchmarks.harness import Found

Side = Literal["user", "item"]
_HIDDEN = 0.1
_SHOWN = (0.2, 0.5, 0.8)


def bench_fold_in(root: Path, **case: Any) -> Found:
    """Folding into MovieLens-100K, see `folded_in`."""
    return folded_in(load_movielens(root, "100k"), **case)


def folded_in(data: Interactions, *, seeds: int, settings: dict[str, Any]) -> Found:
    """Hide users (then items), show a share of their ratings, predict the rest.

    Parameters
    ----------
    seeds : int
        Splits to average over.
    settings : dict
        Parameters of `AIR.for_ratings`, the model to fold into.

    Returns
    -------
    Found
        Test RMSE of the hidden ratings, and seconds: of folding all hidden rows in, or of training anew; means, and
        single splits.
    """
    air, single = AIR.for_ratings(**{"random_state": 0} | settings), []
    sides: tuple[Side, ...] = ("user", "item")
    cases = list(itertools.product(sides, _SHOWN, range(seeds)))
    for side, shown, seed in tqdm(cases, unit="split", desc="fold-in"):
        split = _split(data, side, shown, seed)
        for name, result in _results(data, split, air):
            single.append({"new": f"{side}s", "shown": shown, "model": name, "seed": seed} | result)
    return Found(mean_of(single, ("new", "shown", "model")), single)


def _split(data: Interactions, side: Side, shown: float, seed: int) -> StrongSplit:
    if side == "item":  # the masks are over ratings, so those of the transpose serve
        data = Interactions(
            data.item_index, data.user_index, data.ratings, data.item_ids, data.user_ids, allow_negative=True
        )
    return strong_generalisation(data, _HIDDEN, shown, random_state=seed)


def _results(data: Interactions, split: StrongSplit, air: AIR) -> Iterator[tuple[str, dict[str, float]]]:
    train, shown, test = (data.select(mask) for mask in split)
    folding: Any = clone(air)
    anew: Any = clone(air)
    # A table holds no users and items without ratings: the hidden ones are new to the model.
    folding.fit(train.to_frame())
    start = time.perf_counter()
    yield "AIR, fold-in", _result(folding.partial_fit(shown.to_frame()), test, start)
    both = data.select(split.train | split.fold_in)
    for name, model in (("AIR, trained anew", anew), ("BiasModel, trained anew", BiasModel())):
        start = time.perf_counter()
        yield name, _result(model.fit(both), test, start)


def _result(model: Any, test: Interactions, start: float) -> dict[str, float]:
    seconds = time.perf_counter() - start
    predicted = model.predict(test.user_ids[test.user_index], test.item_ids[test.item_index], unknown="mean")
    return {"rmse": rmse(test.ratings, predicted), "seconds": seconds}
