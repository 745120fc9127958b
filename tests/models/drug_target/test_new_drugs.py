"""Laws of new drugs and targets: `fold_in` with all that is known held, `partial_fit` by a fit on all data."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from dti_cases import SIMILARITY, TARGETS, WIDE, alike, long_of, planted, wide

from air_recsys.data.interactions import Interactions
from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import DataError, ParameterError, UnknownIdError
from air_recsys.metrics import average_precision
from air_recsys.models.drug_target import course
from air_recsys.models.drug_target.completion import affinity

TABLE = planted()
NEW = pd.DataFrame(TABLE.iloc[[0, 9]].to_numpy(), ["e0", "e9"], TABLE.columns)
RESEMBLING = pd.DataFrame(alike(TABLE.index).iloc[[1, 10]].to_numpy(), ["e0", "e9"], TABLE.index)


def scores_of(model: DrugTargetAIR, table: pd.DataFrame) -> np.ndarray:
    return np.array([model.predict(drug, list(table.columns)) for drug in table.index])


def square(known: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Similarities of all, the new ones unlike each other."""
    ids, own = [*known.index, *rows.index], np.eye(len(rows))
    return pd.DataFrame(np.block([[known.to_numpy(), rows.to_numpy().T], [rows.to_numpy(), own]]), ids, ids)


# -------------------------------------------------------------------- the equation


def solved(filled: np.ndarray, new: pd.DataFrame, rounds: int, resembling: Any = None, noise: float = 1.0) -> Any:
    """Rows below completed ones: of one system of equations of all pairs, in which R and both graphs stay."""
    given = None if resembling is None else square(alike(TABLE.index), resembling).to_numpy()
    known, recorded, shown = len(filled), new.fillna(0).to_numpy(), new.notna().to_numpy()
    targets = affinity(torch.from_numpy(filled.T.copy()), None, 0.5).numpy()
    scale, row, scores = np.square(filled).sum(axis=1).mean(), recorded, recorded
    for _ in range(rounds):
        whole = np.vstack([filled, row])
        apart = np.square(whole[:, None] - whole).sum(axis=2)
        graph = np.exp(-apart / scale) if given is None else (np.exp(-apart / scale) + given) / 2
        kernel = np.kron(graph, targets)
        found = kernel @ np.linalg.solve(kernel + noise * np.eye(whole.size), whole.ravel())
        scores = found.reshape(whole.shape)[known:]
        row = np.where(shown, recorded, scores.clip(0, 1))
    return scores


@pytest.mark.parametrize("resembling", [None, RESEMBLING])
@pytest.mark.parametrize("side", ["drug", "target"])
def test_new_rows_solve_the_equations_of_all_pairs_in_which_what_is_known_stays(side: str, resembling: Any) -> None:
    model, noise = DrugTargetAIR(n_rounds=2, regression_weight=0), 1.0 if resembling is None else 0.5
    given: Any = () if resembling is None else (alike(TABLE.index),)
    if side == "drug":
        known = model.fit(TABLE, *given)
        found = known.fold_in(NEW, resembling).scores_
    else:
        how = {} if resembling is None else {"target_similarity": given[0]}
        known = model.fit(TABLE.T, **how)
        found = known.fold_in(NEW.T, target_similarity=resembling, side="target").scores_.T
    once = DrugTargetAIR(n_rounds=1, regression_weight=0)  # its scores make the R of the second round
    first = once.fit(TABLE, *given).scores_
    filled = np.where(TABLE.notna(), TABLE.fillna(0), first.clip(0, 1))
    np.testing.assert_allclose(found, solved(filled, NEW, 2, resembling, noise), atol=1e-9)


def test_negative_eigenvalues_of_a_graph_with_new_rows_count_as_nothing() -> None:
    known = alike(TABLE.index)
    model = DrugTargetAIR(similarity_weight=1, n_rounds=1, regression_weight=0).fit(TABLE, known)
    row = pd.DataFrame(0.0, ["new"], TABLE.index).assign(d0=1.0, d9=1.0)  # like two that are unlike each other
    table = pd.DataFrame(TABLE.iloc[[0]].to_numpy(), ["new"], TABLE.columns)
    found = model.fold_in(table, row).scores_
    graph = square(known, row).to_numpy()
    values, vectors = np.linalg.eigh(graph)
    assert values[0] < -0.1
    whole = np.vstack([TABLE, table])
    whole = np.nan_to_num(whole)
    targets = affinity(torch.from_numpy(whole[:-1].T.copy()), None, 0.5).numpy()
    kernel = np.kron((vectors * values.clip(0)) @ vectors.T, targets)
    scores = kernel @ np.linalg.solve(kernel + 0.5 * np.eye(whole.size), whole.ravel())
    np.testing.assert_allclose(found[0], scores.reshape(whole.shape)[-1], atol=1e-9)


def test_a_new_drug_without_interactions_is_what_a_fit_predicts_that_knew_its_similarity() -> None:
    known = alike(TABLE.index)
    model = DrugTargetAIR().fit(TABLE, known, alike(TABLE.columns))
    found = model.fold_in(None, RESEMBLING)
    fitted = DrugTargetAIR().fit(TABLE, square(known, RESEMBLING), alike(TABLE.columns))
    np.testing.assert_allclose(found.scores_, scores_of(fitted, NEW), atol=1e-12)
    assert found.interactions_.n_ratings == 0
    assert set(found.recommend("e0", 3)["target"]) <= set(TABLE.columns[:6])  # those of its group
    zeros = NEW.where(NEW == 0)  # no interaction either
    np.testing.assert_array_equal(model.fold_in(zeros, RESEMBLING).scores_, found.scores_)


def test_a_new_drug_is_lifted_as_a_refit_does_if_its_records_are_all_zeros() -> None:
    """Of the drugs of the table some have one interaction and missing pairs, so others have theirs among these."""
    table = TABLE.mask(np.random.default_rng(3).random(TABLE.shape) < 0.3)
    for drug in ("d1", "d5", "d12"):  # with one interaction
        table.loc[drug] = table.loc[drug].mask(table.loc[drug] == 1)
        table.loc[drug, "t0"] = 1.0
    table.loc["d20"] = table.loc["d20"].mask(table.loc["d20"] == 1)
    known, how = alike(TABLE.index), DrugTargetAIR(regression_weight=0.3)
    model, plain = copy.copy(how).fit(table, known), DrugTargetAIR(regression_weight=0.3)
    zeros = pd.DataFrame(0.0, ["e0"], table.columns)
    zeros["t0"] = np.nan
    blank, alone = zeros.mask(zeros == 0), RESEMBLING.iloc[:1]
    found = {}
    for name, new in (("zeros", zeros), ("blank", blank)):
        fitted = copy.copy(plain).fit(pd.concat([table, new]), square(known, alone))
        found[name] = scores_of(fitted, new)
        np.testing.assert_allclose(
            model.fold_in(None if name == "blank" else new, alone).scores_, found[name], atol=1e-6
        )
    missing = zeros.isna().to_numpy()
    np.testing.assert_allclose(found["zeros"][~missing], found["blank"][~missing], atol=1e-9)
    assert (found["zeros"] > 1.1 * found["blank"])[missing].all()


def test_a_copy_of_a_known_drug_has_about_its_answers() -> None:
    model = DrugTargetAIR().fit(TABLE)
    found = model.fold_in(NEW)
    old = scores_of(model, NEW.set_axis(["d0", "d9"]))
    assert np.abs(found.scores_ - old).max() < 0.15
    assert np.corrcoef(found.scores_.ravel(), old.ravel())[0, 1] > 0.98
    assert found.similar_users("e0", 1)["drug"].tolist() == ["d0"]


def test_new_rows_rank_hidden_pairs_about_as_well_as_a_fit_of_all() -> None:
    rng, found, fitted, labels = np.random.default_rng(0), [], [], []
    for drugs in np.array_split(rng.permutation(len(TABLE)), 4):
        new, known = TABLE.iloc[drugs], TABLE.drop(index=TABLE.index[drugs])
        hidden = new.notna() & (rng.random(new.shape) < 0.5)
        part = new.mask(hidden)
        found += scores_of(DrugTargetAIR().fit(known).fold_in(part), part)[hidden].tolist()
        fitted += scores_of(DrugTargetAIR().fit(pd.concat([known, part])), part)[hidden].tolist()
        labels += new.to_numpy()[hidden].tolist()
    precision = [average_precision(np.array(labels), np.array(scores)) for scores in (found, fitted)]
    assert precision[0] > 0.95 * precision[1] > 0.7


def test_pairs_alone_count_others_as_zeros_where_the_fit_did() -> None:
    pairs = long_of(WIDE).query("interaction == 1")
    known, new = pairs.drop(columns="interaction"), pd.DataFrame({"drug": ["new"] * 2, "target": ["t0", "t1"]})
    model = DrugTargetAIR().fit(known)
    row = WIDE.iloc[[0]].set_axis(["new"]).assign(t2=0.0)
    whole = DrugTargetAIR(unobserved_weight=1).fit(WIDE)
    np.testing.assert_allclose(model.fold_in(new).scores_, whole.fold_in(row).scores_, atol=1e-12)
    half = whole.fold_in(long_of(row).assign(weight=0.5))
    assert np.abs(half.scores_ - whole.fold_in(row).scores_).max() > 0


# -------------------------------------------------------------------- answers


@pytest.mark.parametrize("side", ["user", "item"])
@pytest.mark.parametrize("similar", [False, True])
def test_new_rows_answer_all_questions_and_the_model_stays(side: str, similar: bool) -> None:
    table, new = (TABLE, NEW) if side == "user" else (TABLE.T, NEW.T)
    given = {f"{'drug' if side == 'user' else 'target'}_similarity": alike(TABLE.index)} if similar else {}
    model = DrugTargetAIR().fit(table, **given)
    before = model.new_interactions(1000)
    found = model.fold_in(new, side=side)
    drug, target = ("e0", "t3") if side == "user" else ("t3", "e0")
    pd.testing.assert_frame_equal(model.new_interactions(1000), before)
    assert (found.drugs_.ids.tolist(), found.targets_.ids.tolist()) == (new.index.tolist(), new.columns.tolist())
    ranked: Any = found.new_interactions(1000, include_known=True)
    assert len(ranked) == new.size
    assert (ranked["known"] == [new.loc[d, t] == 1 for d, t in ranked[["drug", "target"]].to_numpy()]).all()
    assert (ranked["deviation"] >= 0).all()
    explanation = found.explain(drug, target, 200)
    row = ranked.set_index(["drug", "target"]).loc[(drug, target)]
    assert explanation.total() == pytest.approx(explanation.score)
    figures = explanation.score, explanation.probability, explanation.deviation
    np.testing.assert_allclose(figures, row[["score", "probability", "deviation"]].astype(float), atol=1e-9)
    assert drug in explanation.interactions["drug"].tolist()
    place = new.index.get_loc(drug), new.columns.get_loc(target)
    missing = bool(np.isnan(new.to_numpy(dtype=float)[place]))
    assert missing == (found.predict_proba(drug, target) == model.calibration_.of_scores(found.open_scores_)[place])
    deviations = found.predict(drug, list(new.columns), return_std=True)[1]
    assert (deviations > 0).all()
    low, high = found.predict_interval(drug, target)
    assert low <= high
    assert found.score(new) > 0.9
    assert found.recommend(drug, 3, items=[target])["target"].tolist() in ([target], [])


def test_a_recorded_zero_is_scored_as_if_it_were_missing() -> None:
    model = DrugTargetAIR().fit(WIDE)
    row = WIDE.iloc[[0]].set_axis(["new"]).assign(t0=0.0)
    found, without = model.fold_in(row), model.fold_in(row.assign(t0=np.nan))
    assert found.predict("new", "t0") < found.open_scores_[0, 0] == pytest.approx(without.scores_[0, 0], abs=0.05)


def test_targets_without_interactions_follow_for_new_drugs_too() -> None:
    table = TABLE.assign(t5=np.nan)
    model = DrugTargetAIR().fit(table, target_similarity=alike(TABLE.columns))
    found = model.fold_in(NEW.assign(t5=1.0))
    np.testing.assert_allclose(found.predict("e0", "t5"), model.predict("d0", "t5"), atol=0.1)
    assert found.explain("e0", "t5").total() == pytest.approx(found.explain("e0", "t5").score)


def test_a_loaded_model_and_one_in_32_bits_fold_in_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = DrugTargetAIR().fit(TABLE, alike(TABLE.index))
    loaded = DrugTargetAIR.load(model.save(tmp_path / "model.air"))
    expected = model.fold_in(NEW, RESEMBLING).scores_
    np.testing.assert_array_equal(loaded.fold_in(NEW, RESEMBLING).scores_, expected)
    monkeypatch.setattr(course, "_DOUBLE", 10)
    single = DrugTargetAIR().fit(TABLE, alike(TABLE.index)).fold_in(NEW, RESEMBLING)
    assert single.scores_.dtype == np.float32
    np.testing.assert_allclose(single.scores_, expected, atol=1e-3)


def test_a_table_of_similarities_may_have_rows_of_known_ones_and_columns_of_new_ones() -> None:
    known = alike(TABLE.index)
    model = DrugTargetAIR().fit(TABLE, known)
    whole = square(known, RESEMBLING)
    expected = model.fold_in(None, RESEMBLING)
    for each in (whole, whole.loc[["e9", "e0"]]):
        found = model.fold_in(None, each)
        np.testing.assert_allclose(found.predict("e0", "t1"), expected.predict("e0", "t1"))
    whole.loc["e0", "e9"] = whole.loc["e9", "e0"] = 0.9
    assert model.fold_in(NEW, whole).predict("e0", "t1") != model.fold_in(NEW, RESEMBLING).predict("e0", "t1")
    none = pd.DataFrame(0.0, NEW.index, TABLE.index)
    np.testing.assert_array_equal(model.fold_in(NEW).scores_, model.fold_in(NEW, none).scores_)


# -------------------------------------------------------------------- partial_fit


def test_new_pairs_drugs_and_targets_make_the_model_of_all_data_to_the_bit(tmp_path: Path) -> None:
    known, more = alike(TABLE.index), square(alike(TABLE.index), RESEMBLING)
    model = DrugTargetAIR().fit(TABLE, known)
    new = NEW.assign(t99=[1.0, np.nan])
    assert model.partial_fit(new, RESEMBLING) is model
    both = pd.concat([TABLE, new])
    expected = DrugTargetAIR().fit(both, more)
    model.partial_fit(pd.DataFrame({"drug": ["d0"], "target": ["t0"], "interaction": [0]}))
    both.loc["d0", "t0"] = 0
    again = DrugTargetAIR().fit(both, more)
    for each in (model, DrugTargetAIR.load(model.save(tmp_path / "model.air"))):
        np.testing.assert_array_equal(each.scores_, again.scores_)
        pd.testing.assert_frame_equal(each.new_interactions(1000), again.new_interactions(1000))
    assert not np.array_equal(again.scores_, expected.scores_)
    np.testing.assert_array_equal(model.forget(pairs=[("d0", "t0")]).interactions_.n_users, len(both))


def test_a_model_of_weights_takes_pairs_without() -> None:
    table = long_of(TABLE).dropna()
    model = DrugTargetAIR().fit(table.assign(weight=0.5)).partial_fit(NEW)
    weights = model.interactions_.weights
    assert weights is not None
    assert np.count_nonzero(weights == 1) == NEW.notna().sum().sum()


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("new", "how", "told"),
    [
        (WIDE.iloc[:1], {}, "expected only new drugs, found known ones, such as 'drug 0': partial_fit"),
        (None, {}, "expected only new drugs, found none"),
        (None, {"drug_similarity": SIMILARITY}, "expected only new drugs, found none"),
        (WIDE.iloc[:1].set_axis(["new"]), {"side": "item"}, "drug id.* 'new'; partial_fit takes in new ones"),
        (WIDE.iloc[:1].set_axis(["new"]).assign(other=1), {}, "target id.* 'other'; partial_fit takes in new ones"),
        (WIDE.iloc[:1].set_axis(["new"]) * 3, {}, "expected 1 for pairs that interact"),
        (None, {"drug_similarity": SIMILARITY.iloc[:1, 1:].set_axis(["new"])}, "without one: 'drug 0'"),
        (None, {"drug_similarity": SIMILARITY.iloc[:1].set_axis(["new"]) * 3}, r"in \[0, 1\]"),
        (WIDE.iloc[:1].set_axis(["new"]), {"drug_similarity": np.ones((1, 8))}, "as a DataFrame"),
        (WIDE.iloc[:1].set_axis(["new"]), {"drug_similarity": SIMILARITY}, "found 1 of them without one: 'new'"),
        (
            None,
            {"target_similarity": pd.DataFrame(1.0, ["u"], TARGETS), "side": "item"},
            "trained without one, found one",
        ),
        (WIDE.iloc[:1].set_axis(["new"]), {"side": "row"}, "side must be"),
    ],
)
def test_bad_new_rows_are_refused_and_the_model_stays(new: Any, how: dict[str, Any], told: str) -> None:
    model = DrugTargetAIR().fit(wide((0, 0)), SIMILARITY)
    scores = model.scores_
    with pytest.raises((DataError, ParameterError, UnknownIdError), match=told):
        model.fold_in(new, **how)
    assert model.scores_ is scores
    assert len(model.drugs_) == 8


def test_a_model_of_new_rows_takes_nothing_further_in(tmp_path: Path) -> None:
    found = DrugTargetAIR().fit(WIDE).fold_in(WIDE.iloc[:1].set_axis(["new"]))
    data = Interactions.from_dense(WIDE.to_numpy(), range(8), TARGETS)
    asked: list[tuple[str, Any]] = [("fold_in", data), ("partial_fit", data), ("save", tmp_path / "a.air")]
    for name, given in asked:
        with pytest.raises(ParameterError, match="this model holds new rows alone, for answers"):
            getattr(found, name)(given)
    for name, how in (("forget", {"users": "new"}), ("held_out", {})):
        with pytest.raises(ParameterError, match="this model holds new rows alone, for answers"):
            getattr(found, name)(**how)
    assert len(found.fit(WIDE).drugs_) == 8
