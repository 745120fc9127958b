"""What pages name is there: links, pictures, roles, commands and options, parameters, and the walk of a rating."""

from __future__ import annotations

import ast
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer
from doc_pages import DOCS, PAGES, REPORTS, ROOT, anchors, blocks, commands, links, name_of

import air_recsys
from air_recsys import AIR
from air_recsys.cli.app import app
from air_recsys.datasets import read_ratings
from air_recsys.models.presets import PRESETS
from air_recsys.models.solvers import Adam, Langevin, Variational, parameter_names

TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
IMAGES = sorted(path for path in (DOCS / "images").rglob("*") if path.is_file())


# -------------------------------------------------------------------- links, pictures, roles. No network


def is_there(page: Path, target: str) -> bool:
    parts = urlsplit(target)
    if parts.scheme:
        return parts.scheme == "https" and "." in parts.netloc
    aim = (page.parent / parts.path).resolve() if parts.path else page
    inside = aim == ROOT or ROOT in aim.parents
    return inside and aim.exists() and (not parts.fragment or parts.fragment in anchors(aim))


def test_every_link_leads_somewhere():
    pages = (*PAGES, *REPORTS)
    assert [
        f"{name_of(page)}: {target}" for page in pages for target in links(page) if not is_there(page, target)
    ] == []


def test_the_check_sees_dead_and_live_links():
    dead = "nowhere.md", "start.md#nowhere", "images/nowhere.png", "#nowhere", "../../x"
    live = "start.md#install", "images/demo.png", "../examples/tuning.py", "#install"
    assert [is_there(DOCS / "start.md", target) for target in (*dead, *live)] == [False] * 5 + [True] * 4


def test_every_role_names_an_object():
    for text in TEXTS.values():
        for role in re.findall(r"\{py:\w+\}`([^`]*)`", text):
            named = re.search(r"<(.*)>", role)
            pkgutil.resolve_name(named.group(1) if named else role)


def test_every_picture_is_shown_on_a_page_and_has_a_command():
    shown = {(page.parent / target).resolve() for page in PAGES for target in links(page)}
    assert {path.relative_to(DOCS).as_posix() for path in IMAGES if path not in shown} == set()
    table = TEXTS[DOCS / "making" / "contributing.md"].split("| picture | command |")[1]
    named = re.findall(r"`([\w./-]+(?:\.png|/))`", table)
    pictures = [path.relative_to(DOCS / "images").as_posix() for path in IMAGES]
    assert [name for name in pictures if not name.startswith(tuple(named))] == []


# -------------------------------------------------------------------- commands

COMMAND: Any = typer.main.get_command(app)
LINES = sorted({line for page in PAGES for block in blocks(page) for line in commands(block)})
IN_TEXT = sorted(
    " ".join(f"air-recsys {found}".split())
    for text in TEXTS.values()
    for found in re.findall(r"`air-recsys ([^`]*)`", text)
)


def unknown_words(line: str) -> list[str]:
    """The words of a line that no command or option has; values and files are left alone."""
    meant, words = COMMAND, shlex.split(line)[1:]
    while words and not words[0].startswith("--") and (below := getattr(meant, "commands", None)) is not None:
        word = words.pop(0)
        if word not in below:
            return [word]
        meant = below[word]
    options = {option for parameter in meant.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return [word for word in words if word.startswith("--") and word.split("=")[0] not in options | {"--help"}]


def test_commands_have_the_options_that_the_pages_give_them():
    assert len(LINES) > 15
    assert {line: unknown for line in (*LINES, *IN_TEXT) if (unknown := unknown_words(line))} == {}


def test_the_check_sees_what_there_is_not():
    assert all(
        unknown_words(f"air-recsys {words}") for words in ("trian", "train --no-such x", "dti nothing", "--no-such")
    )


def test_shell_blocks_are_shell():
    text = "".join(
        f"if false; then\n{block.text}\nfi\n" for page in PAGES for block in blocks(page) if block.language == "bash"
    )
    checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_benchmarks_that_the_pages_name_are_there():
    from benchmarks.commands import COMMANDS

    named = {name for text in TEXTS.values() for name in re.findall(r"python -m benchmarks\s+([a-z][\w-]*)", text)}
    assert named - set(COMMANDS) == set()


# -------------------------------------------------------------------- parameters

OWNERS = {"`AIR`": [AIR], "`Adam`": [Adam], "`Variational`, `Langevin`": [Variational, Langevin]}


def rows_below(heading: str) -> list[list[str]]:
    table = TEXTS[DOCS / "presets.md"].split(f"\n{heading}")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def values(cell: str) -> dict[str, Any]:
    pairs = (text.split("=", 1) for text in re.findall(r"`([^`]*)`", cell))
    return {name: ast.literal_eval(value) for name, value in pairs}


def test_every_owner_has_its_parameters():
    for owner, cell in rows_below("| of | parameters |"):
        named = re.findall(r"`(\w+)`", cell)
        for kind in OWNERS[owner]:
            assert sorted(named) == sorted(parameter_names(kind))


def test_the_table_of_presets_has_their_values():
    written, preset, model = {}, "", {}
    for name, solver, of_model, of_solver in rows_below("| preset | solver | of `AIR` |"):
        preset = name.strip("`").removeprefix("for_") or preset
        model = model if of_model == "the same" else values(of_model)
        written[preset, solver.strip('`"')] = model, values(of_solver)
    known = {
        (name, solver): (
            preset.model,
            preset.solvers.get(solver, {}) | (preset.unasked if solver == preset.solver else {}),
        )
        for name, preset in PRESETS.items()
        for solver in {preset.solver, *preset.solvers}
    }
    assert written == known


# -------------------------------------------------------------------- the walks of a rating and of a like

PACKAGE = Path(air_recsys.__file__).parent
STAY = re.compile(r"^(\d+)\. `([\w/]+\.py)` `([\w.]+)`", re.MULTILINE)
RATINGS = "user,item,rating\nann,a,4\nann,b,5\nbob,a,5\nbob,d,2\ncid,b,1\ncid,d,4\ndan,a,1\ndan,d,5\n"
LIKES = "user,item\n" + "\n".join(f"u{user},i{item}" for user in range(12) for item in range(10) if (user + item) % 3)


def rating(path: Path) -> None:
    path.write_text(RATINGS)
    AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(read_ratings(path)).predict("ann", "d")


def like(path: Path) -> None:
    path.write_text(LIKES)
    model = AIR.for_likes(n_factors=2, n_steps=3, random_state=0, device="cpu")
    model.fit(read_ratings(path, rating=None)).recommend("u0", n=2)


def entered(run: Callable[[], None]) -> list[tuple[str, str]]:
    """File and function of every call of the package in a run, in order."""
    calls: list[tuple[str, str]] = []

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            calls.append((Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize(("heading", "walk"), [("A rating", rating), ("A like", like)])
def test_a_run_enters_every_stay_in_its_order_and_none_is_a_private_hook(heading, walk, tmp_path):
    stays = STAY.findall(TEXTS[DOCS / "making" / "walk.md"].split(f"\n## {heading}\n")[1].split("\n## ")[0])
    assert [int(number) for number, *_ in stays] == list(range(1, len(stays) + 1))
    assert 10 <= len(stays) <= 20
    names = [function.rpartition(".")[2] for *_, function in stays]
    assert [name for name in names if name.startswith("_") and name != "__init__"] == []
    calls, position = entered(lambda: walk(tmp_path / "table.csv")), 0
    for _, path, function in stays:
        later = calls[position:]
        assert (path, function) in later, f"{function} of {path} is not entered after the stay before it"
        position += later.index((path, function)) + 1
