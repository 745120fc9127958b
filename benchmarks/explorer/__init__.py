"""What the explorer costs: to write a page, and to look at it in Chromium without a graphics card."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import Stopwatch, process_apart
from air_recsys.report import write_explorer
from benchmarks.explorer.chromium import SIZE, check_browser, headless_browser
from benchmarks.explorer.made import GraphSize, made_graph
from benchmarks.explorer.page import measure_page

SIZES: Mapping[str, GraphSize] = {
    "3,706 nodes, 40,000 edges": GraphSize(3_706, 40_000, 18),
    "10,000 nodes, 200,000 edges": GraphSize(10_000, 200_000, 40),
    "100,000 nodes, 400,000 edges": GraphSize(100_000, 400_000, 150),
}

_ROWS = {
    "write s": "write the page, seconds of a processor",
    "size MB": "size, MB",
    "first picture s": "first picture, seconds",
    "drag frames / s": "frames a second, dragging",
    "drag slowest ms": "dragging, the frame that 95 % are faster than, ms",
    "drag script ms": "dragging, processor time of the page's thread a frame, ms",
    "zoom frames / s": "frames a second, zooming",
    "zoom slowest ms": "zooming, the frame that 95 % are faster than, ms",
    "zoom script ms": "zooming, processor time of the page's thread a frame, ms",
    "slider s": "slider to all edges, seconds",
    "one node s": "choose a node and draw 2 hops, seconds (the slowest of 5)",
    "community s": "open the largest community, seconds",
}


def bench_explorer(sizes: Mapping[str, GraphSize] = SIZES) -> ResultTable:
    """Write pages of generated graphs, and measure them in Chromium.

    Parameters
    ----------
    sizes : mapping of str to GraphSize
        The graphs, by name.

    Raises
    ------
    MissingExtraError, ParameterError
        Where selenium, Chromium or its driver is missing.
    """
    check_browser()
    table = ResultTable(
        "The explorer in Chromium",
        f"generated graphs, all edges drawn; writing in a process with one thread; {SIZE[0]} x {SIZE[1]} pixels, "
        "headless, no graphics card; first picture: the median of 3; frames while a pointer circles and a wheel turns",
    )
    with tempfile.TemporaryDirectory() as folder, process_apart() as call:
        for name, size in tqdm(sizes.items(), unit="page", desc="explorer"):
            path = Path(folder) / f"{size.nodes}.html"
            written = call(_written, size, path)
            with headless_browser() as driver:
                table.rows.append({"graph": name} | written | measure_page(driver, path))
    return table


def _written(size: GraphSize, path: Path) -> dict[str, float]:
    graph = made_graph(size)
    with Stopwatch() as spent:
        write_explorer(path, graph)
    return {"write s": spent.cpu_seconds, "size MB": path.stat().st_size / 1e6}


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the rows as the table of docs/explorer.md, a graph a column.

    Examples
    --------
    >>> print(markdown([{"graph": "A", "size MB": 1.24, "drag frames / s": 59.6}, {"graph": "B", "size MB": 12.0}]))
    | | A | B |
    |---|---|---|
    | size, MB | 1.2 | 12.0 |
    | frames a second, dragging | 60 | - |
    """
    lines = [["", *(str(row["graph"]) for row in rows)], ["---"] * (len(rows) + 1)]
    for key, text in _ROWS.items():
        if any(key in row for row in rows):
            lines.append([text, *(_cell(key, row.get(key)) for row in rows)])
    heads = [f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in (lines[0], *lines[2:])]
    return "\n".join([heads[0], f"|{'|'.join(lines[1])}|", *heads[1:]])


def _cell(key: str, value: float | None) -> str:
    if value is None:
        return "-"
    if "frames" in key or "ms" in key:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"
