"""The page has a section a result file, and tables that are tables."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from air_recsys.evaluation.results.table import ResultTable
from air_recsys.exceptions import ParameterError
from benchmarks.paper.figures import DRAWINGS
from benchmarks.paper.pages import REPORTS, RESULTS, reproduction_page

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


def write(folder, name, rows=ROWS):
    report = ResultTable(f"Title of {name}", f"protocol of {name}", rows, [f"note of {name}"])
    report.to_json(folder / f"{name}.json")


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
    assert [page.count(f"`python -m benchmarks paper {name}`: protocol of {name}.") for name in ORDER] == [1] * len(
        ORDER
    )
    assert [page.count(f"* note of {name}\n") for name in ORDER] == [1] * len(ORDER)
    drawn = re.findall(r"!\[.*\]\(pictures/(.*)\.png\)", page)
    assert drawn == [name for name in ORDER if name not in TABLES]
    assert set(DRAWINGS) <= set(ORDER)  # no figure is forgotten


def test_nothing_for_absent_files(tmp_path):
    write(tmp_path, "fig-depth")
    write(tmp_path, "fig-depth-curves")  # beside it, no section
    page = reproduction_page(tmp_path, "images", ORDER)
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ["Title of fig-depth"]


@pytest.mark.parametrize("name", ORDER)
def test_tables_are_well_formed(tmp_path, name):
    write(tmp_path, name)
    found = tables(reproduction_page(tmp_path, "images", ORDER))
    assert len(found) == (2 if name == "table1" else 1)
    header, rule, *rows = found[-1]
    assert set(cells(rule)) == {"---"}
    assert len(rows) == len(ROWS)
    assert {len(cells(line)) for line in found[-1]} == {len(cells(header))}
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
    write(tmp_path, "fig-depth")
    write(tmp_path, "theorem1")
    page = reproduction_page(tmp_path, "images", ["theorem1"])
    assert "images/theorem1.png" in page
    assert "images/fig-depth.png" not in page
    assert "writes the figure, fig-depth.png and fig-depth.svg" in page


@pytest.mark.parametrize("folder", [".", "none"])
def test_a_folder_without_results(tmp_path, folder):
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ParameterError, match=r"expected result files such as table1\.json in .*, found none"):
        reproduction_page(tmp_path / folder, "images", ORDER)


@pytest.mark.parametrize("content", [b"{", b"", b"\xff", b"[1]", b"3", b"{}", b'{"title": "x", "protocol": "y"}'])
def test_files_that_are_no_results(tmp_path, content):
    write(tmp_path, "table1")
    (tmp_path / "table2.json").write_bytes(content)
    with pytest.raises(ParameterError, match=r"table2\.json is no result file: ."):
        reproduction_page(tmp_path, "images", ORDER)


def test_machine_and_versions_are_told(tmp_path):
    write(tmp_path, "table1")
    content = json.loads((tmp_path / "table1.json").read_text(encoding="utf-8"))
    content["machine"]["gpu"] = "A GPU"
    (tmp_path / "table1.json").write_text(json.dumps(content), encoding="utf-8")
    expected = f"Measured on A GPU, torch {content['versions']['torch']}, air_recsys "
    assert expected in reproduction_page(tmp_path, "images", ORDER)


# ---------------------------------------------------------------- the pages of the repository


def test_the_committed_page_is_that_of_its_result_files():
    drawn = [path.stem for path in (REPORTS / "images").glob("*.png")]
    expected = reproduction_page(RESULTS / "reproduction", "images", drawn)
    assert (REPORTS / "reproduction.md").read_text(encoding="utf-8") == expected


def shown(row):
    """A mean and its standard error, with four decimals, or more where the error has its first digit later."""
    decimals = max(4, math.ceil(-math.log10(row["nmae s.e."])))
    return f"{row['nmae']:.{decimals}f} ± {row['nmae s.e.']:.{decimals}f}"


def test_the_column_of_untouched_presets_of_the_docs_is_that_of_their_result_file():
    lines = (REPORTS.parents[1] / "docs" / "paper.md").read_text(encoding="utf-8").splitlines()
    table = [cells(line) for line in lines if line.startswith("|")]
    column = table[0].index("preset, untouched")
    results = json.loads((RESULTS / "reproduction" / "untouched.json").read_text(encoding="utf-8"))["rows"]
    figures = {row["data"]: shown(row) for row in results if row["model"].startswith("AIR.") and "nmae" in row}
    rows = {row[0].replace("random", "missing"): row[column] for row in table[2:]}
    assert rows == {data: figures[data] for data in rows}
