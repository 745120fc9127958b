"""AIR and the baselines, under one contract."""

from air_recsys.models.air import AIR
from air_recsys.models.base import Recommender
from air_recsys.models.baselines import DMF, BiasModel, GlobalMean

__all__ = ["AIR", "DMF", "BiasModel", "GlobalMean", "Recommender"]
