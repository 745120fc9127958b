"""What becomes of broken and hostile files: `bench_fuzz`."""

from air_recsys.benchmarks.faults.fuzz import bench_fuzz

__all__ = ["bench_fuzz"]
