"""The learned graphs whose layouts are measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from air_recsys.datasets import load_movielens, load_movielens_items, load_syn_netflix
from air_recsys.evaluation.completion import hide
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import AIR
from benchmarks.paper.recipes import settings_of

_MISSING = 0.7


def layout_cases(root: Path, settings: dict[str, Any] | None = None) -> dict[str, SimilarityGraph]:
    """Return graphs by name: of the items and users of MovieLens-100K, and of the items and users of Syn-Netflix.

    Parameters
    ----------
    settings : dict, optional
        Parameters of AIR for Syn-Netflix that differ from its recipe.
    """
    films = AIR.for_ratings(random_state=0).fit(load_movielens(root, "100k"))
    used = settings_of("ours", "syn-netflix-70", "AIR") | {"random_state": 0} | (settings or {})
    made = AIR.for_completion(**used).fit(hide(load_syn_netflix(root).matrix, _MISSING, 0).observed)
    return {
        "MovieLens-100K items": _learned(films, "item").with_attributes(load_movielens_items(root, "100k"), "title"),
        "MovieLens-100K users": _learned(films, "user"),
        "Syn-Netflix items": _learned(made, "item"),
        "Syn-Netflix users": _learned(made, "user"),
    }


def _learned(model: AIR, side: Literal["user", "item"]) -> SimilarityGraph:
    adjacency, data = getattr(model, f"{side}_adjacency_"), model.interactions_
    return SimilarityGraph(adjacency, data.user_ids if side == "user" else data.item_ids, side)
