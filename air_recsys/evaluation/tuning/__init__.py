"""The search for AIR's settings on a part of the training data, with Optuna (needs the extra ``tune``)."""

from air_recsys.evaluation.tuning.runner import METRICS
from air_recsys.evaluation.tuning.space import default_space
from air_recsys.evaluation.tuning.tune import Tuning, tune

__all__ = ["METRICS", "Tuning", "default_space", "tune"]
