"""AIR and the baselines, under one contract."""

from air_recsys.models.air import AIR
from air_recsys.models.base import Recommender
from air_recsys.models.baselines import BiasModel, GlobalMean
from air_recsys.models.dmf import DMF, RDMF, DirichletDMF
from air_recsys.models.graph_ranker.ranker import GraphRanker
from air_recsys.models.pictures.knn import KNN
from air_recsys.models.pictures.patch_air import PatchAIR
from air_recsys.models.pictures.pnmc import PNMC
from air_recsys.models.pictures.svd import IterativeSVD

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
