"""`write_comparison`: one HTML file about systems that were compared."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from air_recsys.evaluation.comparison import Comparison
from air_recsys.evaluation.results import ResultTable
from air_recsys.report.charts import Mark, dot_chart
from air_recsys.report.document import Markup, check_target, element, page_html, section, table
from air_recsys.report.sections import machine_table, note
from air_recsys.report.summary import measure_name
from air_recsys.storage.writing import replace_file

_LEVEL = 0.9
_CONTENTS = {
    "errors": "Ratings",
    "lists": "Lists",
    "groups": "Groups",
    "costs": "Costs",
    "systems": "Systems",
    "verdict": "Verdict",
    "made": "How this was made",
}


def write_comparison(comparison: Comparison, path: str | os.PathLike[str]) -> Path:
    """Write a page about a comparison: errors, intervals, lists and costs as charts and tables.

    The page is one HTML file without scripts that loads nothing, for light and dark screens of any width.

    Parameters
    ----------
    comparison : Comparison
        As from `air_recsys.evaluation.compare`.
    path : str or Path
        The file to write, replaced at once where it is there already.

    Raises
    ------
    ParameterError
        If the folder does not exist.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from air_recsys.evaluation import compare
    >>> ratings = np.random.default_rng(0).integers(1, 6, (20, 15)).astype(float)
    >>> found = compare(["Biases", "GlobalMean"], ratings, k=3, progress=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_comparison(found, pathlib.Path(folder, "page.html")).read_text()
    >>> "Biases beside 1 other system" in page
    True
    """
    target = Path(path)
    check_target(target)
    replace_file(target, comparison_html(comparison).encode("utf-8", "replace"))
    return target


def comparison_html(comparison: Comparison) -> str:
    """Return the page of `write_comparison` as text."""
    tables = comparison.tables()
    n_first = 1 + comparison.rated
    body = [
        *([_errors(comparison, tables[0])] if comparison.rated else []),
        _lists(comparison, tables[n_first - 1]),
        *([section("groups", "Groups of users", *map(_figures, tables[n_first:-1]))] if comparison.groups else []),
        _costs(comparison, tables[-1]),
        _systems(comparison),
        *([_verdict(comparison.verdict)] if comparison.verdict else []),
        section("made", "How this was made", _protocol(comparison), machine_table()),
    ]
    left_out = {"errors": comparison.rated, "groups": comparison.groups, "verdict": comparison.verdict}
    contents = {name: text for name, text in _CONTENTS.items() if left_out.get(name, True)}
    first, n_others = comparison.rows[0]["system"], len(comparison.rows) - 1
    heading = f"{first} beside {n_others} other system{'' if n_others == 1 else 's'}"
    lead = ": ".join(filter(None, [comparison.protocol.partition("; ")[0], comparison.verdict]))
    return page_html(f"Comparison: {heading}", heading, lead, contents, body)


def _verdict(verdict: str) -> Markup:
    """Return which system to take for what, by how much it is ahead, and whether that is beyond the error."""
    sentences = [f"{part[:1].upper()}{part[1:]}." for part in verdict.split("; ")]
    return section("verdict", "Verdict", *[element("p", sentence, class_="lead") for sentence in sentences])


def _errors(comparison: Comparison, figures: ResultTable) -> Markup:
    drawn = [_against_first(comparison, "rmse", "Error (RMSE) with its 95 % interval: lower is better")]
    inside = _marks(comparison, "inside 90 %")
    if inside:
        title = "Share of the test ratings within 90 % intervals: near 0.9 is good"
        drawn.append(dot_chart(title, inside, reference=_LEVEL, holds=(0.8, 1.0)))
    return section("errors", "Predicted ratings", _lead(comparison), *drawn, _figures(figures))


def _lists(comparison: Comparison, figures: ResultTable) -> Markup:
    k = comparison.k
    covered = _marks(comparison, "coverage")
    drawn = [
        _against_first(comparison, f"ndcg@{k}", f"NDCG of lists of {k} with its 95 % interval: higher is better"),
        _against_first(comparison, f"recall@{k}", f"Recall of lists of {k} with its 95 % interval: higher is better"),
        dot_chart("Coverage: the share of all items that are in any of the lists", covered, bars=True),
    ]
    return section("lists", "Lists of items", _lead(comparison), *drawn, _figures(figures))


def _lead(comparison: Comparison) -> Markup:
    first = comparison.rows[0]["system"]
    return element(
        "p",
        f"The dashed line is {first}. The table has the difference of each system from it, and p, the probability of "
        "such a difference by the choice of users alone.",
    )


def _costs(comparison: Comparison, figures: ResultTable) -> Markup:
    seconds = [mark for mark in _marks(comparison, "fit_seconds") if mark.value > 0]
    memory = _marks(comparison, "memory_mib")
    drawn = [
        dot_chart("Seconds of a training, on a logarithmic scale: lower is better", seconds, form=".3g", log=True),
        dot_chart("Memory of a training in MiB: lower is better", memory, form=".1f", bars=True),
    ]
    return section("costs", "Time and memory", *drawn, _figures(figures))


def _systems(comparison: Comparison) -> Markup:
    rows = [(name, element("code", settings)) for name, settings in comparison.settings.items()]
    notes = [note(text) for text in comparison.notes]
    return section("systems", "Systems", table("What each system is", ["system", "settings"], rows), *notes)


def _protocol(comparison: Comparison) -> Markup:
    return element("ul", *[element("li", part) for part in comparison.protocol.split("; ")])


def _against_first(comparison: Comparison, name: str, title: str) -> Markup:
    marks = _marks(comparison, name)
    return dot_chart(title, marks, reference=marks[0].value)


def _marks(comparison: Comparison, name: str) -> list[Mark]:
    """Return the rows that have a figure, with its interval if it has one."""
    found = [row for row in comparison.rows if np.isfinite(row.get(name, np.nan))]
    return [Mark(row["system"], row[name], row.get(f"{name} low"), row.get(f"{name} high")) for row in found]


def _figures(figures: ResultTable) -> Markup:
    columns = list(figures.rows[0])
    rows = [[value if isinstance(value, str) else _round(value) for value in row.values()] for row in figures.rows]
    return table(figures.title, [measure_name(name).replace("_", " ").replace("mib", "MiB") for name in columns], rows)


def _round(value: float) -> float:
    """Return a number as it is shown: small ones, such as p, with two digits."""
    return float(f"{value:.2g}") if abs(value) < 0.001 else value
