"""Recipes: what a measurement runs, as data (TOML files in this folder)."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

from air_recsys.exceptions import ParameterError


def recipe(name: str) -> dict[str, Any]:
    """Return the recipe of that name.

    Examples
    --------
    >>> recipe("syn-netflix")["missing"]
    [0.7, 0.75, 0.8]
    """
    folder = resources.files("air_recsys.benchmarks") / "recipes"
    file = folder / f"{name}.toml"
    if not file.is_file():
        known = sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())
        raise ParameterError(f"expected a recipe of {known}, found {name!r}")
    return tomllib.loads(file.read_text(encoding="utf-8"))
