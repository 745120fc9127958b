"""Faults: broken and hostile files, `bench_fuzz`, and trainings that are killed, `bench_kills`."""

from air_recsys.benchmarks.faults.fuzz import bench_fuzz
from air_recsys.benchmarks.faults.kills import bench_kills

__all__ = ["bench_fuzz", "bench_kills"]
