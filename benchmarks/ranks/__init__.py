"""One training shared out over the processes of this machine, beside one process."""

from benchmarks.ranks.processes import run_ranks
from benchmarks.ranks.training import bench_ranks, planted_split

__all__ = ["bench_ranks", "planted_split", "run_ranks"]
