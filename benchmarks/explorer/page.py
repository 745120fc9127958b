"""What a page of the explorer takes in a browser: its first picture, moving, the slider, the view of one node."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

from air_recsys.exceptions import AirRecsysError

_OPENED = 3  # times; the median counts
_CHOSEN = 5  # nodes whose surroundings are drawn; the slowest counts
_MOVED = 2_000  # milliseconds of each movement

# Every frame moves the pointer as a hand would; what counts is how often the browser gets to the next one.
_MOVE = """
const [kind, milliseconds, done] = arguments;
const canvas = document.querySelector("#canvas canvas");
const box = canvas.getBoundingClientRect();
const at = (angle) => ({
  bubbles: true, cancelable: true, view: window, button: 0, buttons: 1,
  clientX: box.x + box.width / 2 + 200 * Math.cos(angle), clientY: box.y + box.height / 2 + 150 * Math.sin(angle),
});
const start = performance.now();
const gaps = [];
let last = null;
if (kind === "drag") canvas.dispatchEvent(new MouseEvent("mousedown", at(0)));
requestAnimationFrame(function frame(now) {
  if (last !== null) gaps.push(now - last);
  last = now;
  const turn = (performance.now() - start) / 300;
  if (kind === "drag") window.dispatchEvent(new MouseEvent("mousemove", at(turn)));
  else canvas.dispatchEvent(new WheelEvent("wheel", { ...at(0), deltaY: 40 * Math.cos(turn) }));
  if (now - start < milliseconds) return requestAnimationFrame(frame);
  if (kind === "drag") window.dispatchEvent(new MouseEvent("mouseup", at(turn)));
  done(gaps);
});
"""
_UNTIL_DRAWN = """
const done = arguments[arguments.length - 1];
const start = performance.now();
{action}
requestAnimationFrame(function frame() {
  const { view } = explorer;
  if (!view.fitting && !view.moving && view.painter.isDone) done((performance.now() - start) / 1000);
  else requestAnimationFrame(frame);
});
"""
_NODES = """
const { graph } = explorer;
const step = Math.floor(graph.size / arguments[0]);
return [...Array(arguments[0]).keys()].map((index) => graph.byStrength[index * step]);
"""


def measure_page(driver: Any, path: Path) -> dict[str, float]:
    """Return seconds and frames a second of a page, with all of its edges drawn where it draws nodes."""
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
    """Return the seconds from the request of the page to the end of its first frame with a picture."""
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
    """Return the processor time of the thread that runs the page's scripts, so far."""
    driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(each["value"] for each in metrics if each["name"] == "ThreadTime")


def _ego(driver: Any, node: int) -> float:
    seconds = _until_drawn(driver, f"explorer.choose({{ node: {node} }}); explorer.setHops(2);")
    driver.execute_script("explorer.clear()")
    _until_drawn(driver, "")
    return seconds


def _until_drawn(driver: Any, action: str) -> float:
    """Return the seconds from an action to the frame in which its picture is there and stands still."""
    return driver.execute_async_script(_UNTIL_DRAWN.replace("{action}", action))
