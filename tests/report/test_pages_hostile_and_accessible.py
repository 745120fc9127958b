"""Every kind of page in both browsers: hostile texts are only shown, nothing bars anyone, the keyboard is enough."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from axe import barriers
from browsers import BOTH, TRESPASS, Page, browser_named, show, webdriver
from page_cases import FORMULAS, HOSTILE, write_pages
from page_walk import KEEP, SAVED, UNSAFE, visible_ids, walk
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

KINDS = ["explorer", "report", "drugs", "comparison"]
DESKTOP, PHONE = (1280, 800), (390, 844)
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_pages(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module", params=BOTH)
def browser(request: pytest.FixtureRequest) -> Iterator[Any]:
    with browser_named(request.param) as driver:
        yield driver


def opened(browser: Any, page: Path, dark: bool = False, size: tuple[int, int] = DESKTOP) -> Page:
    show(browser, dark, size)
    browser.get_log("browser")
    browser.get(page.as_uri())
    if page.stem == "explorer":
        wait(browser, "return document.documentElement.dataset.ready")
    return Page(browser)


def wait(browser: Any, script: str) -> None:
    WebDriverWait(browser, 15, poll_frequency=0.05).until(lambda _: browser.execute_script(script))


def choosing(page: Page) -> Any:
    """Return a function that chooses a node, then a community, then nothing."""
    steps = iter([lambda: page.search("0" + Keys.ENTER), lambda: page.find("#legend button").click(), lambda: None])
    return lambda: next(steps)()


# -------------------------------------------------------------------- hostile texts


@every_kind
def test_hostile_texts_are_shown_and_never_run(browser: Any, pages: dict[str, Path], kind: str) -> None:
    page = opened(browser, pages[kind])
    text = page.script("return document.body.textContent")
    shown = [each for each in HOSTILE if " ".join(each.split()) in " ".join(text.split())]
    assert len(shown) >= 3
    assert page.script(UNSAFE) == []
    assert browser.get_log("browser") == []


def test_no_control_of_the_explorer_runs_a_text(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    page = opened(browser, pages["explorer"])
    page.script(KEEP)
    page.find("#save-csv").click()  # of all nodes
    used = []
    for each in walk(browser, HOSTILE[1], choosing(page)):
        used.append(each)
        assert page.script(UNSAFE) == [], each
    assert {"search", "color", "threshold", "save-csv", "save-svg", "new-name", "close", "theme"} <= set(used)
    assert browser.get_log("browser") == []
    files = browser.execute_async_script(SAVED)
    tables = [text for kind, text in files if kind.startswith("text/csv")]
    pictures = [text for kind, text in files if kind == "image/svg+xml"]
    assert {f"'{text}" for text in FORMULAS} <= {cell for row in csv.reader(io.StringIO(tables[0])) for cell in row}
    assert pictures
    for text in tables:
        assert [cell for row in csv.reader(io.StringIO(text)) for cell in row if is_formula(cell)] == []
    for text in pictures:
        assert_svg_is_plain(browser, text, tmp_path / "picture.svg")


def is_formula(cell: str) -> bool:
    """Whether a spreadsheet computes what a cell says (OWASP, CSV injection), in place of showing it."""
    number = re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", cell, re.I)
    return cell.startswith(tuple("=+-@\t\r\n＝＋－＠")) and not number


def assert_svg_is_plain(browser: Any, text: str, file: Path) -> None:
    root = ElementTree.fromstring(text)
    tags = {element.tag.partition("}")[2] for element in root.iter()}
    assert not tags & {"script", "foreignObject", "image", "use", "a", "animate", "set"}
    assert not [name for element in root.iter() for name in element.attrib if name.lower().startswith("on")]
    file.write_text(text, encoding="utf-8")
    browser.get(file.as_uri())
    assert browser.execute_script("return window.hacked ?? null") is None


@every_kind
def test_the_policy_refuses_what_gets_in(browser: Any, pages: dict[str, Path], kind: str) -> None:
    page = opened(browser, pages[kind])
    page.script(
        TRESPASS
        + """
        const button = document.createElement("button");
        button.setAttribute("onclick", "window.hacked = 1");
        document.body.append(button);
        button.click();
        """
    )
    wait(browser, "return refused.length === 4")
    wanted = {"connect-src", "img-src", "script-src-elem", "script-src-attr"}
    assert set(page.script("return refused")) == wanted
    assert page.script("return window.hacked ?? null") is None


# -------------------------------------------------------------------- for everyone


def looks(browser: Any) -> list[tuple[bool, tuple[int, int]]]:
    """Light and dark, wide and narrow; one look is enough for Firefox, whose elements are those of Chromium."""
    return [(True, PHONE)] if browser.name == "firefox" else [(False, DESKTOP), (True, PHONE)]


@every_kind
def test_axe_finds_nothing_serious(browser: Any, pages: dict[str, Path], kind: str) -> None:
    for dark, size in looks(browser):
        page = opened(browser, pages[kind], dark, size)
        page.script("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert page.script("return document.documentElement.scrollWidth") <= size[0]
        assert barriers(browser) == [], (dark, size)


def test_axe_finds_nothing_serious_wherever_the_explorer_leads(browser: Any, pages: dict[str, Path]) -> None:
    for dark, size in looks(browser):
        page = opened(browser, pages["explorer"], dark, size)
        page.script(KEEP + "walked = new Set(['theme'])")
        seen = visible_ids(browser)
        checked = []
        for used in walk(browser, "f", choosing(page)):
            now = visible_ids(browser)
            if now - seen:
                checked.append(used)
                assert barriers(browser) == [], (used, dark, size)
            seen |= now
        assert len(checked) >= 3


def test_the_explorer_by_keyboard_alone(browser: Any, pages: dict[str, Path]) -> None:
    page = opened(browser, pages["explorer"])
    page.script(KEEP)
    keys = Keyboard(browser)
    keys.to("search")
    keys.press("Film 5", Keys.ENTER)
    assert page.texts("#name") == ["Film 5"]
    keys.to("list")
    keys.press(Keys.ARROW_DOWN)
    neighbour = page.texts("#list .what")[1]
    keys.press(Keys.ENTER)
    assert page.texts("#name") == [neighbour]
    keys.to("threshold", back=True)
    keys.press(Keys.END)
    assert page.texts("#drawn") != page.texts("#total")
    keys.press(Keys.HOME)
    assert page.texts("#drawn") == page.texts("#total")
    keys.to("save-csv")
    keys.press(Keys.ENTER)
    assert neighbour in browser.execute_async_script(SAVED)[0][1]
    keys.to("show-table", back=True)
    keys.press(Keys.ENTER)
    assert page.script("return document.querySelector('#table').open")
    keys.press(Keys.ESCAPE)
    keys.to("theme", back=True)
    keys.press(Keys.SPACE)
    assert page.script("return document.documentElement.dataset.theme") == "dark"
    keys.to("canvas")
    keys.press("+", "0", Keys.ESCAPE)
    assert page.script("return document.querySelector('#panel').hidden")
    assert browser.get_log("browser") == []


class Keyboard:
    """Keys, and a focus that is always to be seen."""

    RING = """
        const { activeElement: e } = document;
        const seen = getComputedStyle(["radio", "checkbox"].includes(e.type) && e.nextElementSibling || e);
        return e === document.body || (seen.outlineStyle !== "none" && parseFloat(seen.outlineWidth) >= 2)
          ? null : e.outerHTML.slice(0, 100);
    """

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    def press(self, *keys: str) -> None:
        webdriver.ActionChains(self.browser, duration=0).send_keys(*keys).perform()

    def to(self, id: str, back: bool = False) -> None:
        """Tab to an element, or to one inside it."""
        inside = "return Boolean(document.activeElement.closest(`#${arguments[0]}`))"
        for _ in range(120):
            self.tab(back)
            assert self.browser.execute_script(self.RING) is None
            if self.browser.execute_script(inside, id):
                return
        raise AssertionError(f"Tab does not lead to {id}")

    def tab(self, back: bool) -> None:
        keys = webdriver.ActionChains(self.browser, duration=0)
        if back:
            keys.key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
        else:
            keys.send_keys(Keys.TAB).perform()
