"""The site: built without a warning, whole, with every public name, with equations that need no network."""

import doctest
import importlib
import inspect
import pkgutil
import re
import runpy
import subprocess
import sys

import pytest
from doc_pages import CELL, DOCS, PAGES, blocks, name_of

sphinx = pytest.importorskip("sphinx", reason="the site needs the extra docs")
from sphinx.util.inventory import InventoryFile  # noqa: E402

import air_recsys  # noqa: E402

PRIVATE = {"cli", "data", "nn", "storage", "training"}  # rooms without a public name, see docs/making/architecture.md
PUBLIC = ["air_recsys"] + [
    f"air_recsys.{module.name}"
    for module in pkgutil.iter_modules(air_recsys.__path__)
    if module.ispkg and module.name not in PRIVATE
]
LONG = "plots.md"  # its cells run in test_docs_code.py, shortened
IN_PROCESS = (LONG, "notebooks/*")  # those of notebooks run there, too, without a kernel for each
NOTEBOOKS = [page for page in PAGES if page.name != LONG and any(block.language == CELL for block in blocks(page))]
# Without pages of source code, and without the explorer of the made library, which is tested below.
BUILD = """
import sys
from sphinx.application import Sphinx
changes = {
    "extensions": ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "mathml", "docstrings", "reports"],
    "nb_execution_excludepatterns": sys.argv[3:],
    "suppress_warnings": ["myst-nb.lexer"],  # of its cells
}
docs, target = sys.argv[1:3]
site = Sphinx(docs, docs, target, f"{target}/doctrees", "html", changes, status=None, warningiserror=True)
site.build()
sys.exit(site.statuscode)
"""
EQUATIONS = DOCS / "making" / "mathematics.md"
WIDE = [
    "index",
    "start",
    "ratings",
    "ranking",
    "dti",
    "graphs",
    "measured",
    "compare",
    "similarities",
    "plots",
    "exporting",
]
WIDE += ["api/air", "making/index", "notebooks/replacing"]
# What people look for, and the page that answers it.
QUESTIONS = {
    "weights": "data",
    "delete": "fold-in",
    "cold start": "fold-in",
    "save": "exporting",
    "GPU": "gpu-and-scale",
    "forget user": "fold-in",
    "new items": "fold-in",
    "confidence interval": "ratings",
    "CSV": "exporting",
    "SQL": "exporting",
    "Parquet": "exporting",
    "faiss": "exporting",
    "explain": "explanations",
    "probability": "explanations",
    "similar items": "graphs",
    "communities": "graphs",
    "genres": "features",
    "timestamp": "time",
    "purchases": "ranking",
    "plays": "ranking",
    "diversity": "ranking",
    "SMILES": "dti",
    "compare": "compare",
    "HTTP": "serving",
    "memory": "gpu-and-scale",
    "checkpoint": "checkpoints",
    "pickle": "trust",
    "missing values": "data",
    "tune": "tuning",
    "implicit": "adapters/implicit",
}
FIRST = ("weights", "delete", "cold start", "save", "GPU")  # the first result of all
ANSWERS = """
const pages = (query) => Search._performSearch(...Search._parseQuery(query)).reverse().map(([page]) => page);
return arguments[0].map(pages);
"""
CALLED = runpy.run_path(str(DOCS / "_ext" / "docstrings.py"))["PEOPLE_CALL"]
MADE = runpy.run_path(str(DOCS / "_ext" / "made_library.py"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-c", BUILD, str(DOCS), str(target), *IN_PROCESS]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stderr
    return target


def test_every_page_is_there_and_notebooks_show_what_their_cells_give(site):
    pages = [page.relative_to(DOCS).with_suffix(".html") for page in PAGES if DOCS in page.parents]
    assert [page.as_posix() for page in pages if not (site / page).exists()] == []
    for page in NOTEBOOKS:
        built = (site / page.relative_to(DOCS).with_suffix(".html")).read_text(encoding="utf-8")
        assert 'class="cell_output' in built, name_of(page)
        assert 'class="output text_plain' in built or "<table" in built
        assert ".png" in built
        assert 'class="output stderr' not in built
        assert "&lt;Figure" not in built


def test_the_reference_has_every_public_name(site):
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    known = {name for kind in inventory.data if kind.startswith("py:") for name in inventory.data[kind]}
    missing = []
    for package in PUBLIC:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            defined = f"{getattr(value, '__module__', package)}.{getattr(value, '__name__', name)}"
            shown = {f"{package}.{name}", defined} & known
            missing += (
                [f"{package}.{name}"] if not shown and (inspect.isclass(value) or inspect.isfunction(value)) else []
            )
    assert missing == []


def test_equations_are_drawn_by_the_browser_and_pages_ask_the_network_for_nothing(site):
    page = (site / "making" / "mathematics.html").read_text(encoding="utf-8")
    assert page.count('display="block"') == EQUATIONS.read_text(encoding="utf-8").count("$$") // 2
    assert re.findall(r"<script[^>]*mathjax", page, re.IGNORECASE) == []
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r'<(?:script|img|iframe)[^>]+src="(https?:[^"]+)"', text)
        fetched += re.findall(r'<link[^>]+rel="(?:stylesheet|preload)"[^>]+href="(https?:[^"]+)"', text)
        assert fetched == [], page.name


def test_tables_and_code_scroll_on_a_phone_and_pages_do_not(site):
    """Wide tables and blocks have a scroll bar of their own; the text of code in a line breaks."""
    from browsers import chromium, show

    overflow = """
    const wide = [...document.querySelectorAll("article :is(p, li, h1, h2, h3, img, code)")];
    const held = (element) => element.closest("table, pre, math, .drawn, .cell_output") !== null;
    return [document.documentElement.scrollWidth, wide.filter(
      (element) => !held(element) && element.getBoundingClientRect().right > innerWidth).map((e) => e.textContent)];
    """
    with chromium() as browser:
        show(browser, dark=False, size=(390, 844))
        for page in WIDE:
            browser.get((site / f"{page}.html").as_uri())
            assert browser.execute_script(overflow) == [390, []], page


def test_thirty_questions_are_answered_by_the_search_and_within_two_clicks(site):
    from browsers import chromium
    from selenium.webdriver.support.ui import WebDriverWait

    def linked(page):
        text = (site / f"{page}.html").read_text(encoding="utf-8")
        return {target for target in re.findall(r'href="([^"#:]+)\.html', text) if (site / f"{target}.html").exists()}

    near = linked("index").union(*(linked(page) for page in linked("index") if "/" not in page))
    assert set(QUESTIONS.values()) <= near
    with chromium() as browser:
        browser.get((site / "search.html").as_uri() + "?q=weights")
        WebDriverWait(browser, 20).until(lambda driver: driver.execute_script("return Search.hasIndex()"))
        found = dict(zip(QUESTIONS, browser.execute_script(ANSWERS, list(QUESTIONS)), strict=True))
    assert {query: found[query][:3] for query, page in QUESTIONS.items() if page not in found[query][:3]} == {}
    assert [query for query in FIRST if found[query][0] != QUESTIONS[query]] == []


def test_the_reference_shows_of_models_what_people_call(site):
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    shown = {name for kind in ("py:method", "py:property") for name in inventory.data[kind]}
    of_air = {name.removeprefix("air_recsys.AIR.") for name in shown if name.startswith("air_recsys.AIR.")}
    assert {"fit", "predict", "recommend", "item_graph_", "save"} <= of_air
    assert of_air.isdisjoint({"engine", "spread_epochs", "check_fitted", "factors_", "take_state"})
    assert {name.rpartition(".")[2] for name in shown} >= CALLED


def test_every_equation_has_its_code():
    sections = EQUATIONS.read_text(encoding="utf-8").split("\n## ")
    without = [part.splitlines()[0] for part in sections if "$$" in part and "{py:" not in part]
    assert without == []


@pytest.mark.parametrize("name", ["mathml", "docstrings", "reports", "made_library"])
def test_the_examples_of_the_extensions(name, monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    tried = doctest.testmod(importlib.import_module(name))
    assert tried.attempted > 0
    assert tried.failed == 0


def test_page_and_picture_are_of_a_training(tmp_path, monkeypatch):
    for name, short in (("_N_EPOCHS", 30), ("_STEPS", (0, 10))):
        monkeypatch.setitem(MADE["trained_on"].__globals__, name, short)
    made = MADE["make_catalogue"]()
    assert "The Silent" in MADE["write_page"](made, tmp_path / "story.html").read_text(encoding="utf-8")
    assert MADE["draw_course"](made, tmp_path / "story.png").read_bytes().startswith(b"\x89PNG")
