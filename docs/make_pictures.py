"""Makes pictures of the demo, the report and the explorer: ``python docs/make_pictures.py [demo report explorer]``.

The pictures of the paper and of speed come from their own commands, see docs/making/contributing.md. Report and
explorer need chromium and chromedriver. All data are generated, and all titles are made up.
"""

from __future__ import annotations

import io
import runpy
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from air_recsys import AIR
from air_recsys.cli import main
from air_recsys.datasets import make_planted_ratings
from air_recsys.report import explorer_of, write_explorer, write_report

DOCS = Path(__file__).resolve().parent
sys.path.append(str(DOCS.parent / "tests"))

from chromium import chromium  # noqa: E402
from made_films import ADJECTIVES, NOUNS  # noqa: E402

IMAGES = DOCS / "images"
CASES = runpy.run_path(str(DOCS.parent / "tests" / "report" / "explorer_cases.py"))
LAPTOP, PHONE = (1280, 800), (390, 780)


def demo(folder: Path) -> None:
    """Run the demo and take its picture."""
    try:
        main(["demo", "--out", str(folder), "--device", "cpu"])
    except SystemExit as ended:
        if ended.code:
            raise
    shutil.copyfile(folder / "completion.png", IMAGES / "demo.png")


def report(folder: Path) -> None:
    """Photograph the first screen of a report, on a laptop and on a phone."""
    made = make_planted_ratings(900, 600, 60_000, 12, 10).interactions
    model = AIR.for_ratings(random_state=0, device="cpu").fit(made)
    page = write_report(model, folder / "report.html", evaluate=True, titles=_titles(made.item_ids))
    with _browser(folder) as browser:
        _photograph(browser, page, "report-light", size=LAPTOP)
        _photograph(browser, page, "report-phone", size=PHONE)


def explorer(folder: Path) -> None:
    """Photograph the explorer in a browser: all of it in light colours, one item in dark ones."""
    items, users = CASES["planted"](), CASES["planted"](1500, 12, kind="user")
    page = write_explorer(
        folder / "explorer.html",
        {"items": items, "users": users},
        snapshots={"items": {500: CASES["weaker"](items, 0.3), 2000: CASES["weaker"](items, 0.6)}},
        title="Films with made-up titles",
    )
    with _browser(folder) as browser:
        _photograph(browser, page, "explorer-light", size=LAPTOP)
        _photograph(browser, page, "explorer-dark", size=LAPTOP, searched="velvet lantern")
        _photograph_picks(browser, _made_catalogue(folder, items.labels.tolist()))


def _titles(ids: np.ndarray) -> dict[int, str]:
    """Return a made-up title for each item."""
    rng = np.random.default_rng(0)
    return {id: f"{rng.choice(ADJECTIVES)} {rng.choice(NOUNS)} ({1930 + id % 70})" for id in ids.tolist()}


def _made_catalogue(folder: Path, titles: list[str]) -> Path:
    """Write the page of a model of generated ratings, which recommends."""
    ratings = make_planted_ratings(1500, 900, 60_000, star=1.0).interactions
    model = AIR.for_ratings(random_state=0, device="cpu").fit(ratings)
    named = pd.DataFrame({"title": titles[: ratings.n_items]})
    return explorer_of(model, folder / "picks.html", named, title="A cinema that never was", recommend=True)


def _photograph_picks(browser, page: Path) -> None:  # noqa: ANN001
    """Photograph three picks, the list, and where the first score comes from."""
    _open(browser, page.as_uri() + "#pick=5+10&pick=5+21&pick=2+40", dark=False, size=LAPTOP)
    browser.find_element("css selector", "#recommended summary").click()
    _save(browser, "explorer-picks")


def _browser(folder: Path):  # noqa: ANN202
    return chromium("--hide-scrollbars", f"--user-data-dir={folder / 'profile'}")


def _photograph(browser, page: Path, name: str, *, size: tuple[int, int], searched: str | None = None) -> None:  # noqa: ANN001
    from selenium.webdriver.common.keys import Keys

    _open(browser, page.as_uri(), dark=name.endswith("dark"), size=size)
    if size is PHONE:
        browser.execute_script("document.querySelector('section').scrollIntoView()")
    if searched is not None:
        browser.find_element("css selector", "#search").send_keys(searched, Keys.ENTER)
    _save(browser, name)


def _save(browser, name: str) -> None:  # noqa: ANN001
    time.sleep(2)  # until the picture stands still
    shot = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    colours = shot.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)  # a quarter of the bytes
    colours.save(IMAGES / f"{name}.png", optimize=True)


def _open(browser, address: str, *, dark: bool, size: tuple[int, int]) -> None:  # noqa: ANN001
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    screen = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size is PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(address)
    is_drawing = "return Boolean(window.ForceGraph) && document.documentElement.dataset.ready === undefined"
    while browser.execute_script(is_drawing):
        time.sleep(0.1)


if __name__ == "__main__":
    for name in sys.argv[1:] or ("demo", "report", "explorer"):
        with tempfile.TemporaryDirectory() as temporary:
            {"demo": demo, "report": report, "explorer": explorer}[name](Path(temporary))
