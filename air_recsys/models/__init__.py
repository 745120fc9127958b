"""AIR and the baselines, under one contract."""

from air_recsys.models.air import AIR
from air_recsys.models.base import Recommender
from air_recsys.models.baselines import BiasModel, GlobalMean
from air_recsys.models.dmf import DMF, RDMF, DirichletDMF

__all__ = ["AIR", "DMF", "RDMF", "BiasModel", "DirichletDMF", "GlobalMean", "Recommender"]
