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
    {"testing"},
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


def upwards(entry: Import) -> bool:
    return entry.imported.split(".")[0] == "air_recsys" and layer(entry.imported) > layer(entry.importer)


def foreign_host(entry: Import) -> bool:
    inside = entry.importer.startswith("air_recsys.adapters")
    return entry.imported.split(".")[0] in HOSTS and not entry.typing_only and not inside


def eager_adapter(entry: Import) -> bool:
    """An adapter needs its host, and whoever imported one at once would need it too."""
    outside = entry.imported.startswith("air_recsys.adapters.") and not entry.importer.startswith(
        "air_recsys.adapters"
    )
    return outside and entry.function is None and not entry.typing_only


def eager_torch(entry: Import) -> bool:
    """What answers from a fitted model works without torch: one module gives it to all others, when it is used."""
    allowed = entry.typing_only or entry.importer == "air_recsys.nn.sums_kernel"  # which a GPU loads
    return entry.imported.split(".")[0] == "torch" and entry.function is None and not allowed


def slow_to_load(entry: Import) -> bool:
    """These take half a second, and few calls need them."""
    slow = entry.imported.startswith(("sklearn", "scipy.stats", "scipy.optimize"))
    own = entry.importer.startswith(("air_recsys.adapters", "air_recsys.testing"))
    return slow and entry.function is None and not entry.typing_only and not own


def benchmark(entry: Import) -> bool:
    return entry.imported.split(".")[0] == "benchmarks"


@pytest.mark.parametrize("forbidden", [upwards, foreign_host, eager_adapter, eager_torch, slow_to_load, benchmark])
def test_no_import_is_a_forbidden_one(forbidden):
    found = [f"{entry.importer}:{entry.line} imports {entry.imported}" for entry in IMPORTS if forbidden(entry)]
    assert found == []
    assert len(IMPORTS) > 100  # the parser sees them
    assert {module.split(".")[1] for module in MODULES if "." in module} <= RANK.keys() | {"__main__"}


@pytest.mark.parametrize(
    ("source", "importer", "forbidden"),
    [
        ("from air_recsys.nn.build import Settings", "air_recsys.graphs.similarity", upwards),
        ("def f():\n    import air_recsys.cli", "air_recsys.models.air", upwards),
        ("if TYPE_CHECKING:\n    from air_recsys.models import AIR", "air_recsys.nn.build", upwards),
        ("from air_recsys import AIR, __version__", "air_recsys.cli.app", None),
        ("import surprise", "air_recsys.evaluation.run", foreign_host),
        ("import_extra('cornac', 'cornac')", "air_recsys.cli.app", foreign_host),
        ("if TYPE_CHECKING:\n    import surprise", "air_recsys.data.interactions", None),
        ("import_extra('surprise', 'surprise')", "air_recsys.adapters.surprise", None),
        ("from air_recsys.adapters.surprise import X", "air_recsys.evaluation.run", eager_adapter),
        ("def f():\n    from air_recsys.adapters.surprise import X", "air_recsys.evaluation.run", None),
        ("from torch import Tensor", "air_recsys.nn.objective", eager_torch),
        ("def f():\n    import torch", "air_recsys.nn.objective", None),
        ("from sklearn.base import clone", "air_recsys.models.air", slow_to_load),
        ("from benchmarks import cases", "air_recsys.evaluation.run", benchmark),
    ],
)
def test_the_check_sees_what_it_should(source, importer, forbidden):
    laws = (upwards, foreign_host, eager_adapter, eager_torch, slow_to_load, benchmark)
    found = {law for entry in imports_of(source, importer) for law in laws if law(entry)}
    assert found == ({forbidden} if forbidden else set())


def test_the_page_of_the_architecture_names_the_layers():
    text = (PACKAGE.parent / "docs" / "making" / "architecture.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.split("## ")[1].splitlines() if line.startswith("| `")]
    assert [set(re.findall(r"`(\w+)`", row)) for row in rows] == list(LAYERS)


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
        assert function in MODULES[module].read_text(encoding="utf-8"), place


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
