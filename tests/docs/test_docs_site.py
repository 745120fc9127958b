"""The site: built without a warning, whole, with every public name, and with equations that need no network."""

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys

import pytest
from doc_pages import CELL, DOCS, PAGES, blocks, name_of

sphinx = pytest.importorskip("sphinx", reason="the site needs the extra docs")
from sphinx.util.inventory import InventoryFile  # noqa: E402

import air_recsys  # noqa: E402

PRIVATE = {"cli", "data", "nn", "storage", "training"}  # rooms without a public name, see docs/architecture.md
PUBLIC = ["air_recsys"] + [
    f"air_recsys.{module.name}"
    for module in pkgutil.iter_modules(air_recsys.__path__)
    if module.ispkg and module.name not in PRIVATE
]
NOTEBOOKS = [page for page in PAGES if any(block.language == CELL for block in blocks(page))]
EQUATIONS = DOCS / "mathematics.md"
WIDE = ["index", "start", "ratings", "dti", "graphs", "measured", "compare", "similarities", "plots", "api/air"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", str(DOCS), str(target)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stderr
    return target


def test_every_page_is_there(site):
    pages = [page.relative_to(DOCS).with_suffix(".html") for page in PAGES if DOCS in page.parents]
    assert [page.as_posix() for page in pages if not (site / page).exists()] == []


def test_notebooks_show_what_their_cells_give(site):
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
            undocumented = (inspect.isclass(value) or inspect.isfunction(value)) and not {
                f"{package}.{name}",
                defined,
            } & known
            missing += [f"{package}.{name}"] if undocumented else []
    assert missing == []


def test_equations_are_drawn_by_the_browser(site):
    page = (site / "mathematics.html").read_text(encoding="utf-8")
    assert page.count('display="block"') == EQUATIONS.read_text(encoding="utf-8").count("$$") // 2
    assert re.findall(r"<script[^>]*mathjax", page, re.IGNORECASE) == []


def test_a_page_asks_the_network_for_nothing(site):
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


def test_every_equation_has_its_code():
    sections = EQUATIONS.read_text(encoding="utf-8").split("\n## ")
    without = [part.splitlines()[0] for part in sections if "$$" in part and "{py:" not in part]
    assert without == []


@pytest.mark.parametrize("name", ["mathml", "docstrings", "made_library"])
def test_the_examples_of_the_extensions(name, monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    tried = doctest.testmod(importlib.import_module(name))
    assert tried.attempted > 0
    assert tried.failed == 0
