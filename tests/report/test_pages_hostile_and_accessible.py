"""Every kind of page in both browsers: hostile texts are only shown, and nothing bars anyone."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from axe import barriers
from browsers import BOTH, LUMINANCE, TRESPASS, Page, browser_named, show
from explorer_cases import HOSTILE as MARKUP
from explorer_cases import rated
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from air_recsys import AIR, SimilarityGraph
from air_recsys.dti import DrugTargetAIR
from air_recsys.evaluation import compare
from air_recsys.models import BiasModel
from air_recsys.report import write_comparison, write_drug_target_report, write_explorer, write_report
from air_recsys.splits import random_holdout

pytestmark = pytest.mark.filterwarnings("ignore:ids such as")  # that begin with a tab
FORMULAS = ('=HYPERLINK("//x.invalid/?"&A1,"open")', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1,9)", "\t=1+1", "＝1+1")
HOSTILE = (*MARKUP, "javascript:window.hacked=1", "</svg><svg onload=window.hacked=1>", *FORMULAS)
KINDS = ["explorer", "report", "drugs", "comparison"]
DESKTOP, PHONE = (1280, 800), (390, 844)
BUTTON = """
const button = document.createElement("button");
button.setAttribute("onclick", "window.hacked = 1");
document.body.append(button);
button.click();
"""
# The lowest ratio of luminances, as WCAG 2 defines it, of texts and of the page behind them.
LOWEST = (
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
# One control at a time: the first that is seen and was not used yet, in an open dialog before the rest of the page.
# Of many alike in one place, such as the entries of a list, some are used.
STEP = r"""
window.walked ??= new Set();
const ALIKE = 6;
const kinds = "button, input:not([type=file]), select, textarea, summary, [role=button], [role=tab], [role=switch]";
const place = (e) => e.parentElement.closest("[id]")?.id ?? "";
const name = (e, all) => e.id || [place(e), e.tagName, e.type,
  Math.min(ALIKE, all.filter((other) => place(other) === place(e) && other.type === e.type).indexOf(e))].join(" ");
const closes = (e) => /close|clear|back|remove/i.test(`${e.id} ${e.getAttribute("aria-label")}`);
const open = document.querySelector("dialog[open]");
const all = [...(open ?? document).querySelectorAll(kinds)].filter((e) => e.checkVisibility() && !e.disabled);
all.sort((a, b) => closes(a) - closes(b));
const next = all.find((e) => !walked.has(name(e, all)));
if (!next) {
  open?.close();
  return open ? "close a dialog" : null;
}
const used = name(next, all);
walked.add(used);
const tell = (...types) => types.forEach((type) => next.dispatchEvent(new Event(type, { bubbles: true })));
const set = (value) => { next.value = value; tell("input", "change"); };
if (next.tagName === "SELECT") [...next.options].map((option) => option.value).forEach(set);
else if (["range", "number"].includes(next.type)) [next.min, next.max].forEach(set);
else if (["text", "search", ""].includes(next.type) || next.tagName === "TEXTAREA") {
  next.focus();
  set(arguments[0]);
  next.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
} else next.click();
return used;
"""
# What the page saves is kept: names, types and contents.
KEEP = """
window.saved = [];
const make = URL.createObjectURL;
URL.createObjectURL = (blob) => { saved.push(blob); return make.call(URL, blob); };
HTMLAnchorElement.prototype.click = function () {};
"""
SAVED = """
const done = arguments[arguments.length - 1];
Promise.all(saved.map(async (blob) => [blob.type, await blob.text()])).then(done);
"""
# Whatever of a page could run or load something that came with a text.
UNSAFE = r"""
const runs = (e) => [...e.attributes].some(({ name, value }) => /^on/i.test(name)
  || (/^(href|xlink:href|src|action|formaction|srcdoc)$/i.test(name) && /^\s*(javascript|https?):/i.test(value)));
const loads = (e) => e.matches("iframe, object, embed, img:not([src^='data:'])");
const found = [...document.querySelectorAll("*")].filter((e) => loads(e) || runs(e));
return [...(window.hacked ? ["it has run"] : []), ...found.map((e) => e.outerHTML.slice(0, 200))];
"""
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


def write_pages(folder: Path) -> dict[str, Path]:
    """Write an explorer, a report, a report on drugs and targets, and a comparison."""
    writers = {"explorer": _explorer, "report": _report, "drugs": _drugs, "comparison": _comparison}
    return {name: write(folder / f"{name}.html") for name, write in writers.items()}


def _texts(n: int) -> list[str]:
    """Return all hostile texts, then names."""
    return [*HOSTILE, *(f"Film {number}" for number in range(n))][:n]


def _explorer(path: Path) -> Path:
    """Items with steps, attributes and ratings, and users, all under hostile names."""
    rng = np.random.default_rng(1)
    group = np.arange(30) % 3
    near = np.where(np.equal.outer(group, group), rng.random((30, 30)), 0.1 * (rng.random((30, 30)) < 0.1))
    kinds = np.array(HOSTILE)[group]
    table = pd.DataFrame({"title": _texts(30), "kind": kinds, HOSTILE[1]: _texts(30), "year": 1960.0 + group})
    items = SimilarityGraph(near + near.T, range(30), kind="item", attributes=table, label="title")
    early = SimilarityGraph(np.where(near + near.T > 1, 1.0, 0.0), range(30), kind="item")
    users = SimilarityGraph(np.kron(np.eye(2), np.ones((20, 20))), range(40), kind="user")
    graphs = {HOSTILE[0]: items, HOSTILE[6]: users}
    return write_explorer(path, graphs, snapshots={HOSTILE[0]: {7: early}}, ratings=rated(40, 30), title=HOSTILE[1])


def _report(path: Path) -> Path:
    data = rated(40, 30)
    split = random_holdout(data, 0.2, random_state=0)
    kinds = pd.DataFrame({"kind": [HOSTILE[0], "plain"] * 15})
    train = data.select(split.train)
    model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(train, item_features=kinds)
    titles = dict(enumerate(_texts(30))) | {29: "A film with a long title of many words, which has to break"}
    return write_report(model, path, test=data.select(split.test), titles=titles)


def _drugs(path: Path) -> Path:
    values = np.kron(np.eye(3), np.ones((5, 4)))
    values[1, 2], values[5, 8] = 0, np.nan
    table = pd.DataFrame(values, _texts(15), [*HOSTILE[::-1]])
    return write_drug_target_report(DrugTargetAIR().fit(table), path)


def _comparison(path: Path) -> Path:
    models = {HOSTILE[0]: "Biases", HOSTILE[4]: BiasModel(bias_decay=50), HOSTILE[6]: "Popularity"}
    return write_comparison(compare(models, rated(40, 30), progress=False), path)


def walk(browser: Any, text: str, again: Callable[[], object], rounds: int = 3) -> Iterator[str]:
    """Use every control of a page, and tell its name.

    `again` shows what a used control may have hidden; with every round it may show something else.
    """
    for _ in range(rounds):
        again()
        while (used := browser.execute_script(STEP, text)) is not None:
            yield used


def visible_ids(browser: Any) -> set[str]:
    """The ids of all that is seen: when new ones come, the page is in a new state."""
    script = "return [...document.querySelectorAll('[id]')].filter((e) => e.checkVisibility()).map((e) => e.id)"
    return set(browser.execute_script(script))


def wait(browser: Any, script: str) -> None:
    WebDriverWait(browser, 15, poll_frequency=0.05).until(lambda _: browser.execute_script(script))


def choosing(page: Page) -> Any:
    """Return a function that chooses a node, then a community, then nothing."""
    steps = iter([lambda: page.search("0" + Keys.ENTER), lambda: page.find("#legend button").click(), lambda: None])
    return lambda: next(steps)()


@every_kind
def test_hostile_texts_are_shown_and_whatever_gets_in_never_runs(
    browser: Any, pages: dict[str, Path], kind: str
) -> None:
    page = opened(browser, pages[kind])
    text = page.script("return document.body.textContent")
    shown = [each for each in HOSTILE if " ".join(each.split()) in " ".join(text.split())]
    assert len(shown) >= 3
    assert page.script(UNSAFE) == []
    assert browser.get_log("browser") == []
    page.script(TRESPASS + BUTTON)
    wait(browser, "return refused.length === 4")
    wanted = {"connect-src", "img-src", "script-src-elem", "script-src-attr"}
    assert set(page.script("return refused")) == wanted
    assert page.script("return window.hacked ?? null") is None


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
    browser.get(f"{pages['explorer'].as_uri()}#node=1&name=0%20{HOSTILE[0]}&color={HOSTILE[1]}")
    wait(browser, "return document.documentElement.dataset.ready")
    wait(browser, f"return document.querySelector('#legend .what').textContent === {json.dumps(HOSTILE[0])}")
    assert page.texts("#name") == [HOSTILE[1]]
    assert page.script(UNSAFE) == []


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


def looks(browser: Any) -> list[tuple[bool, tuple[int, int]]]:
    """Light and dark, wide and narrow; one look is enough for Firefox, whose elements are those of Chromium."""
    return [(True, PHONE)] if browser.name == "firefox" else [(False, DESKTOP), (True, PHONE)]


@every_kind
def test_axe_finds_nothing_serious(browser: Any, pages: dict[str, Path], kind: str) -> None:
    for dark, size in looks(browser):
        page = opened(browser, pages[kind], dark, size)
        if kind == "report":  # whose figures axe-core does not look at
            assert page.script(LOWEST, "h1, h2, h3, p, td, th, a, caption, figcaption, li, svg text") >= 4.5
            assert page.script(SMALLEST) >= 10
        page.script("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert page.script("return document.documentElement.scrollWidth") <= size[0]
        assert barriers(browser) == [], (dark, size)


def test_axe_finds_nothing_serious_wherever_the_explorer_leads(browser: Any, pages: dict[str, Path]) -> None:
    for dark, size in looks(browser):
        page = opened(browser, pages["explorer"], dark, size)
        page.script(KEEP + "walked = new Set(['theme'])")
        assert page.script("return document.querySelector('#canvas').clientHeight") > 300
        seen = visible_ids(browser)
        checked = []
        for used in walk(browser, "f", choosing(page)):
            now = visible_ids(browser)
            if now - seen:
                checked.append(used)
                assert barriers(browser) == [], (used, dark, size)
            seen |= now
        assert len(checked) >= 3


def test_accuracy_and_two_pictures_are_on_the_first_screen_of_a_report(browser: Any, pages: dict[str, Path]) -> None:
    bottoms = opened(browser, pages["report"]).script(
        "return [...document.querySelectorAll('#accuracy figure svg, #accuracy .lead')]"
        ".map((element) => element.getBoundingClientRect().bottom)"
    )
    assert len(bottoms) == 3
    assert max(bottoms) <= DESKTOP[1]


def test_figures_turn_dark_with_the_page(browser: Any, pages: dict[str, Path]) -> None:
    fill = "return getComputedStyle(document.querySelector('figure svg text')).fill"
    fills = []
    for dark in (False, True):
        page = opened(browser, pages["report"], dark)
        fills.append(page.script(fill))
        assert fills[-1] == page.script("return getComputedStyle(document.body).color")
    assert fills[0] != fills[1]


def test_paper_is_a4_white_and_shows_what_was_folded(browser: Any, pages: dict[str, Path]) -> None:
    if browser.name == "firefox":
        pytest.skip("only Chromium prints by command, and shows what it would print")
    page = opened(browser, pages["report"], dark=True)
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True})
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", base64.b64decode(printed["data"]))
    assert {tuple(map(round, map(float, box))) for box in boxes} == {(595, 842)}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert page.script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    heights = page.script(
        "return [...document.querySelectorAll('details table')].map((table) => table.getBoundingClientRect().height)"
    )
    assert heights
    assert min(heights) > 20
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
