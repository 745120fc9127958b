"""Growth of time and memory with the data, and recovery of planted groups."""

from benchmarks.scale.drug_targets import bench_drug_targets
from benchmarks.scale.likes import LikesSize, bench_likes
from benchmarks.scale.sweeps import SWEEPS, Size, bench_growth, sizes_of
from benchmarks.scale.training import bench_planted

__all__ = [
    "SWEEPS",
    "LikesSize",
    "Size",
    "bench_drug_targets",
    "bench_growth",
    "bench_likes",
    "bench_planted",
    "sizes_of",
]
