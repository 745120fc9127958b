"""Planted ratings by size: time and memory, and a full training against the noise floor."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from tqdm import tqdm

from air_recsys.data.sets.planted import PlantedRatings, make_planted_ratings
from air_recsys.evaluation.rating_errors import interval_figures
from air_recsys.evaluation.results.apart import MemoryWatch, ProcessEndedError, run_apart
from air_recsys.exceptions import ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.metrics import rmse
from air_recsys.models import AIR, BiasModel
from air_recsys.splits import random_holdout
from air_recsys.storage.validation import check_choice
from benchmarks.harness import Found, spent_on, told
from benchmarks.speed.sweeps import COUNTED, COUNTED_SWEEPS, epoch_times, sweep_times, takes_sweeps

SIZES = ("n_ratings", "n_users", "n_items", "n_factors", "graph_neighbors")
"""What the time of a training depends on; the last two are parameters of `AIR`."""
_GROUPS = (20, 15)  # of users and of items
_LOUVAIN = 5000  # nodes up to which Louvain takes seconds


def bench_growth(
    threads: int, seed: int, *, base: dict[str, int], sweeps: dict[str, list[int]], settings: dict[str, Any]
) -> Found:
    """Time epochs, or sweeps, of `AIR.for_ratings` on planted ratings of every size, each in a process of its own.

    A size that does not fit into memory has no figures.
    """
    points = points_of(base, sweeps)
    by_sweeps = takes_sweeps(_further(settings))
    rows, lost = [], []
    for name, size in tqdm(points, unit="size", desc="scale growth"):
        same = next((row for row in rows if {key: row[key] for key in SIZES} == size), None)
        if same is not None:
            rows.append(same | {"sweep": name})
            continue
        try:
            rows.append({"sweep": name, **size, **run_apart(measured_size, size, settings, seed, threads=threads)})
        except (ProcessEndedError, MemoryError) as error:
            rows.append({"sweep": name, **size})
            lost.append(f"{told(size)}: {error}")
    times = dict.fromkeys(name for row in rows for name in row if name.endswith("_seconds"))
    slopes = []
    for name in sweeps:
        own = [row for row in rows if row["sweep"] == name]
        x = [row[name] for row in own]
        slopes.append({"sweep": name, "points": len(own), **{time: exponent(x, own, time) for time in times}})
    return Found(rows, slopes, notes=lost, counted=COUNTED_SWEEPS if by_sweeps else COUNTED)


def points_of(base: dict[str, int], sweeps: dict[str, list[int]]) -> list[tuple[str, dict[str, int]]]:
    """What is changed, and the sizes, of every point, all else as in `base`.

    Examples
    --------
    >>> points_of({"n_users": 60, "n_factors": 4}, {"n_factors": [4, 8]})
    [('n_factors', {'n_users': 60, 'n_factors': 4}), ('n_factors', {'n_users': 60, 'n_factors': 8})]
    """
    for name in sweeps:
        check_choice("a sweep", name, SIZES)
    return [(name, base | {name: value}) for name, values in sweeps.items() for value in values]


def exponent(sizes: list[float], rows: Iterable[dict[str, Any]], name: str) -> float:
    """The power p of seconds ~ size^p by least squares on the logarithms; NaN for fewer than two usable sizes.

    Examples
    --------
    >>> round(exponent([1, 10, 100], [{"s": 0.02}, {"s": 0.2}, {"s": 2.0}], "s"), 6)
    1.0
    """
    x, y = np.array(sizes, dtype=float), np.array([row.get(name, math.nan) for row in rows], dtype=float)
    usable = np.isfinite(y) & (y > 0)
    if np.unique(x[usable]).size < 2:
        return math.nan
    return float(np.polyfit(np.log(x[usable]), np.log(y[usable]), 1)[0])


def measured_size(size: dict[str, int], settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Make the ratings, train for a few epochs, and return times in seconds and memory in GiB."""
    data = _made(size, seed).interactions
    memory = MemoryWatch()
    measure = sweep_times if takes_sweeps(settings) else epoch_times
    times = measure({"random_state": seed, "device": "cpu"} | settings | _of_model(size), data)
    return times | {"data_gib": memory.before_gib, "peak_gib": memory.peak_gib()}


def bench_planted(threads: int, seed: int, *, size: dict[str, int], settings: dict[str, Any]) -> Found:
    """Train `AIR.for_ratings` on nine tenths of planted ratings, in a process of its own."""
    errors, groups = run_apart(train_planted, size, _further(settings), seed, threads=threads)
    row_groups, column_groups = _GROUPS
    given = told(_of_model(size) | settings)
    return Found([errors], groups, user_groups=row_groups, item_groups=column_groups, given=given)


def train_planted(
    size: dict[str, int], settings: dict[str, Any], seed: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Make the ratings, train, and return the row of errors and those of the groups."""
    made = _made(size, seed, *_GROUPS)
    split = random_holdout(made.interactions, 0.1, random_state=seed)
    train, test = made.interactions.select(split.train), made.interactions.select(split.test)
    model = AIR.for_ratings(**{"random_state": seed, "device": "cpu"} | settings | _of_model(size))
    _, costs = spent_on(lambda: model.fit(train))
    row = {"seconds": costs["seconds"], "data_gib": costs["before_gib"], "peak_gib": costs["peak_gib"]}
    pairs = test.user_ids[test.user_index], test.item_ids[test.item_index]
    error, biases = (rmse(test.ratings, each.predict(*pairs)) for each in (model, BiasModel().fit(train)))
    floor = rmse(test.ratings, made.expected[split.test])
    row |= {"rmse": error, "biases_rmse": biases, "noise_floor": floor}
    row["share_of_the_way"] = (biases - error) / (biases - floor)
    if takes_sweeps(settings):
        row |= interval_figures(test.ratings, *model.predict(*pairs, return_std=True))
    return row, _recovered(model, made, seed)


def _recovered(model: AIR, made: PlantedRatings, seed: int) -> list[dict[str, Any]]:
    sides = (
        ("user", model.user_adjacency_, model.user_factors_, made.user_groups),
        ("item", model.item_adjacency_, model.item_factors_, made.item_groups),
    )
    rows = []
    for side, learned, factors, groups in sides:
        graph = None if learned is None else SimilarityGraph(learned, range(len(groups)), side)
        n_groups = int(groups.max()) + 1
        k_means = KMeans(n_groups, n_init=3, random_state=seed)  # pyright: ignore[reportArgumentType]
        clusterings = {
            "spectral_nmi": None if graph is None else _spectral(graph, n_groups, seed),
            "louvain_nmi": None if graph is None or len(graph) > _LOUVAIN else graph.communities(seed).to_numpy(),
            "k_means_nmi": k_means.fit_predict(factors),
        }
        nmi = {
            name: math.nan if clusters is None else float(normalized_mutual_info_score(groups, clusters))
            for name, clusters in clusterings.items()
        }
        rows.append({"side": side, "groups": n_groups, **nmi})
    return rows


def _spectral(graph: SimilarityGraph, n_groups: int, seed: int) -> np.ndarray:
    sizes = np.bincount(graph.components().to_numpy())
    # The spectrum cannot join components: where there are more of them than groups, they are the communities.
    wanted = max(n_groups, int((sizes > 1).sum()))
    return graph.communities(seed, method="spectral", n_communities=wanted).to_numpy()


def _made(size: dict[str, int], seed: int, *groups: int) -> PlantedRatings:
    return make_planted_ratings(size["n_users"], size["n_items"], size["n_ratings"], *groups, random_state=seed)


def _of_model(size: dict[str, int]) -> dict[str, int]:
    return {name: size[name] for name in ("n_factors", "graph_neighbors")}


def _further(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a model, which must not be sizes."""
    decided = [name for name in settings if name in SIZES]
    if decided:
        raise ParameterError(f"expected further settings only, found {decided}, which are sizes here")
    return settings
