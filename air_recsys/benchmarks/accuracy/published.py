"""Figures that others printed, to stand beside measured ones: data, see the TOML files of this folder."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

from air_recsys.exceptions import ParameterError

_KEYS = {"data", "system", "protocol"}


def published_figures(task: str, data: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the published figures of some data: name of the system, and its row.

    Parameters
    ----------
    task : str
        The file ``published_<task>.toml``.
    data : str
        As the entries of that file name it.

    Returns
    -------
    list of (str, dict)
        The figures, each under "published" and its name, and the protocol behind them.

    Raises
    ------
    ParameterError
        Where there is no such file.

    Examples
    --------
    >>> published_figures("ratings", "douban")[0]
    ('IMC-GAE', {'published rmse': 0.7211, 'published protocol': 'the same split; no side data'})
    """
    file = resources.files("air_recsys.benchmarks.accuracy") / f"published_{task}.toml"
    if not file.is_file():
        raise ParameterError(f"expected a task with published figures, found {task!r}")
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["figure"]
    return [(entry["system"], _row(entry)) for entry in entries if entry["data"] == data]


def _row(entry: dict[str, Any]) -> dict[str, Any]:
    figures = {f"published {name}": value for name, value in entry.items() if name not in _KEYS}
    return figures | {"published protocol": entry["protocol"]}
