"""How unsure a model is of each node of its graphs, as attributes for the explorer."""

from __future__ import annotations

from collections.abc import Mapping

from air_recsys.graphs import SimilarityGraph
from air_recsys.models import Recommender
from air_recsys.models.deviations import PredictsDeviations

Measures = Mapping[str, list[str | None]]
"""Texts of attributes, one a node, by their names."""


def uncertainties(model: Recommender, graphs: Mapping[str, SimilarityGraph]) -> dict[str, Measures]:
    """Return the attribute "uncertainty" of the graphs of a model with a posterior, by the names of the graphs.

    See `air_recsys.models.deviations.PredictsDeviations.uncertainty` for the definition.
    """
    if not (isinstance(model, PredictsDeviations) and model.knows_deviations_):
        return {}
    found: dict[str, Measures] = {}
    for name, graph in graphs.items():
        values = model.uncertainty("user" if graph.kind == "user" else "item").loc[graph.ids]
        found[name] = {"uncertainty": [f"{value:.3g}" for value in values.tolist()]}
    return found


def add_measures(attributes: dict[str, list[str | None]], measures: Measures) -> None:
    """Add measures to the attributes of a graph; what a table of titles has under such a name stays."""
    for name, values in measures.items():
        attributes.setdefault(name, values)
