"""Settings and texts of experiments, their grids, and figures that others printed, from the TOML files beside this."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import read_toml

_FOLDER = Path(__file__).parent


def experiment(task: str) -> dict[str, Any]:
    """The sets, settings and texts of the file ``<task>.toml``; `ParameterError` where there is none.

    Examples
    --------
    >>> list(experiment("ratings")["set"])
    ['ml-100k', 'ml-1m', 'douban', 'flixster']
    """
    return read_toml(_FOLDER / f"{task}.toml")


def published_figures(task: str, data: str) -> list[tuple[str, dict[str, Any]]]:
    """Systems and their published figures, each under "published" and its name, with their protocol.

    Parameters
    ----------
    task : str
        The file ``published_<task>.toml``; `ParameterError` where there is none.
    data : str
        The name of the data in the entries of that file.

    Examples
    --------
    >>> published_figures("ratings", "douban")[0]
    ('IMC-GAE', {'published rmse': 0.7211, 'published protocol': 'the same split; no side data'})
    """
    rows: list[tuple[str, dict[str, Any]]] = []
    for entry in read_toml(_FOLDER / f"published_{task}.toml")["figure"]:
        if entry.pop("data") == data:
            system, protocol = entry.pop("system"), entry.pop("protocol")
            figures = {f"published {name}": value for name, value in entry.items()}
            rows.append((system, figures | {"published protocol": protocol}))
    return rows


def published_rows(task: str, data: str) -> list[dict[str, Any]]:
    """The rows of a table that stand below those of the measured systems."""
    return [{"system": system} | figures for system, figures in published_figures(task, data)]


def settings_of(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of a grid.

    Examples
    --------
    >>> settings_of({"k": [1, 2], "rate": [0.1]})
    [{'k': 1, 'rate': 0.1}, {'k': 2, 'rate': 0.1}]
    """
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
