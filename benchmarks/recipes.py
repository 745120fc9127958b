"""Recipes: the runs of a measurement as data (TOML files in the folder beside this module).

A recipe is one row of a table or one panel of a figure: data, mask, seeds, the published value, and the systems with
their settings, each with a comment where paper and program disagree or are silent.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from air_recsys.exceptions import ParameterError

MADE: dict[str, tuple[int, int, int, int, float]] = {
    "made-demo": (150, 200, 15, 12, 0.0),
    "made-small": (30, 40, 4, 5, 0.0),
    "made-large-groups": (100, 120, 4, 4, 0.1),
    "made-small-groups": (100, 80, 5, 40, 0.03),
    "made-noisy": (150, 200, 15, 12, 0.05),
    "made-wide": (300, 500, 20, 15, 0.0),
}
"""Generated matrices of groups: users, items, groups of each, and noise as a share of the range."""
SCARCE = "made-scarce"
DATA = ("barbara", "baboon", "syn-netflix", "ic", "gpcr", "rank-5", SCARCE, *MADE)
MASKS = ("random", "either", "patch", "texture", "drawn")
KEPT = ("curves", "completed", "graphs")


@dataclass(frozen=True, eq=False)
class Recipe:
    """One row of a table or one panel of a figure.

    Attributes
    ----------
    name : str
        Path of the file without its suffix, such as "table1/00-barbara-random"; the number is for the order.
    data : str
        One of `DATA`.
    mask : str
        One of `MASKS`; "random" hides every entry with probability `missing`, and so does "either", which draws by
        NumPy's `Generator` for even seeds and by its older `RandomState` for odd ones; "drawn" is data that a seed
        draws as a whole, see `benchmarks.scarce`.
    seeds : tuple of int
        A seed is a mask (where masks are random), or the data, and a start.
    systems : mapping of str to mapping
        Settings of each system: "model" (a class of `air_recsys.models`) and its parameters.
    published : mapping of str to float
        Printed NMAE of each system.
    keep : tuple of str
        Results to keep beside the errors, of `KEPT`.
    note : str
        Details that the paper leaves open or that its program does otherwise.
    """

    name: str
    title: str
    data: str
    mask: str
    seeds: tuple[int, ...]
    systems: Mapping[str, Mapping[str, Any]]
    missing: float = 0.0
    published: Mapping[str, float] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    note: str = ""

    @property
    def row(self) -> str:
        """The name without folder and number, such as "barbara-random"."""
        return self.name.partition("/")[2].partition("-")[2]


def recipe(name: str) -> dict[str, Any]:
    """Return the content of the recipe of that name.

    Examples
    --------
    >>> recipe("syn-netflix")["missing"]
    [0.7, 0.75, 0.8]
    """
    folder = resources.files("benchmarks") / "recipes"
    file = folder / f"{name}.toml"
    if ".." in name or name.startswith("/") or not file.is_file():
        names = sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())
        raise ParameterError(f"expected a recipe of {names}, found {name!r}")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def recipes_of(group: str) -> list[Recipe]:
    """Return the recipes of a table or figure, in the order of their file names.

    Examples
    --------
    >>> [row.title for row in recipes_of("table1")][:2]
    ['Barbara, 30 % random', 'Barbara, patches']
    """
    folder = resources.files("benchmarks") / "recipes" / group
    names = sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())
    return [_read(f"{group}/{name}") for name in names]


def notes_of(recipes: Iterable[Recipe]) -> list[str]:
    """Return the notes of the recipes that have one, each with its title."""
    return [f"{recipe.title}: {recipe.note}" for recipe in recipes if recipe.note]


def _read(name: str) -> Recipe:
    content = recipe(name)
    for key in ("seeds", "keep"):
        if key in content:
            content[key] = tuple(content[key])
    return Recipe(name=name, **content)
