"""What is kept of the course of a training: graphs with ids, and the history."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
import scipy.sparse as sp

from air_recsys.graphs import SimilarityGraph
from air_recsys.interactions import Interactions
from air_recsys.nn.objective import Objective
from air_recsys.training import Record


class Snapshot(NamedTuple):
    """The learned graphs at one epoch."""

    user_graph: SimilarityGraph | None
    item_graph: SimilarityGraph | None
    transform_graphs: list[SimilarityGraph]


def snapshot(objective: Objective, data: Interactions, adjacencies: list[sp.csr_array]) -> Snapshot:
    """Give the graphs of an objective, in its order, the ids of their nodes."""
    rest = iter(adjacencies)
    users = None if objective.row_graph is None else SimilarityGraph(next(rest), data.user_ids, "user")
    items = None if objective.column_graph is None else SimilarityGraph(next(rest), data.item_ids, "item")
    others = [SimilarityGraph(adjacency, range(len(adjacency.indptr) - 1)) for adjacency in rest]
    return Snapshot(users, items, others)


def history(records: list[Record]) -> pd.DataFrame:
    """Return records as a table, in the words of users and items."""
    frame = pd.DataFrame(records, columns=list(Record._fields))
    return frame.rename(columns={"row_energy": "user_energy", "column_energy": "item_energy"})
