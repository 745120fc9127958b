"""The code of every page runs, from top to bottom, in an empty folder; what a page says it prints, it prints.

The cells of a notebook run when the site is built, see test_docs_site.py.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
from dataclasses import replace

import pytest
import torch

# Before MLflow is imported: no message to its makers, and its folder store, which needs no database package.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"

import doc_pages
import joblib
from doc_pages import CELL, PAGES, blocks, commands, name_of
from page_settings import SETTINGS

from air_recsys import datasets
from air_recsys.cli import main
from air_recsys.models.presets import PRESETS
from air_recsys.models.solvers import SOLVERS

LANGUAGES_OF = {page: {block.language for block in blocks(page)} for page in PAGES}
CODE = [page for page, found in LANGUAGES_OF.items() if "python" in found or {CELL, "bash"} <= found]
LANGUAGES = {"python", CELL, "bash", "text", "", "{toctree}", "{eval-rst}", "{include} ../CHANGELOG.md"}
QUICK = {"train", "evaluate", "compare", "recommend", "predict", "similar", "explain", "graph", "report", "inpaint"}
AS_WRITTEN = {"docs/walk.md"}  # it says what a whole training ends in
MOST_WORDS = 35_000  # of README and docs/
LOOKS_LIKE_CODE = re.compile(r"^(from|import) \w+|^[a-z_]+ = \w+[.(]|^(air-recsys|pip|python|torchrun) ", re.MULTILINE)


def shortened(name, steps):
    """A preset with few epochs, or sweeps, of each of its solvers."""
    preset = PRESETS[name]
    solvers = {solver: preset.solvers.get(solver, {}) | {f"n_{kind.unit}s": steps} for solver, kind in SOLVERS.items()}
    return replace(preset, solvers=solvers)


def run_shell(block):
    """Run the commands of a block that take seconds."""
    for line in commands(block):
        words = shlex.split(line)[1:]
        if words[0] in QUICK:
            with pytest.raises(SystemExit) as ended:
                main(words)
            assert not ended.value.code, line


def run_page(page, names):
    printed = ""
    for block in blocks(page):
        if block.language == "python":
            # Blank lines before it: a traceback then names the line of the page.
            code = compile("\n" * (block.line - 1) + block.text, name_of(page), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(code, names)
            printed = output.getvalue()
        elif block.language == "bash":
            run_shell(block)
        elif block.language == "text" and printed:
            same = doctest.OutputChecker().check_output(block.text, printed, doctest.ELLIPSIS)
            assert same, f"line {block.line}: expected\n{block.text}\nfound\n{printed}"
            printed = ""


@pytest.mark.parametrize("page", CODE, ids=name_of)
@pytest.mark.filterwarnings("ignore:Model is already fitted:UserWarning")  # Cornac's, where an index takes a model
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    torch.set_num_threads(1)  # a library of the page before may have set more
    if name_of(page) not in AS_WRITTEN:  # the code is tested here, not what it reaches
        monkeypatch.setitem(PRESETS, "ratings", shortened("ratings", 2))
        monkeypatch.setitem(PRESETS, "completion", shortened("completion", 60))
    for name in ("load_yamanishi", "load_davis"):
        monkeypatch.setattr(datasets, name, getattr(datasets, name))  # pages may set others in their place
    monkeypatch.chdir(tmp_path)
    with joblib.parallel_config("threading"):  # workers of their own would import everything again
        run_page(page, {"__name__": "page", **SETTINGS.get(name_of(page), dict)()})


def test_code_stands_in_fences():
    for page in PAGES:
        found = blocks(page)
        assert {block.language for block in found} <= LANGUAGES, name_of(page)
        indented = [block.line for block in found if block.language == "" and LOOKS_LIKE_CODE.search(block.text)]
        assert indented == [], name_of(page)


def test_the_pages_stay_short():
    pages = [page for page in PAGES if page.name != "CHANGELOG.md"]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= MOST_WORDS


def test_what_is_wrong_is_seen(tmp_path, monkeypatch):
    page = tmp_path / "wrong.md"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doc_pages, "ROOT", tmp_path)
    for text, error in (
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", AssertionError),
        ("```python\nnothing\n```\n", NameError),
        ("```bash\nair-recsys train nowhere.csv --model x.air\n```\n", AssertionError),
    ):
        page.write_text(text)
        with pytest.raises(error):
            run_page(page, {})
