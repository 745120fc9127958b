"""One loop for every model: objective and optimiser in, best state and history out."""

from air_recsys.training.loop import Callback, Plan, Record, Result, train
from air_recsys.training.schedules import SCHEDULES

__all__ = ["SCHEDULES", "Callback", "Plan", "Record", "Result", "train"]
