"""Figures that others printed, from the TOML files of this folder."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

from air_recsys.exceptions import ParameterError


def published_figures(task: str, data: str) -> list[tuple[str, dict[str, Any]]]:
    """Return systems and their published figures, each under "published" and its name, with their protocol.

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
    file = resources.files("benchmarks.accuracy") / f"published_{task}.toml"
    if not file.is_file():
        raise ParameterError(f"expected a task with published figures, found {task!r}")
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["figure"]
    rows: list[tuple[str, dict[str, Any]]] = []
    for entry in entries:
        if entry.pop("data") == data:
            system, protocol = entry.pop("system"), entry.pop("protocol")
            figures = {f"published {name}": value for name, value in entry.items()}
            rows.append((system, figures | {"published protocol": protocol}))
    return rows
