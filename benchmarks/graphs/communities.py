"""MovieLens: whether communities have names that mean something, and what they follow from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.graph_quality import exposure
from air_recsys.evaluation.results import ResultTable
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.naming import LEVEL, fit, traits_of
from air_recsys.models import AIR


def bench_communities(
    data: Interactions, items: pd.DataFrame, users: pd.DataFrame, settings: dict[str, Any] | None = None
) -> tuple[ResultTable, ResultTable]:
    """Name the communities of both graphs of `AIR.for_ratings`, and compare them with the pattern of the ratings.

    Parameters
    ----------
    items, users : DataFrame
        Attributes, indexed by id; the column "title" names an item.
    settings : dict, optional
        Parameters that differ from `AIR.for_ratings`.

    Returns
    -------
    graphs, communities : ResultTable
        A row a graph, and a row a community of two nodes or more.
    """
    chosen = {"random_state": 0} | (settings or {})
    model = AIR.for_ratings(**chosen).fit(data)
    assert model.item_graph_ is not None
    assert model.user_graph_ is not None
    protocol = f"Louvain communities of the learned graphs; all ratings; {data!r}; AIR.for_ratings with {chosen}"
    graphs = ResultTable(
        "MovieLens: communities, their names, and exposure",
        f"{protocol}; named: share with an attribute over-represented, corrected p < {LEVEL}; with genre: share in "
        f"which some genre is, p < {LEVEL}, not corrected; NMI with bands of the number of ratings, with communities "
        "by who rated what alone, by the values alone, and with the communities shuffled",
    )
    single = ResultTable("MovieLens: single communities", protocol)
    for graph in (model.item_graph_.with_attributes(items, "title"), model.user_graph_.with_attributes(users)):
        row, rows = _of_graph(graph, data)
        graphs.rows.append(row)
        single.rows += rows
    return graphs, single


def _of_graph(graph: SimilarityGraph, data: Interactions) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    labels = graph.communities()
    found = exposure(graph, data, labels)
    described = graph.describe_communities(labels, pd.Series(found.counts, index=graph.ids)).query("size > 1")
    medians = [float(np.median(found.counts[labels.to_numpy() == number])) for number in described["community"]]
    row: dict[str, Any] = {"graph": f"{graph.kind}s", "communities": len(described)}
    row["named"] = float(np.mean(described["trait"].notna().to_numpy()))
    row["with genre"] = with_genre(graph, labels) if "genres" in graph.attributes else float("nan")
    row |= {f"nmi {name}": value for name, value in found.nmi.items()}
    about = ["size", "name", "share", "share_of_all", "log_odds", "p_value"]
    shown = described.assign(graph=f"{graph.kind}s", ratings_median=medians).loc[
        :, ["graph", *about, "ratings_median"]
    ]
    return row, shown.to_dict("records")


def with_genre(graph: SimilarityGraph, labels: pd.Series) -> float:
    """Return the share of communities in which some genre is over-represented, each test by itself."""
    genres = traits_of(graph.attributes.loc[:, ["genres"]])
    groups = [group for group, size in labels.value_counts().items() if size > 1]
    found = [min(fit((labels == group).to_numpy(), genre, 1).p_value for genre in genres) for group in groups]
    return float(np.mean(np.array(found) < LEVEL))
