"""Faults: hostile files, flipped bits, killed and signalled trainings, live models, and paths; `n_faults` counts."""

from air_recsys.benchmarks.faults.counts import n_faults
from air_recsys.benchmarks.faults.flips import bench_flips
from air_recsys.benchmarks.faults.fuzz import bench_fuzz
from air_recsys.benchmarks.faults.kills import bench_kills
from air_recsys.benchmarks.faults.live import bench_live
from air_recsys.benchmarks.faults.paths import bench_paths
from air_recsys.benchmarks.faults.signals import bench_signals

__all__ = ["bench_flips", "bench_fuzz", "bench_kills", "bench_live", "bench_paths", "bench_signals", "n_faults"]
