"""The content of the explorer page for one graph, as values that JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from air_recsys.data.interactions import Interactions
from air_recsys.graphs import SimilarityGraph
from air_recsys.report.discs import disc_places
from air_recsys.report.edges import edge_lists, strongest
from air_recsys.report.layout import node_positions
from air_recsys.report.rated import add_ratings

_MAX_EDGES = 200_000  # and at least _EDGES_PER_NODE times the nodes
_EDGES_PER_NODE = 4
_MAX_STEP_EDGES = 20_000  # of an earlier step
_ALL_STEP_EDGES = 60_000  # of all earlier steps
_MAX_COMMUNITIES = 300  # in the graph of communities
_EDGES_PER_COMMUNITY = 3
ISOLATED = -1


def graph_content(
    name: str,
    graph: SimilarityGraph,
    snapshots: Mapping[int, SimilarityGraph],
    max_nodes: int,
    ratings: Interactions | None = None,
) -> dict[str, Any]:
    """Return the ids, labels, attributes, positions, steps and names of communities of one graph.

    `name` is the entry of the page's switch, `snapshots` are the graph at earlier epochs with the same ids. With more
    than `max_nodes` nodes the page draws communities, and nodes have no positions of their own.
    """
    listed = min(_MAX_STEP_EDGES, _ALL_STEP_EDGES // max(1, len(snapshots)))
    steps = [_step(epoch, snapshots[epoch], _MAX_STEP_EDGES, listed) for epoch in sorted(snapshots)]
    shown = strongest(graph, max(_MAX_EDGES, _EDGES_PER_NODE * len(graph)))
    steps.append(_step(None, graph, shown.n_edges, shown.n_edges))
    for step in steps:
        step["communities"] = matched(step["communities"], steps[-1]["communities"]).tolist()
    large = len(graph) > max_nodes
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
    if ratings is not None:
        add_ratings(content, graph, ratings, max_nodes)
    for step in steps[:-1]:
        step["names"] = _names(graph, step["communities"], content["attributes"])
    return content | {"names": _names(graph, steps[-1]["communities"], content["attributes"])}


def matched(labels: list[int], reference: list[int]) -> np.ndarray:
    """Return the labels renamed so that as many nodes as possible have the label of `reference`.

    Examples
    --------
    >>> matched([0, 0, 1, 2, -1], [1, 1, 0, 0, 0])
    array([ 1,  1,  0,  2, -1])
    """
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


def _names(graph: SimilarityGraph, labels: list[int], attributes: dict[str, list[str | None]]) -> list[dict[str, Any]]:
    """Return the name of every community of a step, and what it rests on."""
    counts = attributes.get("number of ratings")
    known = None if counts is None else pd.Series([float(count or 0) for count in counts], index=pd.Index(graph.ids))
    described = graph.describe_communities(pd.Series(labels, index=pd.Index(graph.ids)), known)
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
