"""The time that the pages of made graphs take to be written, and their size."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from air_recsys.datasets import make_planted_ratings
from air_recsys.models import AIR
from air_recsys.report import explorer_of, write_explorer
from benchmarks.harness import Found


def bench_explorer(*, sizes: list[list[int]], seed: int) -> Found:
    """Write the explorer's page of models of planted ratings, by [users, items, ratings]."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for n_users, n_items, n_ratings in sizes:
            made = make_planted_ratings(n_users, n_items, n_ratings, random_state=seed, star=1.0).interactions
            model = AIR.for_ratings(random_state=seed, device="cpu").fit(made)
            items = model.item_graph_
            assert items is not None
            for what, write in (
                ("items alone", lambda path, graph=items: write_explorer(path, graph)),
                ("items with ratings", lambda path, graph=items, data=made: write_explorer(path, graph, ratings=data)),
                (
                    "items and users of the model",
                    lambda path, air=model: explorer_of(air, path, recommend=False),
                ),
            ):
                before, clock = time.process_time(), time.perf_counter()
                page = write(Path(folder) / "page.html")
                cost = {"seconds": time.perf_counter() - clock, "processor_seconds": time.process_time() - before}
                sizes_of = {"nodes": len(items), "edges": items.n_edges, "mib": page.stat().st_size / 2**20}
                rows.append({"page": what} | sizes_of | cost)
    return Found(rows)
