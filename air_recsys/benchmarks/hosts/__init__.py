"""Our adapters beside the hosts' own models, in one run."""

from __future__ import annotations

from pathlib import Path

from air_recsys.benchmarks.hosts.cornac import bench_cornac
from air_recsys.benchmarks.hosts.implicit import bench_implicit
from air_recsys.benchmarks.hosts.sklearn import bench_sklearn
from air_recsys.benchmarks.hosts.surprise import bench_surprise
from air_recsys.datasets import load_movielens
from air_recsys.results import ResultTable


def bench_host(host: str, root: Path | None) -> ResultTable:
    """Return the table of one host, "surprise", "implicit", "cornac" or "sklearn".

    MovieLens-100K stands for ratings, MovieLens-1M for implicit feedback; both are read from `root`. scikit-learn
    brings its own tables.
    """
    if host == "sklearn":
        return bench_sklearn()
    assert root is not None
    if host == "implicit":
        return bench_implicit(load_movielens(root, "1m"))
    ratings = load_movielens(root, "100k")
    return bench_surprise(ratings) if host == "surprise" else bench_cornac(ratings)


__all__ = ["bench_cornac", "bench_host", "bench_implicit", "bench_sklearn", "bench_surprise"]
