"""Comparison of AIR's learned graphs and of other graphs with data that the models never saw."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from air_recsys.datasets import load_movielens, load_movielens_genres, load_syn_netflix, load_yamanishi
from air_recsys.evaluation.results import ResultTable
from air_recsys.storage.validation import check_choice, check_integer
from benchmarks.graphs.dti import bench_dti
from benchmarks.graphs.lists import bench_lists
from benchmarks.graphs.movielens import bench_movielens
from benchmarks.graphs.syn_netflix import bench_syn_netflix

GRAPH_SETS = ("syn-netflix", "movielens", "dti", "lists")


def bench_graphs(
    root: Path,
    sets: Collection[str] = GRAPH_SETS,
    *,
    seeds: int = 5,
    n_epochs: int | None = None,
    device: str = "auto",
) -> list[ResultTable]:
    """Measure the graphs of AIR and of its rivals on some data sets.

    Parameters
    ----------
    sets : collection of {"syn-netflix", "movielens", "dti", "lists"}
        "lists": lists of MovieLens-100K, smoothed over graphs.
    seeds : int
        Masks of Syn-Netflix, and hidden parts of the lists.
    n_epochs : int, optional
        Epochs of AIR in place of those of the presets.

    Returns
    -------
    list of ResultTable
        One a set in the order of `GRAPH_SETS`, and the single runs of Syn-Netflix and of the lists.
    """
    check_integer("seeds", seeds, minimum=1)
    for name in sets:
        check_choice("sets", name, GRAPH_SETS)
    settings: dict[str, Any] = {"device": device}
    by_adam = settings | ({} if n_epochs is None else {"n_epochs": n_epochs})
    tables: list[ResultTable] = []
    if "syn-netflix" in sets:
        tables += bench_syn_netflix(load_syn_netflix(root), seeds, by_adam)
    if "movielens" in sets:
        data, genres = load_movielens(root, "100k"), load_movielens_genres(root, "100k")
        tables.append(bench_movielens(data, genres, settings, by_adam))
    if "dti" in sets:
        tables.append(bench_dti({name: load_yamanishi(root, name) for name in ("nr", "gpcr", "ic", "e")}, by_adam))
    if "lists" in sets:
        tables += bench_lists(load_movielens(root, "100k"), seeds, settings, by_adam)
    return tables
