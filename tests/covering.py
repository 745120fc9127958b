"""Cases that have each value of several lists, in place of their product."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def covering(*values: Collection[Any]) -> list[tuple[Any, ...]]:
    """As many cases as the longest list has values; the shorter ones begin anew."""
    lists = [list(each) for each in values]
    n_cases = max(map(len, lists))
    return [tuple(each[case % len(each)] for each in lists) for case in range(n_cases)]
