"""The report in both browsers: narrow, dark, on paper, and with hostile texts."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browsers import BOTH, LUMINANCE, browser_named, show

from air_recsys import AIR, Interactions
from air_recsys.report import write_report
from air_recsys.splits import random_holdout

HOSTILE = "</svg></script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"

# The lowest ratio of luminances, as WCAG 2 defines it, of texts and of the page behind them.
CONTRAST = (
    LUMINANCE
    + """
const paper = luminance(parse(getComputedStyle(document.body).backgroundColor));
return Math.min(...[...document.querySelectorAll(arguments[0])].map((element) => {
  const style = getComputedStyle(element);
  const ink = luminance(parse(element instanceof SVGElement ? style.fill : style.color));
  return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
}));
"""
)
# The height of the smallest text in a figure, in pixels of the screen.
SMALLEST = """
return Math.min(...[...document.querySelectorAll("figure svg")].flatMap((svg) => {
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return [...svg.querySelectorAll("text")].map((text) => parseFloat(getComputedStyle(text).fontSize) * scale);
}));
"""


@pytest.fixture(scope="module", params=BOTH)
def browser(request: pytest.FixtureRequest) -> Iterator[Any]:
    with browser_named(request.param) as driver:
        yield driver


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    truth = 3 + np.outer(rng.normal(size=40), rng.normal(size=30)) + 0.4 * rng.normal(size=(40, 30))
    data = Interactions.from_dense(np.where(rng.random(truth.shape) < 0.6, np.round(truth.clip(1, 5)), np.nan))
    split = random_holdout(data, 0.2, random_state=0)
    kinds = pd.DataFrame({"kind": [HOSTILE, "plain"] * 15})
    model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(
        data.select(split.train), item_features=kinds
    )
    titles = {
        item: f"{HOSTILE} {item}" if item % 2 else f"A film with a long title of many words ({item})"
        for item in range(30)
    }
    target = tmp_path_factory.mktemp("report") / "page.html"
    return write_report(model, target, test=data.select(split.test), titles=titles)


def opened(browser: Any, page: Path, width: int, scheme: str) -> Any:
    show(browser, scheme == "dark", (width, 800))
    browser.get_log("browser")
    browser.get(page.as_uri())
    return browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_all_can_be_read_without_scrolling_sideways(browser: Any, page: Path, width: int, scheme: str) -> None:
    shown = opened(browser, page, width, scheme)
    assert shown.execute_script("return document.documentElement.scrollWidth") <= width
    assert shown.execute_script(CONTRAST, "h1, h2, h3, p, td, th, a, caption, figcaption, li, svg text") >= 4.5
    assert shown.execute_script(SMALLEST) >= 10
    assert shown.get_log("browser") == []


def test_accuracy_and_two_pictures_are_on_the_first_screen(browser: Any, page: Path) -> None:
    shown = opened(browser, page, 1280, "light")
    bottoms = shown.execute_script(
        "return [...document.querySelectorAll('#accuracy figure svg, #accuracy .lead')]"
        ".map((element) => element.getBoundingClientRect().bottom)"
    )
    assert len(bottoms) == 3
    assert max(bottoms) <= 800


def test_figures_turn_dark_with_the_page(browser: Any, page: Path) -> None:
    fill = "return getComputedStyle(document.querySelector('figure svg text')).fill"
    ink = "return getComputedStyle(document.body).color"
    fills = []
    for scheme in ("light", "dark"):
        shown = opened(browser, page, 1280, scheme)
        fills.append(shown.execute_script(fill))
        assert fills[-1] == shown.execute_script(ink)
    assert fills[0] != fills[1]


def test_hostile_texts_are_shown_and_never_run(browser: Any, page: Path) -> None:
    shown = opened(browser, page, 1280, "light")
    assert shown.execute_script("return window.hacked ?? null") is None
    assert shown.execute_script("return document.querySelectorAll('script, img').length") == 0
    assert HOSTILE in shown.execute_script("return document.body.textContent")


def test_a_script_that_got_in_would_be_refused(browser: Any, page: Path, tmp_path: Path) -> None:
    hurt = tmp_path / "hurt.html"
    hurt.write_text(page.read_text().replace("</main>", "<script>window.hacked=1</script></main>"))
    shown = opened(browser, hurt, 1280, "light")
    assert shown.execute_script("return window.hacked ?? null") is None
    policy = re.compile("Content.Security.Policy")
    assert any(policy.search(entry["message"]) for entry in shown.get_log("browser"))


def test_paper_is_a4_white_and_shows_what_was_folded(browser: Any, page: Path) -> None:
    if browser.name == "firefox":
        pytest.skip("only Chromium prints by command, and shows what it would print")
    shown = opened(browser, page, 1280, "dark")
    printed = shown.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True})
    document = base64.b64decode(printed["data"])
    sizes = {
        tuple(map(round, map(float, box))) for box in re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", document)
    }
    assert sizes == {(595, 842)}
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert shown.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    heights = shown.execute_script(
        "return [...document.querySelectorAll('details table')].map((table) => table.getBoundingClientRect().height)"
    )
    assert heights
    assert min(heights) > 20
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
