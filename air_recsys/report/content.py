"""The content of the explorer page for one graph, as values that JSON can hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.graph_quality import counts_and_means, exposure, rated_rows
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.pruning import common_counts, ranked
from air_recsys.models import Recommender
from air_recsys.models.deviations import PredictsDeviations
from air_recsys.report.layout import node_positions

_MAX_EDGES = 200_000  # and at least _EDGES_PER_NODE times the nodes
_EDGES_PER_NODE = 4
_MAX_STEP_EDGES = 20_000  # of an earlier step
_ALL_STEP_EDGES = 60_000  # of all earlier steps
_MAX_COMMUNITIES = 300  # in the graph of communities
_EDGES_PER_COMMUNITY = 3
ISOLATED = -1
N_STAGES = 3


def graph_content(
    name: str,
    graph: SimilarityGraph,
    snapshots: Mapping[int, SimilarityGraph],
    max_nodes: int,
    ratings: Interactions | None = None,
    tell: Callable[[str], None] = lambda stage: None,
) -> dict[str, Any]:
    """Return the ids, labels, attributes, positions, steps and names of communities of one graph.

    `name` is the entry of the page's switch, `snapshots` are the graph at earlier epochs with the same ids. With more
    than `max_nodes` nodes the page draws communities, and nodes have no positions of their own. `tell` hears of each
    of the `N_STAGES` stages as it begins.
    """
    tell(f"communities of {name}")
    listed = min(_MAX_STEP_EDGES, _ALL_STEP_EDGES // max(1, len(snapshots)))
    steps = [_step(epoch, snapshots[epoch], _MAX_STEP_EDGES, listed) for epoch in sorted(snapshots)]
    shown = shown_part(graph)
    steps.append(_step(None, graph, shown.n_edges, shown.n_edges))
    for step in steps:
        step["communities"] = matched(step["communities"], steps[-1]["communities"]).tolist()
    large = len(graph) > max_nodes
    tell(f"positions of {name}")
    content = {
        "name": name,
        "kind": graph.kind,
        "ids": [str(id) for id in graph.ids.tolist()],
        "labels": graph.labels.tolist(),
        "attributes": _attributes(graph),
        "positions": None if large else node_positions(shown).round(3).tolist(),
        "overview": _overview(shown, np.array(steps[-1]["communities"])) if large else None,
        "steps": steps,
    }
    tell(f"names and ratings of {name}")
    if ratings is not None:
        add_ratings(content, graph, ratings, max_nodes)
    for step in steps[:-1]:
        step["names"] = _names(graph, step["communities"], content["attributes"])
    return content | {"names": _names(graph, steps[-1]["communities"], content["attributes"])}


def matched(labels: list[int], reference: list[int]) -> np.ndarray:
    """Return the labels renamed so that as many nodes as possible have the label of `reference`."""
    from scipy.optimize import linear_sum_assignment

    own, other = np.array(labels, dtype=np.int64), np.array(reference, dtype=np.int64)
    size = max(own.max(initial=-1), other.max(initial=-1)) + 1
    both = (own >= 0) & (other >= 0)
    together = sp.coo_array((np.ones(both.sum()), (own[both], other[both])), shape=(size, size))
    names = np.append(linear_sum_assignment(together.toarray(), maximize=True)[1], ISOLATED)
    return names[own]


def _step(epoch: int | None, graph: SimilarityGraph, divided: int, listed: int) -> dict[str, Any]:
    """Return one step: communities of so many of the strongest edges, and lists of so many of them."""
    whole = strongest(graph, divided)
    return {
        "epoch": epoch,
        "n_edges": graph.n_edges,
        **edge_lists(strongest(whole, listed)),
        "communities": communities(whole).tolist(),
    }


def communities(graph: SimilarityGraph) -> np.ndarray:
    """Return the community of every node, shape (n,), -1 for isolated nodes."""
    labels = graph.communities().to_numpy().copy()
    labels[np.diff(graph.to_scipy().indptr) == 0] = ISOLATED
    return labels


def shown_part(graph: SimilarityGraph) -> SimilarityGraph:
    """Return the edges that a page holds, whose communities it shows."""
    return strongest(graph, max(_MAX_EDGES, _EDGES_PER_NODE * len(graph)))


def community_names(graph: SimilarityGraph, labels: np.ndarray, counts: np.ndarray | None) -> pd.DataFrame:
    """Return a row for every community with its name, as all pages have it; `counts` are those of ratings."""
    index = pd.Index(graph.ids)
    known = None if counts is None else pd.Series(counts, index=index)
    return graph.describe_communities(pd.Series(labels, index=index), known)


def _names(graph: SimilarityGraph, labels: list[int], attributes: dict[str, list[str | None]]) -> list[dict[str, Any]]:
    """Return the name of every community of a step, and what it rests on."""
    counts = attributes.get("number of ratings")
    known = None if counts is None else np.array([float(count or 0) for count in counts])
    described = community_names(graph, np.array(labels), known)
    columns = ["community", "name", "trait", "share", "share_of_all", "p_value", "members"]
    rows = described.loc[:, columns].to_dict("records")
    return [{str(name): None if value != value else value for name, value in row.items()} for row in rows]


def _overview(graph: SimilarityGraph, labels: np.ndarray) -> dict[str, Any]:
    """Return a graph of communities: sizes, discs for the members, and the largest summed weights between them."""
    n_shown = min(_MAX_COMMUNITIES, int(labels.max(initial=-1)) + 1)
    inside = np.flatnonzero((labels >= 0) & (labels < n_shown))
    member = sp.csr_array((np.ones(inside.size), (inside, labels[inside])), shape=(len(graph), n_shown))
    between = sp.triu(member.T @ graph.to_scipy() @ member, k=1)
    whole = SimilarityGraph(between + between.T, range(n_shown), kind="community")
    sizes = np.bincount(labels[inside], minlength=n_shown)
    positions, radii = disc_places(node_positions(whole), sizes)
    return {
        "sizes": sizes.tolist(),
        "positions": positions.round(3).tolist(),
        "radii": radii.round(3).tolist(),
        **edge_lists(strongest(whole, _EDGES_PER_COMMUNITY * n_shown)),
    }


def _attributes(graph: SimilarityGraph) -> dict[str, list[str | None]]:
    return {
        str(name): [_text(value) for value in column.tolist()]
        for name, column in graph.attributes.items()
        if name != graph.label
    }


def _text(value: Any) -> str | None:
    """Return a value as people write it; a column of integers becomes one of floats where one is missing."""
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    if not isinstance(value, float):
        return str(value)
    return str(int(value)) if value.is_integer() else f"{value:.4g}"


def strongest(graph: SimilarityGraph, limit: int) -> SimilarityGraph:
    """Return the graph with the edges that are among the k largest at one of their ends, k as large as `limit` allows.

    Every node keeps its best edge, so more than `limit` edges remain where there are as many nodes.
    """
    if graph.n_edges <= limit:
        return graph
    entries, support = graph.to_scipy().tocoo(), graph.support
    rows, order = ranked(graph.to_scipy(), None if support is None else support.data)
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(graph)))[:-1]))
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size) - starts[rows[order]]
    ranks = sp.csr_array((rank + 1, (entries.row, entries.col)), shape=entries.shape)
    best = sp.triu(ranks.minimum(ranks.T), k=1).tocoo()
    k = max(1, int(np.searchsorted(np.cumsum(np.bincount(best.data)), limit, side="right")) - 1)
    return graph.top(k)


def edge_lists(graph: SimilarityGraph) -> dict[str, Any]:
    """Return both ends and the weight of every edge, largest weights first."""
    edges = graph.strongest_first()
    return {
        "sources": edges.row.tolist(),
        "targets": edges.col.tolist(),
        "weights": [float(f"{weight:.4g}") for weight in edges.data],
    }


_COVERED = 0.35  # share of the box around all centres that the discs take
_GAP = 0.1  # between two discs, of the mean radius
_ROUNDS = 300  # most, of moves apart


def disc_places(positions: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return centres (n, 2) and radii (n,) of discs near given positions, none over another.

    Their areas are as `sizes`. Discs that lie over each other move apart, again and again, the smaller one more.
    """
    if not len(positions):
        return positions, np.zeros(0)
    sides = np.maximum(np.ptp(positions, axis=0), 1.0)
    radii = np.sqrt(_COVERED * sides.prod() * sizes / (np.pi * sizes.sum()))
    reach = radii + 0.5 * _GAP * radii.mean()
    masses = radii**2
    centres = positions.astype(np.float64)
    for _ in range(_ROUNDS):
        along = centres[None] - centres[:, None]  # (n, n, 2), from the first to the second
        distance = np.linalg.norm(along, axis=2)
        overlap = np.triu(reach[:, None] + reach - distance, k=1)
        first, second = np.nonzero(overlap > 1e-6)
        if not first.size:
            break
        angle = 2.4 * first  # those at one place part in all directions
        same = np.column_stack((np.cos(angle), np.sin(angle)))
        length = distance[first, second][:, None]
        unit = np.where(length > 1e-9, along[first, second] / np.maximum(length, 1e-9), same)
        move = (1.01 * overlap[first, second])[:, None] * unit
        share = (masses[second] / (masses[first] + masses[second]))[:, None]
        np.subtract.at(centres, first, share * move)
        np.add.at(centres, second, (1 - share) * move)
    return centres, radii


_MAX_PATTERN_EDGES = 20_000


def add_ratings(content: dict[str, Any], graph: SimilarityGraph, ratings: Interactions, max_nodes: int) -> None:
    """Add to the content of a graph: attributes of the nodes, common ratings of the edges, and exposure."""
    rows = rated_rows(graph, ratings)
    counts, means = counts_and_means(rows)
    content["attributes"]["number of ratings"] = [str(count) for count in counts.tolist()]
    if np.ptp(ratings.ratings) > 0:
        content["attributes"]["mean rating"] = [None if np.isnan(mean) else f"{mean:.3g}" for mean in means.tolist()]
    for step in content["steps"]:
        step["shared"] = common_counts(rows, step["sources"], step["targets"]).tolist()
    content["raters"] = "users" if graph.kind == "item" else "items"
    if len(graph) <= max_nodes:
        labels = pd.Series(content["steps"][-1]["communities"], index=pd.Index(graph.ids))
        found = exposure(graph, ratings, labels)
        content["pattern"] = found.pattern.tolist()
        by_pattern = strongest(SimilarityGraph(found.pattern_edges, graph.ids, graph.kind), _MAX_PATTERN_EDGES)
        lists = edge_lists(by_pattern)
        shared = common_counts(rows, lists["sources"], lists["targets"]).tolist()
        content["pattern_edges"] = {"n_edges": found.pattern_edges.nnz // 2, **lists, "shared": shared}
        content["nmi"] = {name: round(value, 3) for name, value in found.nmi.items()}


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
