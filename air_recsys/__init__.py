"""AIR: collaborative filtering that learns which users and which items are alike."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from air_recsys.data.interactions import Interactions
    from air_recsys.graphs import SimilarityGraph
    from air_recsys.models import AIR, DMF, BiasModel, GlobalMean
    from air_recsys.models.loading import load
    from air_recsys.models.ranking.reranking import rerank

__version__ = "0.2.0.dev0"

__all__ = [
    "AIR",
    "DMF",
    "BiasModel",
    "GlobalMean",
    "Interactions",
    "SimilarityGraph",
    "__version__",
    "load",
    "rerank",
]

_HOMES = {
    "AIR": "air_recsys.models",
    "DMF": "air_recsys.models",
    "BiasModel": "air_recsys.models",
    "GlobalMean": "air_recsys.models",
    "Interactions": "air_recsys.data.interactions",
    "SimilarityGraph": "air_recsys.graphs",
    "load": "air_recsys.models.loading",
    "rerank": "air_recsys.models.ranking.reranking",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for (PEP 562): importing the package takes no time."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
