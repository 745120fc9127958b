"""One loop for every model: objective and optimiser in, best state and history out."""

from air_recsys.training.loop import train
from air_recsys.training.plan import Plan
from air_recsys.training.result import Callback, Course, Record, Result
from air_recsys.training.schedules import SCHEDULES

__all__ = ["SCHEDULES", "Callback", "Course", "Plan", "Record", "Result", "train"]
