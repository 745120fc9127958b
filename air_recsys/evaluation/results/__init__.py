"""What every measurement is told with: a table, its protocol, versions and machine."""

from air_recsys.evaluation.results.table import (
    ResultTable,
    format_number,
    machine,
    mean_of,
    peak_memory,
    versions,
    write_json,
)

__all__ = ["ResultTable", "format_number", "machine", "mean_of", "peak_memory", "versions", "write_json"]
