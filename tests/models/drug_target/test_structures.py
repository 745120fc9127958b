"""Laws of a model that knows structures: new ones at once, kernels with learned shares, in memory and in files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys.data.described.sides import Described
from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import DataError, DataWarning, ParameterError
from air_recsys.models.drug_target.similarities import learned_shares

pytest.importorskip("rdkit")

SMILES = {
    f"d{k}": f"{'C' * (k + 2)}{tail}"
    for k, tail in enumerate(["O", "CO", "(C)O", "(=O)O"] * 2 + ["c1ccccc1", "c1ccncc1", "c1ccsc1", "Oc1ccccc1"] * 2)
}
NEW = {"new alcohol": "CCCCCCCO", "new ring": "CCCCCc1ccccc1"}
SEQUENCES = {f"t{k}": ("MKVLAAGIVG" if k < 4 else "GGSTPRWWQE") * 2 + "ACDEFGH"[k % 7] * 4 for k in range(8)}
TABLE = pd.DataFrame(np.kron(np.eye(2), np.ones((8, 4))), list(SMILES), list(SEQUENCES))
TABLE.iloc[[0, 9, 3], [1, 6, 7]] = [[0, 1, 0], [1, 0, 1], [np.nan, 0, np.nan]]
NUMBERS = pd.DataFrame(np.random.default_rng(0).normal(size=(18, 5)), [*SMILES, *NEW])
MEASURED = pd.DataFrame(
    {"drug": ["new ring", "new ring", "new alcohol"], "target": ["t5", "t1", "t2"], "interaction": [1, 0, 1]}
)


def kernels_of(smiles: dict[str, str]) -> dict[str, np.ndarray]:
    """Tanimoto by RDKit itself."""
    from rdkit import Chem, DataStructs
    from rdkit.Chem import rdFingerprintGenerator, rdMolDescriptors

    makers: Any = {
        "Morgan": rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048).GetFingerprint,
        "torsions": rdFingerprintGenerator.GetTopologicalTorsionGenerator(fpSize=2048).GetFingerprint,
        "MACCS": rdMolDescriptors.GetMACCSKeysFingerprint,
    }
    molecules = [Chem.MolFromSmiles(text) for text in smiles.values()]
    found = {}
    for name, make in makers.items():
        prints = [make(each) for each in molecules]
        found[name] = np.array([DataStructs.BulkTanimotoSimilarity(one, prints) for one in prints])
    return found


def kernel_of(**given: Any) -> pd.DataFrame:
    """What is given by one name, as a table."""
    (content,) = given.values()
    ids = list(content.index if isinstance(content, pd.DataFrame) else content)
    return pd.DataFrame(Described.of("row", given, np.array(ids)).similarity(), ids, ids)


def mean_of(smiles: dict[str, str], shares: dict[str, float]) -> pd.DataFrame:
    """The mean of kernels; one in which a structure has nothing does not count for it."""
    total, weight = np.zeros(2 * (len(smiles),)), np.zeros(2 * (len(smiles),))
    for name, kernel in kernels_of(smiles).items():
        has = np.diag(kernel) > 0
        total += shares[name] * kernel * np.outer(has, has)
        weight += shares[name] * np.outer(has, has)
    found = total / weight
    np.fill_diagonal(found, 1)
    return pd.DataFrame(found, list(smiles), list(smiles))


@pytest.fixture(scope="module")
def model() -> DrugTargetAIR:
    return DrugTargetAIR().fit(TABLE, {"smiles": SMILES}, {"sequences": SEQUENCES})


def of_targets(model: DrugTargetAIR) -> pd.DataFrame:
    """The mean of the kernels of sequences by their shares."""
    ids, shares = list(SEQUENCES), model.shares_["target"]
    found = Described.of("target", {"sequences": SEQUENCES}, np.array(ids))
    return pd.DataFrame(found._replace(shares=shares).similarity(), ids, ids)


def test_the_similarity_is_the_mean_of_the_kernels_by_their_shares(model: DrugTargetAIR) -> None:
    shares = model.shares_["drug"]
    assert sum(shares.values()) == pytest.approx(1)
    drugs, targets = model.similarities_
    np.testing.assert_allclose(drugs, mean_of(SMILES, shares), atol=1e-12)
    np.testing.assert_allclose(targets, of_targets(model), atol=1e-12)
    assert model.described_line_.startswith("drugs: own profile 0.50, Morgan 0.")
    given = DrugTargetAIR().fit(TABLE, mean_of(SMILES, shares), of_targets(model))
    np.testing.assert_allclose(given.scores_, model.scores_, atol=1e-9)


@pytest.mark.parametrize("measured", [None, MEASURED])
def test_new_structures_have_the_answers_of_a_fit_with_all_else_held(model: DrugTargetAIR, measured: Any) -> None:
    found = model.fold_in(measured, drug_similarity={"smiles": NEW})
    similar = mean_of(SMILES | NEW, model.shares_["drug"])
    given = DrugTargetAIR().fit(TABLE, similar.loc[list(SMILES), list(SMILES)], of_targets(model))
    held = given.fold_in(measured, similar.loc[list(NEW)])
    for one, other in ((found.scores_, held.scores_), (found.open_scores_, held.open_scores_)):
        np.testing.assert_allclose(one, other, atol=1e-6)
    listed = found.new_interactions(3)
    np.testing.assert_allclose(listed["deviation"], held.new_interactions(3)["deviation"], atol=1e-6)
    if measured is None:  # a fit that knew them has nothing else to learn of them
        whole = DrugTargetAIR().fit(TABLE, similar, of_targets(model))
        scores = np.array([whole.predict(drug, list(TABLE.columns)) for drug in found.drugs_.ids])
        np.testing.assert_allclose(found.scores_, scores, atol=1e-6)
    why = found.explain("new ring", "t4")
    assert why.total() == pytest.approx(why.score)
    assert why.score == pytest.approx(found.open_scores_[list(found.drugs_.ids).index("new ring"), 4])


def test_new_targets_come_by_sequences_and_need_no_side(model: DrugTargetAIR) -> None:
    found = model.fold_in(target_similarity={"sequences": {"new": SEQUENCES["t6"] + "K"}})
    assert found.targets_.ids.tolist() == ["new"]
    scores = found.scores_[:, 0]
    assert scores[8:].mean() > scores[:8].mean() + 0.3


def test_embeddings_that_people_bring_are_kernels_with_the_scales_of_the_fit() -> None:
    known, new = NUMBERS.loc[list(SMILES)], NUMBERS.loc[list(NEW)]
    alone = DrugTargetAIR().fit(TABLE, {"features": known})
    np.testing.assert_allclose(alone.similarities_[0], kernel_of(features=known))
    by_mapping = DrugTargetAIR().fit(TABLE, {"features": dict(known.T.items())})
    np.testing.assert_array_equal(by_mapping.scores_, alone.scores_)
    np.testing.assert_array_equal(DrugTargetAIR().fit(TABLE, {"features": known.to_numpy()}).scores_, alone.scores_)
    scaled = (known - known.mean()) / known.std(ddof=0)
    apart = np.square(scaled.to_numpy()[:, None] - scaled.to_numpy()).sum(axis=2)
    rows = ((new - known.mean()) / known.std(ddof=0)).to_numpy()
    across = np.square(rows[:, None] - scaled.to_numpy()).sum(axis=2)
    similar = pd.DataFrame(np.exp(-across / np.median(apart[np.triu_indices(16, 1)])), new.index, known.index)
    given = DrugTargetAIR().fit(TABLE, kernel_of(features=known))
    found = alone.fold_in(MEASURED, drug_similarity={"features": new})
    np.testing.assert_allclose(
        found.predict("new ring", "t5"), given.fold_in(None, similar).predict("new ring", "t5"), atol=1
    )
    np.testing.assert_allclose(
        alone.fold_in(drug_similarity={"features": new}).scores_, given.fold_in(None, similar).scores_, atol=1e-9
    )
    several = DrugTargetAIR().fit(TABLE, {"smiles": SMILES, "ESM": known, "own": known.iloc[:, :2]})
    assert list(several.shares_["drug"]) == ["Morgan", "torsions", "MACCS", "ESM", "own"]
    assert several.fold_in(drug_similarity={"smiles": NEW}).scores_.shape == (2, 8)  # one of its kinds is enough
    assert several.fold_in(drug_similarity={"ESM": new}).scores_.shape == (2, 8)


def test_kernels_that_predict_rows_have_larger_shares_and_equal_ones_equal_shares() -> None:
    rng = np.random.default_rng(0)
    groups = np.kron(np.eye(4), np.ones((10, 10)))
    noise = kernel_of(features=pd.DataFrame(rng.normal(size=(40, 8)))).to_numpy()
    values = np.kron(np.eye(4), np.ones((10, 5)))
    good, bad = learned_shares([groups, noise], values, np.ones_like(values))
    assert good > 0.6 > bad
    assert good + bad == pytest.approx(1)
    np.testing.assert_allclose(learned_shares([groups, groups], values, np.ones_like(values)), 0.5)
    np.testing.assert_allclose(learned_shares([groups, noise], 0 * values, np.ones_like(values)), 0.5)


def test_a_file_keeps_what_new_ones_need(model: DrugTargetAIR, tmp_path: Path) -> None:
    numbers = NUMBERS.loc[list(SMILES)]
    whole = DrugTargetAIR().fit(
        TABLE, {"own": kernel_of(features=numbers), "smiles": SMILES, "features": numbers}, names={"d0": "ethanol"}
    )
    for each, given in (
        (model, {"smiles": NEW}),
        (whole, {"smiles": NEW, "features": NUMBERS.loc[list(NEW)]}),
    ):
        loaded = DrugTargetAIR.load(each.save(tmp_path / "model.air"))
        assert loaded.shares_ == each.shares_
        found, expected = (one.fold_in(MEASURED, given).scores_ for one in (loaded, each))
        np.testing.assert_array_equal(found, expected)
    assert loaded.names_ == {"d0": "ethanol"}
    again = loaded.partial_fit(MEASURED, drug_similarity={"smiles": NEW})
    assert again.drugs_.ids.tolist()[-2:] == list(NEW)
    left = again.forget(users=["d0", "new ring"])
    assert len(left.similarities_[0]) == 16
    DrugTargetAIR.load(left.save(tmp_path / "left.air"))


def test_partial_fit_learns_what_a_fit_of_all_does(model: DrugTargetAIR) -> None:
    whole = pd.concat([TABLE, pd.DataFrame(np.nan, list(NEW), TABLE.columns)])
    for row in MEASURED.itertuples():
        whole.loc[row.drug, row.target] = row.interaction
    fitted = DrugTargetAIR().fit(whole, {"smiles": SMILES | NEW}, {"sequences": SEQUENCES})
    grown = DrugTargetAIR().fit(TABLE, {"smiles": SMILES}, {"sequences": SEQUENCES})
    grown.partial_fit(MEASURED, drug_similarity={"smiles": NEW})
    np.testing.assert_allclose(grown.scores_, fitted.scores_, atol=1e-9)


def test_structures_that_cannot_be_read_are_told_and_the_rest_goes_on() -> None:
    smiles = SMILES | {"d1": "C1CC", "d2": "CO(C)C", "d3": SMILES["d0"]}
    del smiles["d4"]
    with pytest.warns(DataWarning) as told:
        found = DrugTargetAIR().fit(TABLE, {"smiles": smiles | {"d5": "CC(=O)[O-].[Na+]"}})
    texts = " ".join(str(each.message) for each in told)
    for part in (
        "2 of 16 do not parse and are similar to no other: row 2 ('d1'): 'C1CC', not SMILES; row 3 ('d2'): 'CO(C)C'",
        "is greater than permitted",
        "1 of 16 ids have none and are similar to no other: 'd4'",
        "1 structures stand under several ids (by InChIKey), the first under ['d0', 'd3']",
    ):
        assert part in texts
    assert "drug_similarity['smiles']: 1 of 16 standardised (salts of 1, charges of 1)" in found.described_line_
    assert found.similarities_[0][1].tolist() == np.eye(16)[1].tolist()


@pytest.mark.parametrize(
    ("fitted", "given", "message"),
    [
        (
            {},
            {"smiles": NEW},
            "expected no drug_similarity['smiles'], as the model was trained without one, found one",
        ),
        ({"features": NUMBERS}, {"smiles": {"x": "C"}}, "it knows drugs by features; give these"),
        ({"smiles": SMILES}, {"features": NUMBERS.iloc[-2:]}, "it knows drugs by smiles; give these"),
        ({"smiles": SMILES}, {"smiles": {"x": "C1CC"}}, "found none that parses: row 1 ('x'): 'C1CC'"),
        ({"features": NUMBERS}, {"features": pd.DataFrame([[1.0]], ["x"])}, "of 5 columns, found 1"),
    ],
)
def test_what_the_model_does_not_know_is_said(fitted: Any, given: Any, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        DrugTargetAIR().fit(TABLE, fitted or None).fold_in(None, given)


# -------------------------------------------------------------------- words of the axes


def test_the_axes_have_the_words_of_their_columns(tmp_path: Path) -> None:
    frame = TABLE.stack().rename_axis(["drug", "disease"]).rename("interaction").dropna().reset_index()
    model = DrugTargetAIR().fit(frame, target="disease", names={"d0": "aspirin", "t1": "asthma"})
    same = DrugTargetAIR().fit(frame.rename(columns={"disease": "target"}))
    np.testing.assert_array_equal(model.scores_, same.scores_)
    loaded = DrugTargetAIR.load(model.save(tmp_path / "model.air"))
    for each in (model, loaded):
        found = each.new_interactions(2, drug_ids="d0")
        assert found.columns.tolist()[:4] == ["drug", "disease", "drug_name", "disease_name"]
        assert found["drug_name"].tolist() == ["aspirin"] * 2
        assert "disease asthma (t1)" in str(each.explain("d0", "t1"))
        assert each.target_graph_.neighbors("t1", 1).columns[0] == "disease"
        with pytest.raises(Exception, match="disease"):
            each.predict("d0", "t99")
    new = model.fold_in(pd.DataFrame({"drug": ["x"], "disease": ["t1"]}))
    assert new.new_interactions(1).columns[1] == "disease"
    assert "interaction" in model.held_out().columns[2]


def test_names_of_numbers_may_be_those_of_a_file_with_texts_too() -> None:
    table = TABLE.set_axis(range(1, 1 + len(TABLE)))
    model = DrugTargetAIR().fit(table, names={"1": "aspirin", "t1": "asthma", "later": "new"})
    assert model.names_ == {1: "aspirin", "t1": "asthma", "later": "new"}
    with pytest.raises(DataError, match="names of ids such as 1, found others: 'x'"):
        DrugTargetAIR().fit(table, names={"x": "aspirin"})


def test_a_long_table_of_other_words_says_how_to_name_them() -> None:
    frame = pd.DataFrame({"drug": ["a", "b"], "disease": ["x", "y"]})
    with pytest.raises(DataError, match=re.escape("fit(..., target='disease') (in the shell --target-column)")):
        DrugTargetAIR().fit(frame)
    for word in ("", "score", "drug"):
        with pytest.raises(ParameterError):
            DrugTargetAIR().fit(frame, target=word)
