"""AIR and the baselines, under one contract."""

from air_recsys.models.air import AIR
from air_recsys.models.base import Recommender
from air_recsys.models.baselines import BiasModel, GlobalMean
from air_recsys.models.dmf import DMF, RDMF, DirichletDMF
from air_recsys.models.knn import KNN
from air_recsys.models.patch_air import PatchAIR
from air_recsys.models.pnmc import PNMC
from air_recsys.models.ranking import GraphRanker
from air_recsys.models.svd import IterativeSVD

__all__ = [
    "AIR",
    "DMF",
    "KNN",
    "PNMC",
    "RDMF",
    "BiasModel",
    "DirichletDMF",
    "GlobalMean",
    "GraphRanker",
    "IterativeSVD",
    "PatchAIR",
    "Recommender",
]
