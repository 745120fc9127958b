"""One course of training for every solver: records, validation, checkpoints, and what ends it."""

from air_recsys.training.course import train
from air_recsys.training.descent import GradientDescent
from air_recsys.training.plan import SCHEDULES, Plan
from air_recsys.training.sweeps import PosteriorSweeps
from air_recsys.training.trainer import Callback, Record, Result, Trainer, check_callbacks

__all__ = [
    "SCHEDULES",
    "Callback",
    "GradientDescent",
    "Plan",
    "PosteriorSweeps",
    "Record",
    "Result",
    "Trainer",
    "check_callbacks",
    "train",
]
