"""Experiments, their grids, and figures that others printed, from the TOML files of this folder."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from air_recsys.exceptions import ParameterError


def experiment(task: str) -> dict[str, Any]:
    """The sets, settings and texts of the file ``<task>.toml``.

    Raises
    ------
    ParameterError
        Where there is none.

    Examples
    --------
    >>> list(experiment("ratings")["set"])
    ['ml-100k', 'ml-1m', 'douban', 'flixster']
    """
    return _read(f"{task}.toml", f"expected an experiment, found {task!r}")


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
    entries = _read(f"published_{task}.toml", f"expected a task with published figures, found {task!r}")["figure"]
    rows: list[tuple[str, dict[str, Any]]] = []
    for entry in entries:
        if entry.pop("data") == data:
            system, protocol = entry.pop("system"), entry.pop("protocol")
            figures = {f"published {name}": value for name, value in entry.items()}
            rows.append((system, figures | {"published protocol": protocol}))
    return rows


def published_rows(task: str, data: str) -> list[dict[str, Any]]:
    """The rows of a table that stand below those of the measured systems."""
    return [{"system": system} | figures for system, figures in published_figures(task, data)]


def _read(name: str, message: str) -> dict[str, Any]:
    file = resources.files("benchmarks.accuracy") / name
    if not file.is_file():
        raise ParameterError(message)
    return tomllib.loads(file.read_text(encoding="utf-8"))


def settings_of(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of a grid.

    Examples
    --------
    >>> settings_of({"k": [1, 2], "rate": [0.1]})
    [{'k': 1, 'rate': 0.1}, {'k': 2, 'rate': 0.1}]
    """
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
