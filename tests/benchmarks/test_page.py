"""The reports of the paper and of accuracy are made of the committed results, and their tables are tables."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from air_recsys.evaluation.results.table import ResultTable, machine, versions, write_json
from air_recsys.exceptions import ParameterError
from benchmarks.paper.figures import DRAWINGS
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
TABLES = ("table1", "untouched", "table2")
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


def test_a_section_a_file_in_a_fixed_order(tmp_path):
    for name in reversed(ORDER):
        write(tmp_path, name)
    page = reproduction_page(tmp_path, "pictures", [name for name in ORDER if name not in TABLES])
    assert re.findall(r"^## Title of (.*)$", page, re.MULTILINE) == ORDER
    told = {name: page.count(f"`python -m benchmarks paper {name}`: protocol of {name}.") for name in ORDER}
    records = {"fig-inpainting", "theorem1", "theorem2"}
    assert told == {name: int(name not in records) for name in ORDER}
    assert page.count("A record, whose command is gone: protocol of ") == len(records)
    assert [page.count(f"* note of {name}\n") for name in ORDER] == [1] * len(ORDER)
    drawn = re.findall(r"!\[.*\]\(pictures/(.*)\.png\)", page)
    assert drawn == [name for name in ORDER if name not in TABLES]
    assert set(DRAWINGS) <= set(ORDER)  # no figure is forgotten


def test_nothing_for_absent_files(tmp_path):
    write(tmp_path, "fig-depth")
    write(tmp_path, "fig-depth-curves")  # beside it, no section
    page = reproduction_page(tmp_path, "images", ORDER)
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ["Title of fig-depth"]


def test_tables_are_well_formed(tmp_path):
    for name in ORDER:
        write(tmp_path, name)
    found = tables(reproduction_page(tmp_path, "images", ORDER))
    assert len(found) == len(ORDER) + 1  # table 1 has two
    for header, rule, *rows in found[1:]:
        assert set(cells(rule)) == {"---"}
        assert len(rows) == len(ROWS)
        assert {len(cells(line)) for line in (header, rule, *rows)} == {len(cells(header))}
        assert len(set(cells(header))) == len(cells(header)) >= 2


def test_cells(tmp_path):
    write(tmp_path, "fig-depth")
    header, _, first, second = tables(reproduction_page(tmp_path, "images", ORDER))[0]
    names = cells(header)
    assert names == ["data", "system", "statement", "nmae", "deviation", "holds", "lowest at"]
    assert dict(zip(names, cells(first), strict=True)) == {
        "data": "A",
        "system": "KNN",
        "statement": r"\|x\| <= 1",
        "nmae": "0.1235",
        "deviation": "",
        "holds": "yes",
        "lowest at": "",
    }
    assert dict(zip(names, cells(second), strict=True))["lowest at"] == "100"
    assert dict(zip(names, cells(second), strict=True))["holds"] == "no"


def test_table_1_shows_its_main_columns(tmp_path):
    row = {"data": "A", "system": "AIR", "published": 0.1, "nmae": 0.05, "ours / published": 0.5, "ssim": 0.9}
    write(tmp_path, "table1", [row])
    wide, long = tables(reproduction_page(tmp_path, "images", ORDER))
    assert cells(wide[0]) == ["data", "AIR"]
    assert cells(wide[2]) == ["A", "0.05 (0.1)"]
    assert cells(long[0]) == ["data", "system", "published", "nmae", "ours / published"]


def test_figures_that_are_not_there_are_not_linked(tmp_path):
    for name in ("fig-depth", "fig-inpainting", "theorem1"):
        write(tmp_path, name)
    page = reproduction_page(tmp_path, "images", ["theorem1"])
    assert "images/theorem1.png" in page
    assert "images/fig-depth.png" not in page
    assert page.count("writes the figure, fig-depth.png and fig-depth.svg") == page.count("writes the figure") == 1


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


def test_accuracy_has_a_section_a_report_in_the_order_of_the_files(tmp_path):
    rows = [{"system": "A", "rmse": 0.91234}, {"system": "B | C", "published rmse": 0.9}]
    files = [write(tmp_path, "b", rows, ["one", "two"]), write(tmp_path, "a", rows, ["three"])]
    page = accuracy_page(files)
    assert re.findall(r"^## Title of (.*)$", page, re.MULTILINE) == ["one", "two", "three"]
    for title in ("one", "two", "three"):
        assert f"\nprotocol of {title}.\n" in page
        assert f"\n* note of {title}\n" in page
    assert page.count("\nMeasured on ") == 2
    assert f"torch {versions()['torch']}" in page
    assert "| system | rmse | published rmse |\n|---|---|---|\n| A | 0.9123 |  |\n| B \\| C |  | 0.9000 |\n" in page


def test_every_text_is_one_line_without_elements_of_html(tmp_path):
    hostile = "<script>alert(1)</script>\n# heading\n| a |"
    table = ResultTable(hostile, hostile, [{hostile: hostile}], [hostile]).content()
    content = {"reports": [table], "versions": {hostile: hostile}, "machine": {**machine(), "gpu": hostile}}
    write_json(tmp_path / "a.json", content)
    page = accuracy_page([tmp_path / "a.json"])
    assert "<script" not in page
    assert "</script" not in page
    assert len(re.findall("^#+ ", page, re.MULTILINE)) == 2  # the page's own heading, and that of the table


def test_machine_and_versions_are_told(tmp_path):
    write(tmp_path, "table1")
    content = json.loads((tmp_path / "table1.json").read_text(encoding="utf-8"))
    content["machine"]["gpu"] = "A GPU"
    (tmp_path / "table1.json").write_text(json.dumps(content), encoding="utf-8")
    expected = f"Measured on A GPU, torch {content['versions']['torch']}, air_recsys "
    assert expected in reproduction_page(tmp_path, "images", ORDER)


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
