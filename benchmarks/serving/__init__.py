"""How many requests a second `air-recsys serve` answers, beside a plain server around another library."""

from benchmarks.serving.requests import bench_serving

__all__ = ["bench_serving"]
