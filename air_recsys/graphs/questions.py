"""Questions to a graph: why two nodes are alike, what lies between two groups, where a new node belongs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.ids import IdIndex, as_id_array
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError
from air_recsys.graphs.analysis import AnalysedGraph
from air_recsys.graphs.naming import traits_of
from air_recsys.graphs.weighted import WeightedGraph

_NAMED = 3  # in a sentence


@dataclass(frozen=True, repr=False)
class Answer:
    """An answer: `text`, some sentences, and `tables` by name, which it rests on."""

    text: str
    tables: dict[str, pd.DataFrame]

    def __repr__(self) -> str:
        shown = [f"{name}\n{table.to_string(index=False)}" for name, table in self.tables.items() if len(table)]
        return "\n\n".join([self.text, *shown])


def rated_rows(graph: WeightedGraph, ratings: Interactions) -> sp.csr_array:
    """The ratings with a row for every node of a graph of items or users, shape (n, m), or `DataError`."""
    if graph.kind not in ("item", "user"):
        raise DataError(f"expected a graph of items or users beside ratings, found one of {graph.kind}s")
    ids = ratings.item_ids if graph.kind == "item" else ratings.user_ids
    places = IdIndex(ids, graph.kind).lookup(graph.ids)
    if (places < 0).any():
        raise DataError(f"expected ratings of all nodes, found no {graph.kind} {graph.ids[places < 0].tolist()[0]!r}")
    table = ratings.to_csr()
    return sp.csr_array((table.T.tocsr() if graph.kind == "item" else table)[places])


def about_raters(rows: sp.csr_array) -> sp.csr_array:
    """Ratings (n, m) less the mean of each column, of likes alone as they are."""
    if not rows.nnz or not np.ptp(rows.data):
        return rows
    return sp.csr_array((rows.data - _means(rows)[rows.indices], rows.indices, rows.indptr), shape=rows.shape)


def _means(rows: sp.csr_array) -> np.ndarray:
    assert rows.shape is not None  # SciPy types it as optional
    size = rows.shape[1]
    return np.bincount(rows.indices, rows.data, size) / np.maximum(np.bincount(rows.indices, minlength=size), 1)


def why(graph: AnalysedGraph, first: Hashable, second: Hashable) -> Answer:
    """See `SimilarityGraph.why`."""
    a, b = graph._nodes.rows([first, second]).tolist()
    if a == b:
        raise DataError(f"expected two different {graph.kind}s, found {first!r} twice")
    names = graph.labels[[a, b]].tolist()
    traits = [each for each in traits_of(graph.attributes, graph.label) if each.holders[a] and each.holders[b]]
    shared = [(each.column, each.text, each.holders.sum() / each.known.sum()) for each in traits]
    shared.sort(key=lambda row: row[2])
    features = pd.DataFrame(shared, columns=["attribute", "shared", "share_of_all"])
    told = [_of_edge(graph, (a, b), names)]
    tables = {"features": features}
    if graph.ratings is not None:
        tables["raters"], sentence = _raters(graph, graph.ratings, a, b)
        told.append(sentence)
    if traits:
        rare = features.head(_NAMED).itertuples(index=False, name=None)
        told.append(f"Both are {', '.join(f'{text} ({share:.0%} of all)' for _, text, share in rare)}.")
    return Answer(" ".join(told), tables)


def _of_edge(graph: AnalysedGraph, pair: tuple[int, int], names: list[str]) -> str:
    adjacency = graph._adjacency
    rows = [adjacency.data[adjacency.indptr[row] : adjacency.indptr[row + 1]] for row in pair]
    alone = [name for name, weights in zip(names, rows, strict=True) if not weights.size]
    if alone:
        verb = "has" if len(alone) == 1 else "have"
        return f"{' and '.join(alone)} {verb} no edge in this graph, to any {graph.kind}."
    weight = float(adjacency[pair])
    if not weight:
        return f"No edge joins {names[0]} and {names[1]}."
    ranks = [
        f"number {1 + int((weights > weight).sum())} of the {weights.size} neighbours of {name}"
        for name, weights in zip(names, rows, strict=True)
    ]
    return f"{names[0]} and {names[1]} are alike by {weight:.4g}: {ranks[0]}, {ranks[1]}."


def _raters(graph: AnalysedGraph, ratings: Interactions, a: int, b: int) -> tuple[pd.DataFrame, str]:
    rows, other = rated_rows(graph, ratings), "user" if graph.kind == "item" else "item"
    ids = ratings.user_ids if other == "user" else ratings.item_ids
    pair = rows[[a, b]]
    both = np.flatnonzero(np.diff(pair.tocsc().indptr) == 2)
    dense = pair[:, both].toarray()
    counts = np.diff(pair.indptr)
    likely = counts[0] * counts[1] / max(ids.size, 1)
    varied = rows.nnz > 0 and np.ptp(rows.data) > 0
    word = "rated" if varied else "liked"
    verb = f"{word} both" if other == "user" else f"were {word} by both"
    told = f"{both.size} {other}s {verb} ({counts[0]} and {counts[1]} in all, where chance gives {likely:.2g})"
    x, y = dense - _means(rows)[both]
    lengths = float(np.linalg.norm(x) * np.linalg.norm(y))
    if varied and lengths > 0:
        told += f"; their ratings agree by {x @ y / lengths:+.2f} (1 is alike, -1 is opposite)"
    return pd.DataFrame({other: ids[both], "first": dense[0], "second": dense[1]}), f"{told}."


def between(graph: AnalysedGraph, groups: tuple[Any, Any], n: int) -> Answer:
    """See `SimilarityGraph.between`."""
    first, second = (_members(graph, group) for group in groups)
    if (common := np.intersect1d(first, second)).size:
        found_in = graph.ids[common].tolist()[0]
        raise DataError(f"expected groups without a common {graph.kind}, found {found_in!r} in both")
    adjacency = graph._adjacency
    block = adjacency[first][:, second].tocoo()
    order = np.lexsort((block.col, block.row, -block.data))
    ends = first[block.row[order]], second[block.col[order]]
    edges = pd.DataFrame({"first": graph.ids[ends[0]], "second": graph.ids[ends[1]], "weight": block.data[order]})
    sums = np.stack([adjacency[:, rows].sum(axis=1) for rows in (first, second)])  # (2, n_nodes)
    joining = np.flatnonzero(sums.min(axis=0) > 0)
    joining = joining[np.argsort(-sums[:, joining].min(axis=0), kind="stable")]
    side = np.full(len(graph), "", dtype=object)
    side[first], side[second] = "first", "second"
    found = {graph.kind: graph.ids[joining], "group": side[joining]}
    found |= {f"to_{name}": sums[at, joining] for at, name in enumerate(("first", "second"))}
    many, sizes = len(edges), f"the groups of {first.size} and {second.size} {graph.kind}s"
    told = f"{many} edge{'s' * (many != 1)} of weight {edges['weight'].sum():.4g} in all" if many else "No edge"
    named = ", ".join(graph.labels[joining[:_NAMED]])
    last = f"Most similar to both: {named}." if named else f"No {graph.kind} is similar to members of both."
    told += f" join{'s' * (many < 2)} {sizes}. {last}"
    return Answer(told, {"edges": edges.head(n), f"{graph.kind}s": pd.DataFrame(found).head(n)})


def _members(graph: AnalysedGraph, group: Any) -> np.ndarray:
    """The rows of a group: of a community by its number or name, or of ids."""
    if isinstance(group, Iterable) and not isinstance(group, str):
        return np.unique(graph._nodes.rows(as_id_array(group)))
    described = graph.describe_communities()
    number = described.loc[(described["community"] == group) | (described["name"] == group), "community"]
    if number.empty:
        raise DataError(f"expected a community of 0..{len(described) - 1}, its name or a list of ids, found {group!r}")
    return np.flatnonzero(graph.communities().to_numpy() == number.iloc[0])


def place(
    graph: AnalysedGraph, features: Mapping[str, Any] | None, ratings: Mapping[Any, float] | None, n: int
) -> Answer:
    """See `SimilarityGraph.place`."""
    scores = [_by_features(graph, features)] if features else []
    scores += [_by_ratings(graph, ratings)] if ratings else []
    if not scores:
        raise DataError(f"expected features or ratings of the new {graph.kind}, found neither")
    weights = np.mean(scores, axis=0)  # (n_nodes,)
    near = np.argsort(-weights, kind="stable")[:n]
    near = near[weights[near] > 0]
    table = pd.DataFrame({graph.kind: graph.ids[near], "label": graph.labels[near], "weight": weights[near]})
    if not near.size:
        told = f"Nothing places it: no {graph.kind} shares a feature or a rater with it."
        return Answer(told, {f"{graph.kind}s": table})
    names = graph.describe_communities().set_index("community")["name"]
    shares = np.bincount(graph.communities().to_numpy()[near], weights[near])
    order = np.argsort(-shares, kind="stable")[: np.count_nonzero(shares)]
    parts = {"community": order, "name": pd.Series(names[order]).tolist(), "share": shares[order] / shares.sum()}
    groups = pd.DataFrame(parts)
    best = groups.iloc[0]
    told = f"Nearest to {', '.join(graph.labels[near[:_NAMED]])}; community {best['name']} ({best['share']:.0%})."
    return Answer(told, {f"{graph.kind}s": table, "communities": groups})


def _by_features(graph: AnalysedGraph, features: Mapping[str, Any]) -> np.ndarray:
    """The Jaccard index of the traits of the new node and of all nodes, a rare trait counting more; shape (n,)."""
    known = graph.attributes
    if unknown := [name for name in features if name not in known.columns]:
        raise DataError(f"expected features of {known.columns.tolist()}, found {unknown[0]!r}")
    whole = pd.concat([known.reset_index(drop=True), pd.DataFrame([dict(features)])], ignore_index=True)
    own, shared, union = 0.0, np.zeros(len(graph)), np.zeros(len(graph))
    for trait in traits_of(whole.filter(list(features)), graph.label):
        rarity = np.log(trait.known.sum() / trait.holders.sum())
        own += rarity * trait.holders[-1]
        shared += rarity * (trait.holders[:-1] & trait.holders[-1])
        union += rarity * (trait.holders[:-1] & ~trait.holders[-1])
    return shared / np.maximum(own + union, 1e-300)


def _by_ratings(graph: AnalysedGraph, ratings: Mapping[Any, float]) -> np.ndarray:
    """The cosine of the new node's ratings and those of all nodes, less the means of the raters; shape (n,)."""
    if graph.ratings is None:
        raise DataError("expected a graph that knows ratings, such as the item_graph_ of a model, found none")
    rows, kind = rated_rows(graph, graph.ratings), "user" if graph.kind == "item" else "item"
    index = IdIndex(graph.ratings.user_ids if kind == "user" else graph.ratings.item_ids, kind)
    places = index.places(list(ratings))
    centred, new = about_raters(rows), np.zeros(len(index))
    new[places] = np.fromiter(ratings.values(), dtype=float)
    if centred is not rows:
        new[places] -= _means(rows)[places]
    lengths = np.sqrt(np.asarray((centred * centred).sum(axis=1)).ravel()) * np.linalg.norm(new)
    return np.divide(centred @ new, lengths, out=np.zeros(len(graph)), where=lengths > 0)
