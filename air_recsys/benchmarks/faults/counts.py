"""What counts as a fault in the tables of this folder."""

from air_recsys.results import ResultTable

_FAULTS = ("unexpected", "silent", "lost", "errors", "wrong")  # columns of the last row, which is that of all


def n_faults(table: ResultTable) -> int:
    """Return how many faults a table counts.

    Examples
    --------
    >>> n_faults(ResultTable("Kills", "50 kills", [{"training": "all", "exact": 49, "lost": 1}]))
    1
    """
    return sum(table.rows[-1].get(name, 0) for name in _FAULTS)
