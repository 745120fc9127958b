"""Recipes: the runs of a table or figure as data (TOML files in the folder beside this module).

A file has a title and rows; what stands above the rows holds for all of them. A row has data, a mask, seeds, what the
paper prints, and systems with their settings, those of ``settings.toml`` and their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from air_recsys.exceptions import ParameterError
from benchmarks.harness import read_toml

SCARCE = "made-scarce"
_FOLDER = Path(__file__).with_name("recipes")
_SETTINGS = "settings"


@dataclass(frozen=True, eq=False)
class Recipe:
    """One row of a table or one panel of a figure.

    Attributes
    ----------
    row, title : str
    data : str
        "barbara", "baboon", "syn-netflix", "ic", "gpcr", "rank-5", `SCARCE`, or a matrix of `cases.MADE`.
    systems : mapping of str to mapping
        Settings of each system: "model" (a class of `air_recsys.models`) and its parameters.
    seeds : sequence of int
        A seed is a mask (where masks are random), or the data, and a start.
    mask : str
        "random" hides every entry with probability `missing`, and so does "either", which draws by NumPy's `Generator`
        for even seeds and by its older `RandomState` for odd ones; "patch" and "texture" are holes of pictures;
        "drawn" is data that a seed draws as a whole, see `benchmarks.paper.scarce`.
    published : mapping of str to float
        Printed NMAE of each system.
    keep : sequence of str
        Results to keep beside the errors: "curves", "graphs".
    note : str
        Details that the paper leaves open or that its program does otherwise.
    """

    row: str
    title: str
    data: str
    systems: Mapping[str, Mapping[str, Any]]
    seeds: Sequence[int]
    mask: str = "random"
    missing: float = 0.0
    published: Mapping[str, float] = field(default_factory=dict)
    keep: Sequence[str] = ()
    note: str = ""


def content_of(name: str) -> dict[str, Any]:
    """The content of a file of recipes.

    Examples
    --------
    >>> content_of("fig-depth")["title"]
    'Error over training at depth 2, 3, 4'
    """
    return read_toml(_FOLDER / f"{name}.toml")


def recipes_of(group: str, rows: Sequence[str] = ()) -> list[Recipe]:
    """The recipes of a table or figure, or those of some rows.

    Examples
    --------
    >>> [recipe.title for recipe in recipes_of("table1")][:2]
    ['Barbara, 30 % random', 'Barbara, patches']
    """
    common, settings = content_of(group), content_of(_SETTINGS)
    of_rows, _ = common.pop("rows"), common.pop("title")
    recipes = {content["row"]: _recipe(common | content, settings) for content in of_rows}
    if unknown := [row for row in rows if row not in recipes]:
        raise ParameterError(f"rows must be of {list(recipes)}, found {unknown[0]!r}")
    return [recipe for row, recipe in recipes.items() if not rows or row in rows]


def notes_of(recipes: Iterable[Recipe]) -> list[str]:
    """The notes of the recipes that have one, each with its title."""
    return [f"{recipe.title}: {recipe.note}" for recipe in recipes if recipe.note]


def parse_seeds(parts: Sequence[Any]) -> list[int]:
    """The seeds of numbers and of ranges with both ends.

    Examples
    --------
    >>> parse_seeds(["0..3", 7])
    [0, 1, 2, 3, 7]
    """
    seeds: list[int] = []
    for part in parts:
        found = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", str(part))
        if found is None:
            raise ParameterError(f"seeds must be numbers and ranges such as 0..4,7, found {part!r}")
        seeds += range(int(found[1]), int(found[2] or found[1]) + 1)
    if not seeds or len(set(seeds)) != len(seeds):
        raise ParameterError(f"seeds must be at least one and distinct, found {list(parts)}")
    return seeds


def _recipe(content: dict[str, Any], settings: dict[str, dict[str, Any]]) -> Recipe:
    systems = {}
    for name, own in content.pop("systems").items():
        shared = settings.get(own.pop("like", name), {}) if "model" not in own else {}
        systems[name] = shared | own
    return Recipe(**content | {"seeds": parse_seeds([content["seeds"]]), "systems": systems})
