"""One course of training for every solver: records, validation, checkpoints, and what ends it."""

from air_recsys.training.course import train
from air_recsys.training.descent import GradientDescent
from air_recsys.training.plan import Plan
from air_recsys.training.result import Callback, Record, Result, check_callbacks
from air_recsys.training.schedules import SCHEDULES
from air_recsys.training.sweeps import PosteriorSweeps
from air_recsys.training.trainee import Trainee

__all__ = [
    "SCHEDULES",
    "Callback",
    "GradientDescent",
    "Plan",
    "PosteriorSweeps",
    "Record",
    "Result",
    "Trainee",
    "check_callbacks",
    "train",
]
