"""A score, taken apart: which rated items, similar users and edges speak for it."""

from air_recsys.models.explanation.explain import Labels, explain
from air_recsys.models.explanation.explanation import Contributions, Explanation

__all__ = ["Contributions", "Explanation", "Labels", "explain"]
