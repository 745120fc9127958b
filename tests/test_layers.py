"""Imports point one way: a module imports only from its own layer and from those before it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from air_recsys.storage.writers import WRITERS

PACKAGE = Path(__file__).resolve().parents[1] / "air_recsys"
LAYERS = (
    {"exceptions", "storage"},
    {"metrics"},
    {"data", "splits"},
    {"graphs"},
    {"nn"},
    {"training"},
    {"models", "solvers"},
    {"datasets", "images"},
    {"adapters"},
    {"evaluation"},
    {"dti"},
    {"distributed"},
    {"report"},
    {"serving"},
    {"cli"},
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
HOSTS = {"surprise", "implicit", "cornac", "myfm", "lightfm"}


class Import(NamedTuple):
    """One imported module: by whom, what, and where."""

    importer: str
    imported: str
    function: str | None  # the function that the import stands in
    typing_only: bool
    line: int


def dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported_names(node: ast.AST) -> list[str]:
    """The modules that a statement or a call of `import_extra` or `import_module` imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"relative import in line {node.lineno}"
        assert node.module is not None
        whole = [f"{node.module}.{alias.name}" for alias in node.names]
        return [name if name in MODULES else node.module for name in whole]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("import_extra", "import_module", "__import__"):
            return [str(node.args[0].value)]
    return []


def walk(node: ast.AST, function: str | None = None, typing_only: bool = False) -> Iterator[tuple]:
    """Every node below `node` with the function it stands in and whether only type checkers see it."""
    for child in ast.iter_child_nodes(node):
        inside, unseen = function, typing_only
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = child.name
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            unseen = True
        yield child, inside, unseen
        yield from walk(child, inside, unseen)


def imports_of(source: str, importer: str) -> list[Import]:
    return [
        Import(importer, imported, function, typing_only, getattr(node, "lineno", 0))
        for node, function, typing_only in walk(ast.parse(source))
        for imported in imported_names(node)
    ]


IMPORTS = [entry for name, path in MODULES.items() for entry in imports_of(path.read_text(encoding="utf-8"), name)]


def layer(module: str) -> int:
    """The rank of a module; the package itself gathers what is public up to the models."""
    parts = module.split(".")
    return RANK[parts[1]] if len(parts) > 1 else RANK["models"]


def against_the_layers(entry: Import) -> bool:
    if entry.imported.split(".")[0] != "air_recsys":
        return False
    return layer(entry.imported) > layer(entry.importer)


def foreign_host(entry: Import) -> bool:
    return (
        entry.imported.split(".")[0] in HOSTS
        and not entry.typing_only
        and not entry.importer.startswith("air_recsys.adapters")
    )


def shown(entries: list[Import]) -> list[str]:
    return [f"{entry.importer}:{entry.line} imports {entry.imported}" for entry in entries]


def test_every_module_has_a_layer():
    names = {module.split(".")[1] for module in MODULES if "." in module}
    assert names <= RANK.keys() | {"__main__"}
    assert len(IMPORTS) > 100  # the parser sees them


def test_imports_point_one_way():
    assert shown([entry for entry in IMPORTS if against_the_layers(entry)]) == []


def test_hosts_are_imported_by_adapters_only():
    assert shown([entry for entry in IMPORTS if foreign_host(entry)]) == []


def test_no_module_imports_an_adapter_when_it_is_imported():
    """An adapter needs its host, and whoever imported one at once would need it too."""
    eager = [entry for entry in IMPORTS if entry.function is None and not entry.typing_only]
    adapters = [entry for entry in eager if entry.imported.startswith("air_recsys.adapters.")]
    assert shown([entry for entry in adapters if not entry.importer.startswith("air_recsys.adapters")]) == []


def test_modules_import_each_other_in_no_circle():
    """Imports within functions and those for type checkers count, too."""
    graph = {name: set() for name in MODULES}
    for entry in IMPORTS:
        if entry.imported in MODULES:
            graph[entry.importer].add(entry.imported)
    TopologicalSorter(graph).prepare()  # raises CycleError


def test_writers_of_upper_layers_are_found_by_name():
    """What no import says: methods of lower layers hand over to these functions, which are there."""
    for place in WRITERS.values():
        module, _, function = place.partition(":")
        assert f"{function}" in MODULES[module].read_text(encoding="utf-8"), place


def test_the_product_does_not_lean_on_the_benchmarks():
    assert shown([entry for entry in IMPORTS if entry.imported.split(".")[0] == "benchmarks"]) == []


def test_rooms_hold_less_than_a_dozen_files():
    rooms = Counter(path.parent for path in (PACKAGE / "models").rglob("*.py"))
    assert {room.name: count for room, count in rooms.items() if count > 12 and room.name != "models"} == {}


def foreign_writes(source: str) -> list[str]:
    """Private attributes that a module sets on an object and that none of its own classes has."""
    tree = ast.parse(source)
    stores = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    private = [node for node in stores if node.attr.startswith("_") and not node.attr.startswith("__")]
    of_self = {node.attr for node in private if ast.unparse(node.value) in ("self", "cls")}
    declared = {ast.unparse(node.target) for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)}
    return [ast.unparse(node) for node in private if node.attr not in of_self | declared]


def test_no_module_writes_a_private_attribute_of_another():
    written = {name: foreign_writes(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
    assert {name: attributes for name, attributes in written.items() if attributes} == {}
    assert foreign_writes("def f(model):\n    model._state = 3") == ["model._state"]


def test_nothing_asks_a_solver_for_its_name():
    pattern = re.compile(r"solver (==|!=)|_spread is")
    lines = [line for path in MODULES.values() for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if pattern.search(line)] == []


@pytest.mark.parametrize(
    ("source", "importer", "broken"),
    [
        ("from air_recsys.nn.build import Settings", "air_recsys.graphs.similarity", True),
        ("from air_recsys import graphs", "air_recsys.data.splits.base", True),
        ("def f():\n    import air_recsys.cli", "air_recsys.models.air", True),
        ("if TYPE_CHECKING:\n    from air_recsys.models import AIR", "air_recsys.nn.build", True),
        ("from air_recsys.adapters.surprise import to_trainset", "air_recsys.data.interactions", True),
        ("from air_recsys import AIR", "air_recsys.training.course", True),
        ("from air_recsys import AIR, __version__", "air_recsys.cli.app", False),
        ("from air_recsys.data.interactions import Interactions", "air_recsys.data.splits.base", False),
        ("import numpy", "air_recsys.exceptions", False),
    ],
)
def test_the_check_sees_what_it_should(source, importer, broken):
    found = [against_the_layers(entry) for entry in imports_of(source, importer)]
    assert any(found) is broken


@pytest.mark.parametrize(
    ("source", "importer", "foreign"),
    [
        ("import surprise", "air_recsys.evaluation.run", True),
        ("def f():\n    from implicit.als import X", "air_recsys.models.air", True),
        ("import_extra('cornac', 'cornac')", "air_recsys.cli.app", True),
        ("if TYPE_CHECKING:\n    import surprise", "air_recsys.data.interactions", False),
        ("import_extra('surprise', 'surprise')", "air_recsys.adapters.surprise", False),
        ("from air_recsys.adapters.surprise import X", "air_recsys.evaluation.run", False),
    ],
)
def test_the_check_of_hosts_sees_what_it_should(source, importer, foreign):
    assert any(foreign_host(entry) for entry in imports_of(source, importer)) is foreign
