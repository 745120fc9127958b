"""Training on several machines: rows shared out over ranks, checkpoints that any number of ranks can read."""

from air_recsys.distributed.on_ray import fit_on_ray
from air_recsys.distributed.parquet_ratings import ParquetRatings
from air_recsys.distributed.planning import Cost, SweepCost, plan, plan_sweeps
from air_recsys.distributed.training import fit
from air_recsys.exceptions import CheckpointError, DistributedError

__all__ = [
    "CheckpointError",
    "Cost",
    "DistributedError",
    "ParquetRatings",
    "SweepCost",
    "fit",
    "fit_on_ray",
    "plan",
    "plan_sweeps",
]
