"""`air-recsys dti`: from a laboratory's tables to lists, reasons, measures and a page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_cases import assert_refused, cli, read_json

DRUGS = [f"c{k:02d}" for k in range(12)]
TARGETS = [f"p{k}" for k in range(9)]
SMILES = ["CCO", "CCCO", "CCCCO", "CCCCCO", "c1ccccc1", "Cc1ccccc1", "CCc1ccccc1", "CCCc1ccccc1"]
SMILES += ["CC(=O)O", "CCC(=O)O", "CCCC(=O)O", "CCCCC(=O)O"]
SEQUENCES = ["MKVLAAGIVG" * 3, "GGSTPRWWQE" * 3, "HHNDCYFLPK" * 3]


def run(*arguments: object) -> str:
    """Run a command that must succeed, and return what it printed."""
    ended = cli(*arguments)
    assert (ended.status, ended.err) == (0, "")
    return ended.out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = pd.DataFrame(np.kron(np.eye(3, dtype=int), np.ones((4, 3), dtype=int)), DRUGS, TARGETS)
    table.loc["c01", "p2"] = 0
    table.to_csv(tmp_path / "wide.csv", index_label="compound")
    long = table.stack().rename_axis(["Compound", "Protein"]).rename("active").reset_index()
    long.to_csv(tmp_path / "long.tsv", index=False, sep="\t")
    pd.Series(SMILES, DRUGS, name="smiles").to_csv(tmp_path / "smiles.csv", index_label="drug")
    fasta = "".join(f">{target}\n{SEQUENCES[k // 3]}{'AG'[k % 2]}\n" for k, target in enumerate(TARGETS))
    (tmp_path / "targets.fasta").write_text(fasta)
    bits = pd.DataFrame(np.kron(np.eye(3, dtype=int), np.ones((4, 10), dtype=int)), DRUGS)
    bits.loc["c-new"] = bits.loc["c04"]
    bits.to_csv(tmp_path / "bits.csv", index_label="drug")
    bits.drop(index="c05").to_csv(tmp_path / "short.csv", index_label="drug")
    pd.DataFrame(1 - np.eye(12), DRUGS, DRUGS).to_csv(tmp_path / "distances.csv")
    return tmp_path


def described(folder: Path) -> list[object]:
    return ["--drug-smiles", folder / "smiles.csv", "--target-sequences", folder / "targets.fasta"]


def test_from_a_table_to_a_list_reasons_and_a_page(folder: Path) -> None:
    model = folder / "dti.air"
    out = run("dti", "train", folder / "wide.csv", "--model", model, *described(folder))
    assert "12 drugs, 9 targets, 35 known interactions, 73 pairs recorded as 0" in out
    rows = run("dti", "rank", model, "--n", "3", "--out", folder / "list.csv")
    assert rows.splitlines()[0].split() == [
        *("drug", "target", "probability", "deviation", "highest", "score", "rank", "known", "recorded_zero")
    ]
    listed = pd.read_csv(folder / "list.csv")
    assert listed.loc[0, ["drug", "target"]].tolist() == ["c01", "p2"]
    text = run("dti", "explain", model, "--drug", "c01", "--target", "p2", "--json", folder / "why.json")
    assert text.startswith("drug c01, target p2: probability 0.")
    why = read_json(folder / "why.json")
    assert sum(why["parts"].values()) == pytest.approx(why["score"])
    run("dti", "report", model, "--out", folder / "page.html", "--n", "5")
    page = (folder / "page.html").read_text(encoding="utf-8")
    for part in ("Which drugs may hit which targets", "c02 hits p2", "the target graph", "hidden pairs"):
        assert part in page
    assert "<script" not in page


def test_a_long_table_makes_the_same_model(folder: Path) -> None:
    run("dti", "train", folder / "wide.csv", "--model", folder / "wide.air")
    columns = ["--drug-column", "Compound", "--target-column", "Protein", "--value-column", "active"]
    run("dti", "train", folder / "long.tsv", "--model", folder / "long.air", *columns)
    by_column = run("dti", "rank", folder / "long.air").replace("Compound", "drug").replace("Protein", "target")
    assert run("dti", "rank", folder / "wide.air").split() == by_column.split()
    pd.read_csv(folder / "wide.csv", index_col=0).T.to_csv(folder / "turned.csv")
    run("dti", "train", folder / "turned.csv", "--transpose", "--model", folder / "turned.air")
    assert run("dti", "rank", folder / "turned.air") == run("dti", "rank", folder / "wide.air")
    asked = run("dti", "rank", folder / "long.air", "--drug", "c01", "--known", "--n", "20")
    assert len(asked.splitlines()) == 1 + len(TARGETS)


def test_a_new_drug_is_predicted_by_those_it_is_like_and_told_why(folder: Path) -> None:
    model = folder / "bits.air"
    out = run("dti", "train", folder / "wide.csv", "--drug-features", folder / "bits.csv", "--model", model)
    assert "13 drugs, 9 targets, 35 known interactions" in out
    rows = run("dti", "rank", model, "--drug", "c-new", "--n", "3").splitlines()[1:]
    assert {row.split()[1] for row in rows} == {"p3", "p4", "p5"}
    told = run("dti", "explain", model, "--drug", "c-new", "--target", "p4")
    assert told.startswith("drug c-new, target p4: probability 0.")
    assert_refused(cli("dti", "explain", model, "--drug", "c-nwe", "--target", "p4"), "'c-nwe'", "'c-new'")


def test_a_library_is_screened_and_its_table_written(folder: Path) -> None:
    model, library = folder / "dti.air", folder / "library.smi"
    out = run("dti", "train", folder / "wide.csv", "--model", model, *described(folder))
    assert "drugs: own profile 0.50, Morgan 0." in out
    library.write_text("CCCCCCO hexanol\nCCCCCc1ccccc1 pentylbenzene\n")
    run("dti", "screen", model, library, "--target", "p4", "--top", "1", "--out", folder / "hits.csv")
    assert pd.read_csv(folder / "hits.csv").loc[0, ["drug", "target"]].tolist() == ["pentylbenzene", "p4"]
    run("dti", "train", folder / "wide.csv", "--model", folder / "bare.air")
    assert_refused(cli("dti", "screen", folder / "bare.air", library), "dti train --drug-smiles")


def test_diseases_and_names_stand_in_lists_and_on_the_page(folder: Path) -> None:
    table = pd.read_csv(folder / "long.tsv", sep="\t").set_axis(["drug", "disease", "interaction"], axis=1)
    table.to_csv(folder / "diseases.csv", index=False)
    pd.Series({"p2": "asthma", "c01": "aspirin"}, name="name").to_csv(folder / "names.csv", index_label="id")
    model = folder / "dti.air"
    assert_refused(cli("dti", "train", folder / "diseases.csv", "--model", model), "--target-column")
    named = ["--target-column", "disease", "--names", folder / "names.csv"]
    out = run("dti", "train", folder / "diseases.csv", "--model", model, *named)
    assert "12 drugs, 9 diseases, 35 known interactions" in out
    header, first = run("dti", "rank", model, "--n", "1").splitlines()[:2]
    assert header.split()[:4] == ["drug", "disease", "drug_name", "disease_name"]
    assert first.split()[:4] == ["c01", "p2", "aspirin", "asthma"]
    run("dti", "report", model, "--out", folder / "page.html", "--n", "2")
    page = (folder / "page.html").read_text(encoding="utf-8")
    for part in ("Which drugs may go with which diseases", "aspirin (c01)", "asthma (p2)", "the disease graph"):
        assert part in page
    assert "target" not in re.sub(r"<style.*?</style>|_target|target_", "", page, flags=re.DOTALL)


@pytest.mark.parametrize("hide", ["pairs", "drugs", "all"])
def test_an_evaluation_sets_it_beside_simpler_ways(folder: Path, hide: str) -> None:
    out = run("dti", "evaluate", folder / "wide.csv", *described(folder), "--hide", hide, "--folds", "2")
    assert f"means over folds of hidden {hide}" in out
    assert "counts of interactions" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--drug-smiles", "none.csv"], "found no file"),
        (["--drug-similarity", "wide.csv"], "expected a square table"),
        (["--drug-similarity", "distances.csv"], "distance"),
        (["--drug-features", "short.csv"], "'c05'"),
        (["--value-column", "active"], "expected the columns"),
        (["--set", "noise=-1"], "noise"),
        (["--set", "n_epochs=1"], "with a parameter of DrugTargetAIR"),
        (["--drug-features", "smiles.csv"], "must be numbers, found 'CCO'"),
    ],
)
def test_wrong_options_are_one_line(folder: Path, options: list[str], message: str) -> None:
    named = [folder / text if "." in text else text for text in options]
    assert_refused(cli("dti", "train", folder / "wide.csv", "--model", folder / "m.air", *named), message)
    assert not (folder / "m.air").exists()
