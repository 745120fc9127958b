"""Makes the pictures of the demo and the explorer: ``python docs/make_pictures.py [demo explorer]``.

Those of the paper and of speed are written by their own commands, see docs/contributing.md. The explorer needs
chromium and chromedriver.
"""

from __future__ import annotations

import runpy
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from air_recsys import AIR
from air_recsys.cli import main
from air_recsys.datasets import make_planted_ratings
from air_recsys.report import explorer_of, write_explorer

DOCS = Path(__file__).resolve().parent
IMAGES = DOCS / "images"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")


def demo(folder: Path) -> None:
    """Run the demo and take its picture."""
    try:
        main(["demo", "--out", str(folder), "--device", "cpu"])
    except SystemExit as ended:
        if ended.code:
            raise
    shutil.copyfile(folder / "completion.png", IMAGES / "demo.png")


def explorer(folder: Path) -> None:
    """Photograph the explorer in a browser: all of it in light colours, one item in dark ones."""
    cases = runpy.run_path(str(DOCS.parent / "tests" / "report" / "explorer_cases.py"))
    items, users = cases["planted"](), cases["planted"](1500, 12, kind="user")
    page = write_explorer(
        folder / "explorer.html",
        {"items": items, "users": users},
        snapshots={"items": {500: cases["weaker"](items, 0.3), 2000: cases["weaker"](items, 0.6)}},
        title="A cinema that never was",
    )
    browser = _browser(folder)
    try:
        _photograph(browser, page, "light", None)
        _photograph(browser, page, "dark", "velvet lantern")
        _photograph_picks(browser, _made_catalogue(folder, items.labels.tolist()))
    finally:
        browser.quit()


def _made_catalogue(folder: Path, titles: list[str]) -> Path:
    """Write the page of a model of generated ratings, which recommends."""
    ratings = make_planted_ratings(1500, 900, 60_000, star=1.0).interactions
    model = AIR.for_ratings(random_state=0, device="cpu").fit(ratings)
    named = pd.DataFrame({"title": titles[: ratings.n_items]})
    return explorer_of(model, folder / "picks.html", named, title="A cinema that never was", recommend=True)


def _photograph_picks(browser, page: Path) -> None:  # noqa: ANN001
    """Photograph three picks, the list, and where the first score comes from."""
    _open(browser, page.as_uri() + "#pick=5+10&pick=5+21&pick=2+40", "light")
    browser.find_element("css selector", "#recommended summary").click()
    time.sleep(2)
    browser.save_screenshot(str(IMAGES / "explorer-picks.png"))


def _browser(folder: Path):  # noqa: ANN202  (selenium is imported where it is needed)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    return webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))


def _photograph(browser, page: Path, scheme: str, searched: str | None) -> None:  # noqa: ANN001
    from selenium.webdriver.common.keys import Keys

    _open(browser, page.as_uri(), scheme)
    if searched is not None:
        browser.find_element("css selector", "#search").send_keys(searched, Keys.ENTER)
    time.sleep(2)  # until the picture stands still
    browser.save_screenshot(str(IMAGES / f"explorer-{scheme}.png"))


def _open(browser, address: str, scheme: str) -> None:  # noqa: ANN001
    colours = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": colours})
    size = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(address)
    while browser.execute_script("return document.documentElement.dataset.ready === undefined"):
        time.sleep(0.1)


if __name__ == "__main__":
    for name in sys.argv[1:] or ("demo", "explorer"):
        with tempfile.TemporaryDirectory() as temporary:
            {"demo": demo, "explorer": explorer}[name](Path(temporary))
