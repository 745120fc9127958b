"""The reports of the paper and of accuracy are made of the committed results, and their tables are tables."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from air_recsys.evaluation.results.table import ResultTable, machine, versions, write_json
from air_recsys.exceptions import ParameterError
from benchmarks.paper.pages import REPORTS, RESULTS, accuracy_page, reproduction_page, written_reports

ORDER = [
    "table1",
    "untouched",
    "table2",
    "fig-depth",
    "fig-heatmaps",
    "fig-fixed-laplacian",
    "fig-trajectories",
    "fig-training-nmae",
    "fig-inpainting",
    "fig-depth-width",
    "theorem1",
    "theorem2",
]
ROWS = [
    {"data": "A", "system": "KNN", "statement": "|x| <= 1", "nmae": 0.12345, "deviation": np.nan, "holds": True},
    {"data": "B", "system": "AIR", "statement": "energy", "holds": False, "lowest at": 100},
]


def write(folder, name, rows=ROWS, titles=()):
    tables = [
        ResultTable(f"Title of {title}", f"protocol of {title}", rows, [f"note of {title}"]).content()
        for title in titles or [name]
    ]
    write_json(folder / f"{name}.json", {"reports": tables, "versions": versions(), "machine": machine()})
    return folder / f"{name}.json"


def tables(page):
    """The lines of every table."""
    blocks = re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)
    return [block.splitlines() for block in blocks]


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@pytest.mark.parametrize("folder", [".", "none"])
def test_a_folder_without_results(tmp_path, folder):
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ParameterError, match=r"expected result files such as table1\.json in .*, found none"):
        reproduction_page(tmp_path / folder, "images", ORDER)


@pytest.mark.parametrize(
    "content",
    [b"{", b"", b"\xff", b"[1]", b"3", b"{}", b'{"reports": [3], "versions": {}}', b'{"reports": [{"title": ""}]}'],
)
def test_files_that_are_no_results(tmp_path, content):
    write(tmp_path, "table1")
    (tmp_path / "table2.json").write_bytes(content)
    for page in (
        lambda: reproduction_page(tmp_path, "images", ORDER),
        lambda: accuracy_page([tmp_path / "table2.json"]),
    ):
        with pytest.raises(ParameterError, match=r"table2\.json is no result file: ."):
            page()
    with pytest.raises(ParameterError, match="expected at least one result file, found none"):
        accuracy_page([])


def test_every_text_is_one_line_without_elements_of_html(tmp_path):
    hostile = "<script>alert(1)</script>\n# heading\n| a |"
    table = ResultTable(hostile, hostile, [{hostile: hostile}], [hostile]).content()
    content = {"reports": [table], "versions": {hostile: hostile}, "machine": {**machine(), "gpu": hostile}}
    write_json(tmp_path / "a.json", content)
    page = accuracy_page([tmp_path / "a.json"])
    assert "<script" not in page
    assert "</script" not in page
    assert len(re.findall("^#+ ", page, re.MULTILINE)) == 2  # the page's own heading, and that of the table


# ---------------------------------------------------------------- the pages of the repository


def test_the_committed_reports_are_those_of_the_committed_results():
    for name, text in written_reports().items():
        assert (REPORTS / name).read_text(encoding="utf-8") == text
    for path in RESULTS.glob("accuracy-*.json"):  # every report tells how it was measured
        for report in json.loads(path.read_text(encoding="utf-8"))["reports"]:
            assert any("`python -m benchmarks " in note for note in report["notes"])


def shown(row):
    """A mean and its standard error, with four decimals, or more where the error has its first digit later."""
    decimals = max(4, math.ceil(-math.log10(row["nmae s.e."])))
    return f"{row['nmae']:.{decimals}f} ± {row['nmae s.e.']:.{decimals}f}"


def test_the_column_of_untouched_presets_of_the_paper_page_is_that_of_their_result_file():
    lines = (REPORTS / "paper.md").read_text(encoding="utf-8").splitlines()
    table = [cells(line) for line in lines if line.startswith("|")]
    column = table[0].index("preset, untouched")
    results = json.loads((RESULTS / "reproduction" / "untouched.json").read_text(encoding="utf-8"))["reports"][0][
        "rows"
    ]
    figures = {row["data"]: shown(row) for row in results if row["model"].startswith("AIR.") and "nmae" in row}
    rows = {row[0].replace("random", "missing"): row[column] for row in table[2:]}
    assert rows == {data: figures[data] for data in rows}
