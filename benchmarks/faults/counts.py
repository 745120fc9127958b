"""What the tables of this folder count: sums over their rows, and faults."""

from collections.abc import Iterable, Sequence
from typing import Any

from air_recsys.evaluation.results import ResultTable

_FAULTS = ("unexpected", "silent", "lost", "errors", "wrong")  # columns of the last row, which is that of all


def sums(rows: Sequence[dict[str, Any]], names: Iterable[str]) -> dict[str, Any]:
    """Return the sum of each named column, for the last row, which is that of all.

    Examples
    --------
    >>> sums([{"part": "a", "runs": 2}, {"part": "b", "runs": 3}], ["runs"])
    {'runs': 5}
    """
    return {name: sum(row[name] for row in rows) for name in names}


def n_faults(table: ResultTable) -> int:
    """Return how many faults a table counts.

    Examples
    --------
    >>> n_faults(ResultTable("Kills", "50 kills", [{"training": "all", "exact": 49, "lost": 1}]))
    1
    """
    return sum(table.rows[-1].get(name, 0) for name in _FAULTS)
