"""Browsers for the tests of pages; a test module that imports this is skipped where there is no Chromium."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="the browser's tests need selenium")
import firefox  # noqa: E402
from chromium import chromium  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
    pytest.skip("no chromium and chromedriver on this machine", allow_module_level=True)

# What a fixture of browsers takes as `params`.
BOTH = [
    "chromium",
    pytest.param("firefox", marks=pytest.mark.skipif(firefox.FIREFOX is None, reason="no Firefox on this machine")),
]

# What a page's policy has to refuse: addresses, and a script that got in. Refusals are in `refused`.
TRESPASS = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
fetch("https://example.invalid/").catch(() => {});
new Image().src = "https://example.invalid/a.png";
const script = document.createElement("script");
script.textContent = "window.hacked = 1";
document.body.append(script);
"""
LUMINANCE = """
const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const luminance = ([r, g, b]) => {
  const linear = [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
"""
# The ratio of luminances of a text and of what is painted behind it, as WCAG 2 defines it.
CONTRAST = (
    LUMINANCE
    + """
const behind = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const color = parse(getComputedStyle(each).backgroundColor);
    if (color.length === 3 || color[3] === 1) return color;
  }
  throw new Error("nothing is painted behind");
};
return arguments[0].map((selector) => {
  const element = document.querySelector(selector);
  const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(behind(element))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
});
"""
)


@contextmanager
def browser_named(name: str) -> Iterator[Any]:
    """One of `BOTH` that keeps the log of errors, until the end of the block."""
    with chromium() if name == "chromium" else firefox.firefox() as browser:
        yield browser


def show(browser: Any, dark: bool, size: tuple[int, int]) -> None:
    """Prefer a colour scheme, and be a screen of that size, a phone where it is narrow."""
    if browser.name == "firefox":
        firefox.show(browser, dark, size)
        return
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


class Page:
    """A browser and what the tests ask it."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    def script(self, code: str, *arguments: Any) -> Any:
        return self.browser.execute_script(code, *arguments)

    def find(self, selector: str) -> Any:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        return self.script("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def search(self, text: str) -> None:
        box = self.find("#search")
        box.clear()
        box.send_keys(text)
