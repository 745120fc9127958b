"""The learned graphs whose layouts are measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from air_recsys.benchmarks.recipes import recipe
from air_recsys.datasets import load_movielens, load_movielens_items, load_syn_netflix
from air_recsys.evaluation.completion import hide
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import AIR

_MISSING = 0.7


def layout_cases(root: Path, settings: dict[str, Any] | None = None) -> dict[str, SimilarityGraph]:
    """Return graphs by name: of the items and users of MovieLens-100K, and of the items and users of Syn-Netflix.

    Parameters
    ----------
    settings : dict, optional
        Parameters of AIR for Syn-Netflix that differ from its recipe.
    """
    films = AIR.for_ratings(random_state=0).fit(load_movielens(root, "100k"))
    used = recipe("syn-netflix")["settings"] | {"random_state": 0} | (settings or {})
    made = AIR.for_completion(**used).fit(hide(load_syn_netflix(root).matrix, _MISSING, 0).observed)
    assert films.item_graph_ is not None and films.user_graph_ is not None  # noqa: PT018
    assert made.item_graph_ is not None and made.user_graph_ is not None  # noqa: PT018
    return {
        "MovieLens-100K items": films.item_graph_.with_attributes(load_movielens_items(root, "100k"), "title"),
        "MovieLens-100K users": films.user_graph_,
        "Syn-Netflix items": made.item_graph_,
        "Syn-Netflix users": made.user_graph_,
    }
