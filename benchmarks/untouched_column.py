"""The column of untouched presets in a table of the docs, from their result file."""

from __future__ import annotations

import math
from typing import Any

from air_recsys.exceptions import ParameterError

HEADING = "preset, untouched"


def with_untouched_column(page: str, content: dict[str, Any]) -> str:
    r"""Return a page whose table has the NMAE of untouched presets, with standard errors, in its column for them.

    Parameters
    ----------
    page : str
        Markdown with a table that has the column "preset, untouched". Its first column names data as the results do,
        with "random" for "missing"; data without an NMAE in the results leave the cell empty.
    content : dict
        A result file of `air-recsys reproduce untouched`.

    Examples
    --------
    >>> row = {"data": "A, 20 % missing", "model": "AIR.for_completion()", "nmae": 0.0123, "nmae s.e.": 2e-4}
    >>> page = ["| NMAE | preset, untouched |", "|---|---|", "| A, 20 % random | |", "| B | 0.1 |"]
    >>> print(with_untouched_column("\n".join(page), {"rows": [row]}))
    | NMAE | preset, untouched |
    |---|---|
    | A, 20 % random | 0.0123 ± 0.0002 |
    | B |  |
    """
    lines = page.split("\n")
    heads = [number for number, line in enumerate(lines) if HEADING in _cells(line)]
    if len(heads) != 1:
        raise ParameterError(f"expected one table with the column {HEADING!r}, found {len(heads)}")
    column, number = _cells(lines[heads[0]]).index(HEADING), heads[0] + 2
    of_presets = [row for row in content["rows"] if row["model"].startswith("AIR.") and "nmae" in row]
    figures = {row["data"]: _figure(row) for row in of_presets}
    while number < len(lines) and lines[number].startswith("|"):
        cells = _cells(lines[number])
        cells[column] = figures.get(cells[0].replace("random", "missing"), "")
        lines[number] = "| " + " | ".join(cells) + " |"
        number += 1
    return "\n".join(lines)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def _figure(row: dict[str, Any]) -> str:
    """Return a mean and its standard error, with four decimals, or more where the error has its first digit later."""
    mean, error = row["nmae"], row["nmae s.e."]
    decimals = 4 if not error else max(4, math.ceil(-math.log10(error)))
    return f"{mean:.{decimals}f}" + ("" if error is None else f" ± {error:.{decimals}f}")
