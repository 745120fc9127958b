"""AIR and the baselines, under one contract."""

from air_recsys.models.air import AIR
from air_recsys.models.base import Recommender
from air_recsys.models.baselines import KNN, BiasModel, GlobalMean, IterativeSVD
from air_recsys.models.dmf import DMF, RDMF, DirichletDMF
from air_recsys.models.graph_ranker.ranker import GraphRanker
from air_recsys.models.learned import Factors
from air_recsys.models.pictures.patches import PNMC, PatchAIR
from air_recsys.models.state import FittedState

__all__ = [
    "AIR",
    "DMF",
    "KNN",
    "PNMC",
    "RDMF",
    "BiasModel",
    "DirichletDMF",
    "Factors",
    "FittedState",
    "GlobalMean",
    "GraphRanker",
    "IterativeSVD",
    "PatchAIR",
    "Recommender",
]
