"""The tables of parameters and of the presets' values say what the code has."""

import ast
import re

from doc_pages import DOCS

from air_recsys import AIR
from air_recsys.models.presets import PRESETS
from air_recsys.models.solvers import Adam, Langevin, Variational, parameter_names

PRESETS_PAGE = (DOCS / "presets.md").read_text(encoding="utf-8")
OWNERS = {"`AIR`": [AIR], "`Adam`": [Adam], "`Variational`, `Langevin`": [Variational, Langevin]}


def rows_below(heading):
    table = PRESETS_PAGE.split(f"\n{heading}")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def values(cell):
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
        (name, solver): (preset.model, preset.solvers.get(solver, {}))
        for name, preset in PRESETS.items()
        for solver in {preset.solver, *preset.solvers}
    }
    assert written == known
