"""AIR: collaborative filtering that learns which users and which items are alike."""

from air_recsys.graphs import SimilarityGraph
from air_recsys.interactions import Interactions
from air_recsys.models import AIR, DMF, BiasModel, GlobalMean

__version__ = "0.1.0"

__all__ = ["AIR", "DMF", "BiasModel", "GlobalMean", "Interactions", "SimilarityGraph", "__version__"]
