"""The section of a model's report on what it found out about its data beside factors and graphs."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd

from air_recsys.exceptions import DataError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import AIR, GraphRanker, Recommender
from air_recsys.models.carried import CarriedResiduals
from air_recsys.models.presets import PRESETS, OffersPresets
from air_recsys.report.charts import panel
from air_recsys.report.content import communities as communities_of
from air_recsys.report.content import community_names, shown_part
from air_recsys.report.document import Markup, element, gallery, picture, section, table
from air_recsys.report.plots import community_table, effective_neighbors, plot_adjacency, plot_degrees, plot_weights
from air_recsys.report.sections import Name, note
from air_recsys.storage.estimator import Estimator

_MOST_EFFECTS = 12
_SIDES: tuple[Literal["user", "item"], ...] = ("user", "item")


def learned_section(model: Recommender) -> Markup | None:
    """Return strengths, noise, time scales and effects of features; None for a model that has none of them."""
    parts = [*_search(model), *_strengths(model), *_drift(model)]
    for side in _SIDES:
        parts += _effects(model, side)
    return section("learned", "What else was learned", *parts) if parts else None


def _search(model: Recommender) -> list[Markup]:
    line = getattr(model, "search_line_", "")
    parts = [element("p", f"{line[:1].upper()}{line[1:].rstrip('.')}.")] if line else []
    if isinstance(model, GraphRanker):
        rows = [(f"{name}", float(weight)) for name, weight in model.settings_.weights.items()]
        parts.append(table("How much each part of a score counts", ["part", "weight"], rows))
    return parts


def _strengths(model: Recommender) -> list[Markup]:
    rows: list[tuple[str, Any]] = []
    history = model.history_
    if "noise" in history and not history.empty:
        rows.append(("noise: standard deviation of a rating around its score", float(history["noise"].iloc[-1])))
    for side in _SIDES:
        strength = getattr(model, f"{side}_graph_strength_", 0.0)
        if strength:
            rows.append((f"share of the prior variance of {side}s that follows the given similarities", strength))
    settings = getattr(model, "settings_", {})
    if isinstance(settings, dict):
        rows += [(f"{name} (was 'auto')", value) for name, value in settings.items()]
    carried = getattr(model, "carried_", None)
    if isinstance(carried, CarriedResiduals):
        rows += carried.further_strengths()
        told = ("RMSE of ratings left out: factors alone", "RMSE of ratings left out: with the item graph")
        rows += zip(told, model.carried_errors_ or (), strict=False)
    return [table("Estimated from the ratings", ["what", "value"], [_shown(row) for row in rows])] if rows else []


def _shown(row: tuple[str, Any]) -> tuple[str, Any]:
    name, value = row
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return name, value if is_number else repr(value)


def _drift(model: Recommender) -> list[Markup]:
    drift = getattr(model, "drift_", None)
    if drift is None or drift.empty:
        return []
    rows = drift[["side", "lasts", "deviation"]].itertuples(index=False, name=None)
    columns = ["of", "lasts (unit of the timestamps)", "deviation"]
    return [table("Changes of users and items over time", columns, rows)]


def _effects(model: Recommender, side: Literal["user", "item"]) -> list[Markup]:
    try:
        effects: pd.DataFrame = getattr(model, "feature_effects", _no_effects)(side)
    except DataError:
        return []
    largest = np.argsort(-effects["effect"].abs().to_numpy(), kind="stable")[:_MOST_EFFECTS]
    shown = effects.iloc[np.sort(largest)]  # the largest effect first, as in the table
    rows = [(row["feature"], f"{row['effect']:+.3f}", float(row["spread"])) for row in shown.to_dict("records")]
    caption = f"Effects of features of {side}s on a score"
    caption += f": the largest {len(rows)} of {len(effects)}" if len(rows) < len(effects) else ""
    return [table(caption, ["feature", "effect", "spread over those who rate"], rows)]


def _no_effects(side: str) -> pd.DataFrame:
    raise DataError(f"expected features of {side}s, found none")


_N_COMMUNITIES = 15
_N_MEMBERS = 5
_LARGEST = 50_000  # nodes


def graph_section(graph: SimilarityGraph | None, kind: str, name: Name, counts: np.ndarray | None = None) -> Markup:
    """Return one graph: heatmap, communities with their most connected members, neighbours and weights.

    `kind` is "user" or "item", `name` turns an id into what people call it, and `counts` are those of the ratings.
    """
    title = f"Who is alike: the {kind} graph"
    if graph is None:
        return section(f"{kind}s", title, note(f"This model has learned no graph of {kind}s."))
    degrees = np.diff(graph.to_scipy().indptr)
    isolated = int(np.count_nonzero(degrees == 0))
    lead = (
        f"{len(graph):,} {kind}s, {graph.n_edges:,} edges, {isolated:,} {kind}s without any. On average {_one(kind)} "
        f"has {degrees.mean():.1f} neighbours, with an effective number of {effective_neighbors(graph).mean():.1f} "
        "(the exponential of the entropy of a node's weights)."
    )
    if graph.n_edges == 0:
        return section(f"{kind}s", title, element("p", lead), note("There is nothing to draw."))
    return section(f"{kind}s", title, element("p", lead), *_communities(graph, name, counts))


def _one(kind: str) -> str:
    return f"an {kind}" if kind[:1] in "aeio" else f"a {kind}"


def _communities(graph: SimilarityGraph, name: Name, counts: np.ndarray | None) -> list[Any]:
    if len(graph) > _LARGEST:
        left_out = note(f"More than {_LARGEST:,} nodes: communities are left out of this page.")
        return [left_out, gallery(*_distributions(graph))]
    shown = shown_part(graph)
    few = shown.n_edges < graph.n_edges
    notes = [note(f"Communities are those of the {shown.n_edges:,} strongest edges.")] if few else []
    communities = shown.communities()
    named = community_names(graph, communities_of(shown), counts)
    described = dict(zip(named["community"].tolist(), named["name"].tolist(), strict=True))
    heatmap = picture(
        panel(plot_adjacency, shown, communities=communities, size=(3.9, 3.4)),
        f"Heatmap of the weights of all pairs of {graph.kind}s, sorted by {communities.nunique()} communities.",
        f"Weights of all pairs of {graph.kind}s, sorted by {communities.nunique():,} communities; lines divide them.",
    )
    return [
        *notes,
        gallery(heatmap, *_distributions(graph)),
        _community_rows(graph, community_table(shown, communities, _N_MEMBERS), name, described),
    ]


def _community_rows(
    graph: SimilarityGraph, communities: pd.DataFrame, name: Name, described: dict[int, str]
) -> Markup:
    shown = communities.head(_N_COMMUNITIES)
    rows = [
        [described[row["community"]], row["size"], f"{row['inside']:.0%}", ", ".join(map(name, row["members"]))]
        for row in shown.to_dict("records")
    ]
    caption = f"Communities of {graph.kind}s"
    if len(communities) > len(shown):
        caption += f": the largest {len(shown)} of {len(communities)} with two members or more"
    return table(caption, ["community", f"{graph.kind}s", "weight inside", "most connected"], rows)


def _distributions(graph: SimilarityGraph) -> list[Markup]:
    weights = graph.to_scipy().data
    degrees = picture(
        panel(plot_degrees, graph),
        f"Histogram of the neighbours of {_one(graph.kind)}.",
        f"Number and effective number of neighbours of {_one(graph.kind)}.",
    )
    text = f"Histogram of weights of edges from {weights.min():.2g} to {weights.max():.2g}."
    return [degrees, picture(panel(plot_weights, graph), text, "Weights of the edges.")]


def parameters_section(model: Estimator) -> Markup:
    """Return the parameters that differ from the nearest preset or from the defaults, and the others folded away."""
    given = _values(model)
    name, expected = _nearest(model, given)
    changed = [key for key in given if repr(given[key]) != repr(expected.get(key))]
    kept = [key for key in given if key not in changed]
    parts = [element("p", f"{name}{':' if changed else '. All parameters have its values.'}")]
    if changed:
        rows = [(element("code", key), repr(given[key]), repr(expected.get(key))) for key in changed]
        parts.append(table("Parameters with another value", ["parameter", "value", "value there"], rows))
    if kept:
        rows = [(element("code", key), repr(given[key])) for key in kept]
        summary = element("summary", f"{len(kept)} parameters with the same value")
        parts.append(
            element("details", summary, table("Parameters with the same value", ["parameter", "value"], rows))
        )
    return section("parameters", "Parameters", *parts)


def _values(model: Estimator) -> dict[str, Any]:
    """Return all parameters, those of a solver in the place of the solver."""
    values = model.get_params(deep=True)
    nested = {key.partition("__")[0] for key in values if "__" in key}
    return {key: type(value).__name__ if key in nested else value for key, value in values.items()}


def _nearest(model: Estimator, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the start that the fewest parameters differ from, as people write it, and its parameters."""
    kind = type(model)
    starts: dict[str, Any] = {f"{kind.__name__}()": kind()}
    if issubclass(kind, OffersPresets):
        starts |= {f"{kind.__name__}.for_{name}()": kind.of_preset(name) for name in PRESETS}
        starts |= {f"{kind.__name__}.auto()": kind.auto()} if issubclass(kind, AIR) else {}

    def distance(name: str) -> int:
        expected = _values(starts[name])
        return sum(repr(value) != repr(expected.get(key)) for key, value in given.items())

    nearest = min(starts, key=distance)
    return f"As {nearest}", _values(starts[nearest])
