"""The page about drugs and targets: whole, well-formed, safe with any name, refused before any work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_reader import Page

from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import NotFittedError, ParameterError
from air_recsys.report import write_drug_target_report

HOSTILE = "<script>alert(1)</script>&"


def table() -> pd.DataFrame:
    values = np.kron(np.eye(3), np.ones((4, 3)))
    values[1, 2] = 0
    values[5, 8] = np.nan
    return pd.DataFrame(values, ["d0", HOSTILE, *(f"d{k}" for k in range(2, 12))], [f"t{k}" for k in range(9)])


def test_the_page_is_whole_and_safe(tmp_path: Path) -> None:
    model = DrugTargetAIR().fit(table(), pd.DataFrame(np.eye(12), table().index, table().index))
    page = Page(write_drug_target_report(model, tmp_path / "page.html", n=4).read_text(encoding="utf-8"))
    assert "script" not in page.tags
    sections = ["accuracy", "new", "drugs", "targets", "data", "parameters", "made"]
    assert [id for id in page.ids if id in sections] == sections
    assert HOSTILE in page.text
    assert " hits t" in page.text
    for part in ("of drugs, weight 0.5", "missing", "The first 4", "average precision", "similarity_weight"):
        assert part in page.text


def test_what_is_all_known_has_no_list_and_no_measure(tmp_path: Path) -> None:
    model = DrugTargetAIR().fit(np.ones((3, 2)))
    page = Page(write_drug_target_report(model, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "All pairs are known to interact." in page.text
    assert "no measure is defined" in page.text


def test_no_page_without_a_model_or_a_folder(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        write_drug_target_report(DrugTargetAIR(), tmp_path / "page.html")
    with pytest.raises(ParameterError, match="no folder"):
        write_drug_target_report(DrugTargetAIR().fit(table()), tmp_path / "none" / "page.html")
