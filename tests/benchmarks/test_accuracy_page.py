"""The page of accuracy tables has a section a report, and the committed page is what the committed results give."""

import json
import re

import pytest

from air_recsys.evaluation.results.table import ResultTable, machine, versions, write_json
from air_recsys.exceptions import ParameterError
from benchmarks.paper.pages import REPORTS, RESULTS, accuracy_page


def write(path, *titles):
    rows = [{"system": "A", "rmse": 0.91234}, {"system": "B | C", "published rmse": 0.9}]
    reports = [
        ResultTable(title, f"Protocol of {title}", rows, [f"`command of {title}`"]).content() for title in titles
    ]
    write_json(path, {"reports": reports, "versions": versions(), "machine": machine()})
    return path


def test_a_section_a_report_in_the_order_of_the_files(tmp_path):
    page = accuracy_page([write(tmp_path / "b.json", "one", "two"), write(tmp_path / "a.json", "three")])
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ["one", "two", "three"]
    for title in ("one", "two", "three"):
        assert f"\nProtocol of {title}.\n" in page
        assert f"\n* `command of {title}`\n" in page
    assert page.count("\nMeasured on ") == 2
    assert f"torch {versions()['torch']}" in page


def test_published_figures_keep_their_own_column(tmp_path):
    page = accuracy_page([write(tmp_path / "a.json", "one")])
    table = "| system | rmse | published rmse |\n|---|---|---|\n| A | 0.9123 |  |\n| B \\| C |  | 0.9000 |\n"
    assert table in page


def test_no_files_and_files_that_are_no_results(tmp_path):
    with pytest.raises(ParameterError, match="expected at least one result file, found none"):
        accuracy_page([])
    for content in (
        "{",
        "[]",
        "{}",
        '{"reports": [3], "versions": {}, "machine": {}}',
        '{"reports": [{"title": ""}]}',
    ):
        (tmp_path / "x.json").write_text(content, encoding="utf-8")
        with pytest.raises(ParameterError, match=r"x\.json is no result file: "):
            accuracy_page([tmp_path / "x.json"])


def test_the_committed_page_is_what_the_committed_results_give():
    results, page = sorted(RESULTS.glob("accuracy-*.json")), REPORTS / "accuracy-tables.md"
    assert page.read_text(encoding="utf-8") == accuracy_page(results)
    for path in results:  # every report tells how it was measured
        for report in json.loads(path.read_text(encoding="utf-8"))["reports"]:
            assert any("`python -m benchmarks " in note for note in report["notes"])


def test_every_text_is_one_line_without_elements_of_html(tmp_path):
    hostile = "<script>alert(1)</script>\n# heading\n| a |"
    table = ResultTable(hostile, hostile, [{hostile: hostile}], [hostile]).content()
    content = {"reports": [table], "versions": {hostile: hostile}, "machine": {**machine(), "gpu": hostile}}
    write_json(tmp_path / "a.json", content)
    page = accuracy_page([tmp_path / "a.json"])
    assert "<script" not in page
    assert "</script" not in page
    assert len(re.findall("^#+ ", page, re.MULTILINE)) == 2  # the page's own heading, and that of the table
