"""Speed of the library: steps and sweeps, time to an accuracy, and ratings beside other libraries."""

from benchmarks.speed.accuracy import bench_accuracy, time_to_accuracy
from benchmarks.speed.ratings import SPLIT, bench_ratings, contenders, movielens_split
from benchmarks.speed.ratings_step import bench_ratings_step
from benchmarks.speed.sweep import bench_sweep
from benchmarks.speed.width import bench_full_width

__all__ = [
    "SPLIT",
    "bench_accuracy",
    "bench_full_width",
    "bench_ratings",
    "bench_ratings_step",
    "bench_sweep",
    "contenders",
    "movielens_split",
    "time_to_accuracy",
]
