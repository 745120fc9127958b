"""The nearest-neighbour graph of many items: how long it takes and how much memory."""

from __future__ import annotations

import numpy as np

from air_recsys.evaluation.results import ResultTable, peak_memory
from air_recsys.evaluation.results.apart import Stopwatch
from air_recsys.graphs import SimilarityGraph

_GROUPS = 500


def bench_graph_build(n_items: int = 100_000, width: int = 64, k: int = 50) -> ResultTable:
    """Build the graph of the k nearest items from made factors, and cut it down.

    Parameters
    ----------
    n_items, width : int
        Size of the factors, which lie around 500 centres.
    k : int
        Neighbours that every item chooses.

    Returns
    -------
    ResultTable
        A row per step: seconds of wall time and of all processors together, edges of the result, and the largest
        resident memory of the process so far in GiB.

    Examples
    --------
    >>> table = bench_graph_build(n_items=200, width=4, k=5)
    >>> [row["step"] for row in table.rows]
    ['from_factors', 'top(10)', 'mass(0.5)']
    """
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(_GROUPS, width))
    factors = centres[rng.integers(_GROUPS, size=n_items)] + 0.5 * rng.normal(size=(n_items, width))
    whole = SimilarityGraph([[0.0]], [0])
    rows = []
    steps = {
        "from_factors": lambda: SimilarityGraph.from_factors(factors.astype(np.float32), range(n_items), k),
        "top(10)": lambda: whole.top(10),
        "mass(0.5)": lambda: whole.mass(0.5),
    }
    for name, step in steps.items():
        with Stopwatch() as spent:
            graph = step()
        times = {"step": name, "seconds": spent.seconds, "cpu_seconds": spent.cpu_seconds}
        rows.append(times | {"edges": graph.n_edges, "peak_gib": peak_memory()})
        whole = graph if name == "from_factors" else whole
    return ResultTable(
        "Building a similarity graph",
        f"{n_items} made items, width {width}, {_GROUPS} groups, seed 0; the {k} nearest by cosine, exact",
        rows,
        ["peak_gib is that of the whole process so far, its libraries included"],
    )
