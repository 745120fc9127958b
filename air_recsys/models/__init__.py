"""AIR and the baselines, under one contract."""

from air_recsys.models.air import AIR
from air_recsys.models.base import Recommender
from air_recsys.models.baselines import KNN, BiasModel, GlobalMean, IterativeSVD
from air_recsys.models.dmf import DMF, RDMF, DirichletDMF
from air_recsys.models.graph_ranker.ranker import GraphRanker
from air_recsys.models.pictures.patches import PNMC, PatchAIR

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
