"""Faults: hostile files, flipped bits, killed and signalled trainings, live models, and paths; `n_faults` counts."""

from benchmarks.faults.counts import n_faults
from benchmarks.faults.flips import bench_flips
from benchmarks.faults.fuzz import bench_fuzz
from benchmarks.faults.kills import bench_kills
from benchmarks.faults.live import bench_live
from benchmarks.faults.paths import bench_paths
from benchmarks.faults.signals import bench_signals

__all__ = ["bench_flips", "bench_fuzz", "bench_kills", "bench_live", "bench_paths", "bench_signals", "n_faults"]
