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

from air_recsys.cli import main
from air_recsys.report import write_explorer

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
    finally:
        browser.quit()


def _browser(folder: Path):  # noqa: ANN202  (selenium is imported where it is needed)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    return webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))


def _photograph(browser, page: Path, scheme: str, searched: str | None) -> None:  # noqa: ANN001
    from selenium.webdriver.common.keys import Keys

    colours = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": colours})
    size = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    while browser.execute_script("return document.documentElement.dataset.ready === undefined"):
        time.sleep(0.1)
    if searched is not None:
        browser.find_element("css selector", "#search").send_keys(searched, Keys.ENTER)
    time.sleep(2)  # until the picture stands still
    browser.save_screenshot(str(IMAGES / f"explorer-{scheme}.png"))


if __name__ == "__main__":
    for name in sys.argv[1:] or ("demo", "explorer"):
        with tempfile.TemporaryDirectory() as temporary:
            {"demo": demo, "explorer": explorer}[name](Path(temporary))
