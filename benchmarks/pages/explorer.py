"""What the explorer costs: to write a page, and to look at it in Chromium without a graphics card."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from chromium import SIZE, check_browser, headless_browser
from made_films import GraphSize, made_graph
from tqdm import tqdm

from air_recsys.evaluation.results.apart import process_apart
from air_recsys.exceptions import AirRecsysError
from air_recsys.report import write_explorer
from benchmarks.harness import Found, spent_on

_OPENED = 3  # times; the median counts
_CHOSEN = 5  # nodes whose surroundings are drawn; the slowest counts
_MOVED = 2_000  # milliseconds of each movement
_MOVE, _UNTIL_DRAWN, _NODES = (
    Path(__file__).with_name(f"{name}.js").read_text(encoding="utf-8") for name in ("move", "until_drawn", "nodes")
)


def bench_explorer(sizes: dict[str, list[int]]) -> Found:
    """Write pages of generated graphs of so many nodes, edges and groups, and measure them in Chromium."""
    check_browser()
    rows = []
    with tempfile.TemporaryDirectory() as folder, process_apart() as call:
        for name, numbers in tqdm(sizes.items(), unit="page", desc="pages explorer"):
            path = Path(folder) / f"{numbers[0]}.html"
            written = call(_written, numbers, path)
            with headless_browser() as driver:
                rows.append({"graph": name} | written | measure_page(driver, path))
    return Found(rows, width=SIZE[0], height=SIZE[1])


def _written(numbers: list[int], path: Path) -> dict[str, float]:
    graph = made_graph(GraphSize(*numbers))
    _, costs = spent_on(lambda: write_explorer(path, graph))
    return {"write s": costs["cpu_seconds"], "size MB": path.stat().st_size / 1e6}


def measure_page(driver: Any, path: Path) -> dict[str, float]:
    """Seconds and frames a second of a page, with all of its edges drawn where it draws nodes."""
    first = median(_open(driver, path) for _ in range(_OPENED))
    figures = {"first picture s": first}
    slider = _until_drawn(driver, "explorer.slider.move(0);")
    if not driver.execute_script("return explorer.overview"):
        figures |= {"slider s": slider}
    for kind in ("drag", "zoom"):
        before = _processor_seconds(driver)
        gaps = sorted(driver.execute_async_script(_MOVE, kind, _MOVED))
        spent = _processor_seconds(driver) - before
        figures |= {f"{kind} frames / s": 1000 * len(gaps) / sum(gaps), f"{kind} script ms": 1000 * spent / len(gaps)}
        figures |= {f"{kind} slowest ms": gaps[int(0.95 * (len(gaps) - 1))]}
    figures |= {"one node s": max(_ego(driver, node) for node in driver.execute_script(_NODES, _CHOSEN))}
    if driver.execute_script("return explorer.large"):
        driver.execute_script("explorer.clear()")
        figures |= {"community s": _until_drawn(driver, "explorer.choose({ community: 0 });")}
    return figures


def _open(driver: Any, path: Path) -> float:
    """The seconds from the request of the page to the end of its first frame with a picture."""
    driver.get("about:blank")
    driver.get(path.as_uri())
    until = time.monotonic() + 60
    while time.monotonic() < until:
        ready = driver.execute_script("return document.documentElement.dataset.ready ?? null")
        if ready is not None:
            _until_drawn(driver, "")
            return int(ready) / 1000
        time.sleep(0.05)
    raise AirRecsysError(f"expected a picture of {path.name} within 60 seconds, found none")


def _processor_seconds(driver: Any) -> float:
    """The processor time of the thread that runs the page's scripts, so far."""
    driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(each["value"] for each in metrics if each["name"] == "ThreadTime")


def _ego(driver: Any, node: int) -> float:
    seconds = _until_drawn(driver, f"explorer.choose({{ node: {node} }}); explorer.setHops(2);")
    driver.execute_script("explorer.clear()")
    _until_drawn(driver, "")
    return seconds


def _until_drawn(driver: Any, action: str) -> float:
    """The seconds from an action to the frame in which its picture is there and stands still."""
    return driver.execute_async_script(_UNTIL_DRAWN.replace("{action}", action))
