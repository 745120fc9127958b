"""Structures on pages: safe, kept in files, and missed with a sentence; limits in the plot of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from page_reader import Page

pytest.importorskip("rdkit")
from air_recsys import AIR
from air_recsys.dti import DrugTargetAIR
from air_recsys.evaluation.held_out import evaluate_model
from air_recsys.report import structures, write_drug_target_report, write_report
from air_recsys.report.plots import plot_predictions

HOSTILE = "<script>alert(1)</script>"
SMILES = {
    HOSTILE: "CC(=O)Oc1ccccc1C(=O)O.[Na+]",
    "salicylate": "OC(=O)c1ccccc1O",
    "paracetamol": "CC(=O)Nc1ccc(O)cc1",
    "caffeine": "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "theophylline": "Cn1c2c([nH]cn2)c(=O)n(C)c1=O",
    "broken": "C1CC",
}


def interactions() -> pd.DataFrame:
    values = np.kron(np.eye(2), np.ones((3, 3)))
    values[0, 0] = values[4, 5] = np.nan
    return pd.DataFrame(values, list(SMILES), [f"t{k}" for k in range(6)])


@pytest.fixture(scope="module")
def of_pairs() -> DrugTargetAIR:
    with pytest.warns(UserWarning, match="do not parse"):
        return DrugTargetAIR().fit(interactions(), {"smiles": SMILES})


def read(model: Any, folder: Path) -> Page:
    return Page(write_drug_target_report(model, folder / "page.html", n=6).read_text(encoding="utf-8"))


def test_each_drug_of_the_list_is_drawn_beside_known_ones(of_pairs: DrugTargetAIR, tmp_path: Path) -> None:
    page = read(of_pairs, tmp_path)
    labels = [text for text in page.values("svg", "aria-label") if text.startswith("Structure of")]
    assert any(text.startswith(f"Structure of {HOSTILE}, Morgan similarity ") for text in labels)
    assert any(text.startswith("Structure of theophylline, ") for text in labels)
    assert not any("broken" in text for text in labels)
    assert "script" not in page.tags
    assert "circle" in page.tags
    assert len(page.ids) == len(set(page.ids))
    fills = {value for tag, name, value in page.attributes if tag == "circle" and name == "fill"}
    assert fills <= {"var(--green, #009e73)", "var(--orange, #d55e00)"}


def test_a_file_keeps_structures_and_without_them_the_page_says_so(
    of_pairs: DrugTargetAIR, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = DrugTargetAIR.load(of_pairs.save(tmp_path / "m.air"))
    assert loaded.described_[0] is not None
    assert loaded.described_[0].smiles is not None
    assert dict(zip(loaded.drugs_.ids, loaded.described_[0].smiles, strict=True)) == SMILES
    assert "Structure of theophylline" in read_labels(loaded, tmp_path)
    fewer = loaded.forget(users="caffeine")
    assert fewer.described_[0] is not None
    assert "caffeine" not in fewer.drugs_.ids
    old = loaded.described_[0]._replace(smiles=None)
    told = structures.structures_part(old, loaded.drugs_.ids, [structures.Shown("caffeine")], str)
    assert "of a version that did not keep them" in told
    assert structures.structures_part(None, loaded.drugs_.ids, [], str) == ""
    monkeypatch.setitem(__import__("sys").modules, "rdkit.Chem.Draw.rdMolDraw2D", None)
    assert "Structures are not drawn: " in read(of_pairs, tmp_path).text


def read_labels(model: Any, folder: Path) -> str:
    return " ".join(read(model, folder).values("svg", "aria-label"))


def measured() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    drugs, targets = list(SMILES)[:5], [f"t{k}" for k in range(30)]
    values = 6 + np.add.outer(np.arange(5) / 4, rng.normal(size=30)) + 0.1 * rng.normal(size=(5, 30))
    pairs = pd.MultiIndex.from_product([drugs, targets], names=["user", "item"]).to_frame(index=False)
    pairs = pairs.assign(rating=values.ravel().clip(5.5), relation=np.where(values.ravel() < 5.5, "<", "="))
    return pairs.loc[rng.random(len(pairs)) < 0.9]


def test_affinities_have_structures_and_limits_beside_measured_values(tmp_path: Path) -> None:
    given = {name: SMILES[name] for name in list(SMILES)[:5]}
    model = AIR.for_ratings(random_state=0, device="cpu", n_sweeps=10).fit(
        measured(), user_similarity={"smiles": given}
    )
    loaded = AIR.load(model.save(tmp_path / "m.air"))
    page = Page(write_report(loaded, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "Strongest predictions" in page.text
    assert ": measured " in page.text
    for part in ("concordance index", "limits hold", "Errors and intervals are of measured ratings alone"):
        assert part in page.text
    assert any(text.startswith("Structure of ") for text in page.values("svg", "aria-label"))
    assert "script" not in page.tags
    found = evaluate_model(loaded, refit=True)
    assert found.limits is not None
    n_hidden = model.interactions_.n_ratings - round(0.9 * model.interactions_.n_ratings)
    assert len(found.pairs) + len(found.limits) == pytest.approx(n_hidden, abs=1)
    assert set(found.limits["relation"]) == {-1}
    assert (found.truth >= 5.5).all()


def test_limits_are_open_arrows_on_the_side_of_the_truth() -> None:
    truth = np.linspace(5, 9, 40)
    limits = pd.DataFrame({"truth": [5.0, 5.0, 9.0], "predicted": [4.0, 6.0, 9.5], "relation": [-1, -1, 1]})
    axes = plot_predictions(truth, truth + 0.1, limits=limits).axes[0]
    names = [each.get_label() for each in axes.collections]
    assert names == ["measured", "known to be below", "known to be above"]
    below, above = (np.asarray(each.get_offsets()) for each in axes.collections[1:])
    assert (below[:, 0] <= 5).all()
    assert (above[:, 0] >= 9).all()
    assert sorted(below[:, 1]) == [4, 6]
