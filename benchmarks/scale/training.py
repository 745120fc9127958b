"""A full training on planted ratings: its error against the noise floor, and its recovery of the groups."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from air_recsys.data.sets.planted import PlantedRatings, make_planted_ratings
from air_recsys.evaluation.rating_errors import interval_figures
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import MemoryWatch, run_apart
from air_recsys.graphs import SimilarityGraph
from air_recsys.metrics import rmse
from air_recsys.models import AIR, BiasModel
from air_recsys.splits import random_holdout
from benchmarks.scale.sweeps import Size, check_further, takes_sweeps

_GROUPS = (20, 15)  # of users and of items
_HELD_OUT = 0.1
_LOUVAIN = 5000  # nodes up to which Louvain takes seconds


def bench_planted(
    size: Size, settings: dict[str, Any], *, seed: int = 0, threads: int = 1
) -> tuple[ResultTable, ResultTable]:
    """Train `AIR.for_ratings` on nine tenths of planted ratings, in a process of its own.

    Parameters
    ----------
    settings : dict
        Further parameters of `AIR`, not those of `Size`.
    seed : int
        Of data, split, start and clusterings.

    Returns
    -------
    ResultTable
        RMSE on the rest of AIR and of biases alone, the noise floor, and the share of the way from the one to the
        other; seconds and memory; of a posterior, the share of the ratings inside of 90 % intervals and their width.
    ResultTable
        Normalised mutual information with the planted groups, a row a side: of communities of the learned graph, by
        the spectrum (which is told how many groups there are) and, for small graphs, by Louvain; and of k-means of the
        factors (told as well).
    """
    check_further(settings)
    errors, groups = run_apart(train_planted, size, settings, seed, threads=threads)
    given = ", ".join(f"{key}={value}" for key, value in {**size.settings, **settings}.items())
    protocol = (
        f"{size.n_ratings} planted ratings of {size.n_users} users and {size.n_items} items in {_GROUPS[0]} and "
        f"{_GROUPS[1]} groups, a random tenth held out, seed {seed}; AIR.for_ratings({given}), CPU, "
        f"{threads} thread(s)"
    )
    note = "noise_floor: of the means that the ratings were drawn around, which no model can beat but by chance"
    recovered = ResultTable("Planted groups found again", protocol, groups)
    return ResultTable("Error on planted ratings", protocol, errors, [note]), recovered


def train_planted(
    size: Size, settings: dict[str, Any], seed: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Make the ratings, train, and return the rows of both tables."""
    made = make_planted_ratings(size.n_users, size.n_items, size.n_ratings, *_GROUPS, random_state=seed)
    split = random_holdout(made.interactions, _HELD_OUT, random_state=seed)
    train, test = made.interactions.select(split.train), made.interactions.select(split.test)
    floor = rmse(test.ratings, made.expected[split.test])
    memory = MemoryWatch()
    start = time.perf_counter()
    model = AIR.for_ratings(**{"random_state": seed, "device": "cpu"} | settings | size.settings).fit(train)
    row = {"seconds": time.perf_counter() - start, "data_gib": memory.before_gib, "peak_gib": memory.peak_gib()}
    pairs = test.user_ids[test.user_index], test.item_ids[test.item_index]
    error, biases = (rmse(test.ratings, each.predict(*pairs)) for each in (model, BiasModel().fit(train)))
    row |= {"rmse": error, "biases_rmse": biases, "noise_floor": floor}
    row["share_of_the_way"] = (biases - error) / (biases - floor)
    if takes_sweeps(settings):
        row |= interval_figures(test.ratings, *model.predict(*pairs, return_std=True))
    return [row], _recovered(model, made, seed)


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
        nmi = {name: _nmi(groups, clusters) for name, clusters in clusterings.items()}
        rows.append({"side": side, "groups": n_groups, **nmi})
    return rows


def _nmi(groups: np.ndarray, clusters: np.ndarray | None) -> float:
    return float("nan") if clusters is None else float(normalized_mutual_info_score(groups, clusters))


def _spectral(graph: SimilarityGraph, n_groups: int, seed: int) -> np.ndarray:
    sizes = np.bincount(graph.components().to_numpy())
    # The spectrum cannot join components: where there are more of them than groups, they are the communities.
    wanted = max(n_groups, int((sizes > 1).sum()))
    return graph.communities(seed, method="spectral", n_communities=wanted).to_numpy()
