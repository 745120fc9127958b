"""Chromium without a screen, for tests and pictures of pages."""

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


@contextmanager
def chromium(*flags: str, logs: tuple[str, ...] = ("browser",)) -> Iterator[Any]:
    """Yield a driver of Chromium without a screen and a graphics card, which keeps these logs.

    Raise an error that names what is missing: selenium, or a program.
    """
    webdriver = import_extra("selenium.webdriver", "test")
    places = [shutil.which(name) for name in _PROGRAMS]
    if None in places:
        raise ParameterError(f"expected the programs {' and '.join(_PROGRAMS)} on the path, found {places}")
    options = webdriver.ChromeOptions()
    options.binary_location = places[0]
    for flag in (*_FLAGS, *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    driver = webdriver.Chrome(options, webdriver.ChromeService(places[1]))
    try:
        yield driver
    finally:
        driver.quit()
