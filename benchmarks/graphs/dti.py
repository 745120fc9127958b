"""Drug-target interactions: whether neighbours are alike in chemistry and sequence, which the model never saw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.datasets import DrugTargetData
from air_recsys.evaluation.results import ResultTable
from air_recsys.graphs.postprocess import with_pattern
from air_recsys.models import AIR
from benchmarks.graphs.measures import lift, pair_correlation
from benchmarks.graphs.rivals import cosine, ease, gip, smooth_graph

_EASE_DECAYS = (0.1, 1.0, 10.0)


def bench_dti(sets: dict[str, DrugTargetData], settings: dict[str, Any] | None = None) -> ResultTable:
    """Compare similarities from interactions alone with chemical and sequence similarities.

    Parameters
    ----------
    settings : dict, optional
        Parameters that differ from `AIR.for_interactions`.
    """
    chosen = {"random_state": 0} | (settings or {})
    table = ResultTable(
        "Drug-target interactions: similarities never seen",
        "all pairs observed (0/1); Spearman correlation over all pairs, and mean similarity of the 10 nearest as a "
        f"multiple of that of all pairs, ties at random; AIR.for_interactions with {chosen}",
    )
    for name, data in sets.items():
        model = AIR.for_interactions(**chosen).fit(data.interactions)
        matrix = data.interactions.to_dense()
        sides = (
            ("drugs", matrix, model.user_adjacency_, data.drug_similarity),
            ("targets", matrix.T, model.item_adjacency_, data.target_similarity),
        )
        for side, rows, learned, similarities in sides:
            if similarities is None or learned is None:
                continue
            truth = similarities.to_numpy()
            for system, similarity in _systems(rows, learned):
                figures = {"spearman": pair_correlation(similarity, truth), "top_10": lift(similarity, truth)}
                table.rows.append({"set": name.upper(), "side": side, "system": system} | figures)
    return table


def _systems(rows: np.ndarray, learned: Any) -> Iterator[tuple[str, Any]]:
    yield "AIR, learned graph with the pattern", with_pattern(learned, rows)
    yield "AIR, learned graph", learned
    yield "pattern alone", with_pattern(sp.csr_array(learned.shape), rows)
    yield "GIP", gip(rows)
    yield "cosine", cosine(rows)
    for decay in _EASE_DECAYS:
        yield f"EASE, decay {decay:g}", ease(rows, decay)
    yield "smooth signals", smooth_graph(rows)
