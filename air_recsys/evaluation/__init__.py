"""How good a model is: on folds beside others, on ratings held out, on hidden entries of a known matrix."""

from air_recsys.evaluation.comparing import compare
from air_recsys.evaluation.comparison import Comparison

__all__ = ["Comparison", "compare"]
