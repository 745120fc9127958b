"""Chromium without a screen, for measurements, tests and pictures of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from air_recsys.exceptions import ParameterError
from air_recsys.storage.validation import import_extra

_PROGRAMS = ("chromium", "chromedriver")
_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_SECONDS = 120  # most that one measurement may take
SIZE = (1280, 800)


def check_browser() -> None:
    """Raise where selenium, Chromium or its driver is missing.

    Raises
    ------
    MissingExtraError
        Where selenium is not installed.
    ParameterError
        Where a program is not on the path, with its name.
    """
    import_extra("selenium", "test")
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        raise ParameterError(
            f"expected the programs {' and '.join(_PROGRAMS)} on the path, found no {' and no '.join(missing)}"
        )


@contextmanager
def chromium(*flags: str, logs: tuple[str, ...] = ()) -> Iterator[Any]:
    """Yield a driver of Chromium without a screen and a graphics card, which keeps these logs.

    Raises
    ------
    MissingExtraError, ParameterError
        As `check_browser`.
    """
    check_browser()
    webdriver = import_extra("selenium.webdriver", "test")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which(_PROGRAMS[0])
    for flag in (*_FLAGS, *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which(_PROGRAMS[1])))
    try:
        yield driver
    finally:
        driver.quit()


@contextmanager
def headless_browser() -> Iterator[Any]:
    """Yield a driver of Chromium with a window of 1280 x 800 pixels."""
    with chromium() as driver:
        driver.set_script_timeout(_SECONDS)
        metrics = {"width": SIZE[0], "height": SIZE[1], "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        yield driver
