"""Statements that a figure has to fulfil, and the worst case of each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

_TOLERANCE = 0.01  # relative, of what has to equal a bound


class Check(NamedTuple):
    """A figure that has to be at most, at least, or (within 1 %) equal to a bound."""

    statement: str
    case: dict[str, Any]
    relation: str  # "<=", ">=" or "="
    bound: float
    measured: float

    def excess(self) -> float:
        """By how much the figure misses: not above 0 where it holds, infinite for NaN."""
        if math.isnan(self.measured):
            return math.inf
        if self.relation == "=":
            return abs(self.measured - self.bound) - _TOLERANCE * abs(self.bound)
        return (self.measured - self.bound) * (1 if self.relation == "<=" else -1)


def worst_rows(checks: Iterable[Check]) -> list[dict[str, Any]]:
    """A row for every statement and case, with the figure that misses most (or comes closest to it)."""
    worst: dict[tuple[Any, ...], Check] = {}
    for check in checks:
        key = (check.statement, *check.case.values())
        if key not in worst or check.excess() > worst[key].excess():
            worst[key] = check
    return [
        {"statement": check.statement, **check.case, "expected": f"{check.relation} {check.bound:.4g}"}
        | {"measured": check.measured, "holds": bool(check.excess() <= 0)}
        for check in worst.values()
    ]
