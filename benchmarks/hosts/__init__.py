"""Our adapters beside the hosts' own models, in one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from air_recsys.datasets import load_movielens
from air_recsys.evaluation.results import ResultTable
from benchmarks.hosts.lists import bench_cornac_lists, bench_implicit, bench_searched, likes_of
from benchmarks.hosts.ratings import bench_cornac, bench_surprise
from benchmarks.hosts.sklearn import bench_sklearn


def bench_host(
    host: str, root: Path | None, *, sets: Sequence[str] = (), seeds: Sequence[int] | None = None
) -> list[ResultTable]:
    """The tables of one host, "surprise", "implicit", "cornac" or "sklearn".

    MovieLens-100K stands for ratings and for lists in Cornac, MovieLens-1M for implicit feedback at equal settings;
    both are read from `root`. scikit-learn brings its own tables. `sets` and `seeds` are of `ImplicitAIR()` beside a
    search of ALS: names in ``hosts.toml``, all where empty, and seeds in place of those there.
    """
    if host == "sklearn":
        return [bench_sklearn()]
    assert root is not None
    if host == "implicit":
        return [bench_implicit(load_movielens(root, "1m")), *bench_searched(likes_of(root, sets, seeds))]
    ratings = load_movielens(root, "100k")
    return [bench_surprise(ratings)] if host == "surprise" else [bench_cornac(ratings), bench_cornac_lists(ratings)]


__all__ = [
    "bench_cornac",
    "bench_cornac_lists",
    "bench_host",
    "bench_implicit",
    "bench_searched",
    "bench_sklearn",
    "bench_surprise",
]
