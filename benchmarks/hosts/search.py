"""The settings that a tuned model chooses among."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any


def settings_of(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of a grid.

    Examples
    --------
    >>> settings_of({"k": [1, 2], "rate": [0.1]})
    [{'k': 1, 'rate': 0.1}, {'k': 2, 'rate': 0.1}]
    """
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
