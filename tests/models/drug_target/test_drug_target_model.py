"""The contract of `DrugTargetAIR`, over tables as a laboratory has them, at the edges, and from many threads."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dti_cases import DRUGS, GROUPS, SIMILARITY, TARGETS, WIDE, wide

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_yamanishi
from air_recsys.dti import DrugTargetAIR, interaction_folds
from air_recsys.exceptions import DataError, DataWarning, NotFittedError, ParameterError, UnknownIdError
from air_recsys.metrics import average_precision
from air_recsys.models.drug_target.pairs import as_pairs


def fit(*given: Any, **parameters: Any) -> DrugTargetAIR:
    return DrugTargetAIR(**parameters).fit(*given)


def recorded() -> np.ndarray:
    """Interactions of nine drugs with seven targets, in no order."""
    rng = np.random.default_rng(0)
    values = (rng.random((9, 7)) < 0.4).astype(float)
    return np.where(rng.random(values.shape) < 0.2, np.nan, values)


def similarity(size: int) -> np.ndarray:
    half = np.random.default_rng(1).random((size, size)) * 0.6
    return np.maximum(half, half.T) * (1 - np.eye(size)) + np.eye(size)


SIDES = similarity(9), similarity(7)


# -------------------------------------------------------------------- answers


def test_a_hidden_interaction_of_a_group_is_the_first_new_one() -> None:
    table = fit(wide((1, 2), (6, 0))).new_interactions(2)
    expected = ["drug 1", "t2", False, False]
    assert table.loc[0, ["drug", "target", "known", "recorded_zero"]].tolist() == expected
    assert table["score"].tolist() == sorted(table["score"], reverse=True)
    assert table["rank"].tolist() == [1, 2]


def test_known_interactions_are_never_new() -> None:
    model = fit(WIDE)
    table = model.new_interactions(100)
    assert (len(table), table["recorded_zero"].all(), table["known"].any()) == (24, True, False)
    both = model.new_interactions(100, include_known=True)
    assert (len(both), both["known"].sum()) == (48, 24)
    assert set(model.new_interactions(100, drug_ids="drug 1")["drug"]) == {"drug 1"}
    assert set(model.new_interactions(100, target_ids=["t0"])["target"]) == {"t0"}


@pytest.mark.order
def test_pairs_whose_scores_tie_come_in_the_order_of_drugs_and_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of the size of rounding does not order pairs that are alike."""
    model = fit(wide((1, 2), (6, 0)))
    scores = np.round(model.open_scores_, 4)
    noise = 1e-15 * np.random.default_rng(0).uniform(-1, 1, scores.shape)
    lists = []
    for values in (scores, scores + noise):
        monkeypatch.setattr(DrugTargetAIR, "open_scores_", values)
        lists.append(model.new_interactions(100))
    assert lists[0][["drug", "target"]].equals(lists[1][["drug", "target"]])
    for _, tied in lists[1].groupby("score"):
        assert tied[["drug", "target"]].values.tolist() == sorted(tied[["drug", "target"]].values.tolist())
    assert lists[1]["score"].duplicated().any()


BITS = pd.DataFrame(np.kron(np.eye(2), np.ones((4, 5))), DRUGS)


@pytest.mark.parametrize("given", [SIMILARITY, {"features": BITS}], ids=["similarity", "features"])
@pytest.mark.parametrize("table", [wide(0), WIDE.drop(index="drug 0")], ids=["no record", "only similar"])
def test_a_drug_without_data_is_predicted_from_similar_ones(table: pd.DataFrame, given: pd.DataFrame) -> None:
    model = fit(table, given)
    scores = model.predict("drug 0", TARGETS)
    assert scores[:3].min() > 0.5 > scores[3:].max()
    assert "drug 0" in set(model.new_interactions(50)["drug"])
    assert set(model.drug_graph_.neighbors("drug 0", n=3)["drug"]) == {"drug 1", "drug 2", "drug 3"}


def test_similarities_have_the_names_of_all_models_too() -> None:
    table = wide((1, 2), (6, 0))
    model = DrugTargetAIR(n_rounds=2, device="cpu").fit(table, user_similarity=SIMILARITY)
    assert (model.scores_ == DrugTargetAIR(n_rounds=2, device="cpu").fit(table, SIMILARITY).scores_).all()
    with pytest.raises(ParameterError, match="drug_similarity or user_similarity, which are the same"):
        model.fit(table, SIMILARITY, user_similarity=SIMILARITY)


def test_both_sides_without_data() -> None:
    values = GROUPS.copy()
    values[0], values[:, 0] = np.nan, np.nan
    of_targets = np.kron(np.eye(2), np.full((3, 3), 0.7)) + 0.3 * np.eye(6)
    model = fit(pd.DataFrame(values, DRUGS, TARGETS), SIMILARITY, of_targets)
    assert model.predict("drug 0", "t0")[0] > 0.5 > model.predict("drug 7", "t0")[0]


def test_forms_of_a_question_agree() -> None:
    model = fit(WIDE)
    pairs = model.predict(["drug 0", "drug 0"], ["t1", "t4"])
    np.testing.assert_array_equal(pairs, model.predict("drug 0", ["t1", "t4"]))
    np.testing.assert_array_equal(pairs, model.scores_[0, [1, 4]])


def test_a_second_fit_is_a_fresh_one_and_leaves_parameters_alone() -> None:
    model = DrugTargetAIR(noise=0.7)
    before, first = model.get_params(), model.fit(wide((0, 0))).open_scores_
    model.fit(wide(0), SIMILARITY)
    again = DrugTargetAIR(**before).fit(wide(0), SIMILARITY)
    assert model.get_params() == again.get_params() == before
    np.testing.assert_array_equal(model.scores_, again.scores_)
    assert not np.allclose(first, model.open_scores_)


def test_where_only_interactions_are_recorded_all_other_pairs_are_zeros() -> None:
    pairs = long_of(WIDE).query("interaction == 1")
    model = fit(pairs)
    assert (model.unobserved_weight_, fit(WIDE).unobserved_weight_) == (1, 0)
    for same in (fit(pairs, unobserved_weight=1), fit(pairs[["Drug", "TARGET"]]), fit(WIDE)):
        np.testing.assert_allclose(model.scores_, same.scores_, atol=1e-12)
    assert not np.allclose(fit(pairs, unobserved_weight=0.5).scores_, model.scores_)
    with pytest.raises(DataError, match="expected pairs with 0"):
        fit(pairs, unobserved_weight=0)


def test_weights_of_zero_hide_a_pair() -> None:
    weights = np.ones(48)
    weights[2] = 0
    full = as_pairs(WIDE)
    weighted = Interactions(full.user_index, full.item_index, full.ratings, DRUGS, TARGETS, weights=weights)
    np.testing.assert_allclose(fit(weighted).scores_, fit(wide((0, 2))).scores_)


def test_a_zero_in_the_midst_of_interactions_is_the_first_new_one() -> None:
    values = GROUPS.copy()
    values[1, 2] = 0  # recorded as unknown
    model = fit(values)
    assert model.new_interactions(1)[["drug", "target", "recorded_zero"]].to_numpy().tolist() == [[1, 2, True]]
    assert model.open_scores_[1, 2] > model.scores_[1, 2]
    np.testing.assert_array_equal(model.open_scores_[values == 1], model.scores_[values == 1])


def test_similarities_that_mean_nothing_are_not_trusted() -> None:
    order = np.random.default_rng(0).permutation(18)
    values = np.kron(np.eye(3), np.ones((6, 5)))
    groups = np.kron(np.eye(3), np.full((6, 6), 0.8)) + 0.2 * np.eye(18)
    useless = fit(values, groups[np.ix_(order, order)], similarity_weight="auto")
    assert useless.similarity_weight_ < 0.5
    assert fit(values, groups, similarity_weight=0.3).similarity_weight_ == 0.3


# -------------------------------------------------------------------- forms of data


def long_of(table: pd.DataFrame) -> pd.DataFrame:
    return table.stack().rename_axis(["Drug", "TARGET"]).rename("interaction").reset_index()


def test_wide_and_long_tables_make_the_same_model_with_names() -> None:
    one, other = fit(WIDE), fit(long_of(WIDE).sample(frac=1, random_state=0).assign(source="paper"))
    np.testing.assert_allclose(one.scores_, other.scores_, atol=1e-12)
    assert one.drugs_.ids.tolist() == other.drugs_.ids.tolist() == DRUGS


def test_layouts_and_types_change_nothing() -> None:
    expected = fit(recorded(), *SIDES).scores_
    frozen = [np.asfortranarray(np.repeat(np.repeat(each, 2, 0), 2, 1))[::2, ::2] for each in (recorded(), *SIDES)]
    for each in frozen:
        each.setflags(write=False)
    rows, columns = np.nonzero(~np.isnan(recorded()))
    matrix = sp.csr_array((recorded()[rows, columns].astype(bool), (rows, columns)), shape=recorded().shape)
    table = pd.DataFrame({"user": rows, "item": columns, "rating": recorded()[rows, columns] > 0})
    typed = table.astype({"user": "Int64", "item": "int64[pyarrow]", "rating": "boolean"})
    for given in (frozen, (matrix, *SIDES), (typed, *SIDES)):
        np.testing.assert_array_equal(fit(*given).scores_, expected)


def test_drugs_and_targets_permute_with_their_scores_and_graphs() -> None:
    rng = np.random.default_rng(2)
    drugs, targets = rng.permutation(9), rng.permutation(7)
    ids = [f"d{k}" for k in range(9)], [f"t{k}" for k in range(7)]
    table = pd.DataFrame(recorded(), *ids)
    sides = tuple(pd.DataFrame(side, own, own) for side, own in zip(SIDES, ids, strict=True))
    plain = fit(table, *sides)
    others = sides[0].iloc[drugs, drugs], sides[1].iloc[targets, targets]
    moved = fit(table.iloc[drugs, targets], *others)
    assert moved.regression_weight_ == plain.regression_weight_  # chosen on the same pairs
    np.testing.assert_allclose(moved.scores_, plain.scores_[np.ix_(drugs, targets)], atol=1e-10)
    graph = plain.drug_graph_.to_scipy().toarray()[np.ix_(drugs, drugs)]
    np.testing.assert_allclose(moved.drug_graph_.to_scipy().toarray(), graph, atol=1e-10)
    np.testing.assert_array_equal(fit(table, others[0], sides[1]).scores_, plain.scores_)  # it goes by the ids


def test_eight_threads_get_the_open_scores_of_one() -> None:
    model, together = fit(recorded(), *SIDES), threading.Barrier(8)
    expected = fit(recorded(), *SIDES).new_interactions(20)

    def ask(_: int) -> pd.DataFrame:
        together.wait()
        return model.new_interactions(20)

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(ask, range(8)):
            pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1)])
def test_one_drug_or_one_target(shape: tuple[int, int]) -> None:
    values = np.zeros(shape)
    values[0, 0] = 1
    model = fit(values)
    assert np.isfinite(model.scores_).all()
    assert len(model.new_interactions(9)) == values.size - 1


def test_drugs_and_targets_without_a_record_have_finite_scores_and_are_told() -> None:
    values = recorded()
    values[4], values[:, 2] = np.nan, np.nan
    with pytest.warns(DataWarning, match=r"1 drug.s. have no recorded pair, \[4\].* and no sim") as caught:
        without = fit(Interactions.from_dense(values))
    assert caught[0].filename == __file__
    for model in (without, fit(Interactions.from_dense(values), *SIDES)):  # which has no warning
        assert np.isfinite(model.scores_).all()
        assert np.isfinite(model.open_scores_).all()


def test_a_little_asymmetry_is_told_once_and_evened() -> None:
    with pytest.warns(DataWarning, match="a little off symmetry, 0.65 from 'drug 1'") as caught:
        uneven = fit(WIDE, changed("drug 1", "drug 2", 0.65))
    assert (len(caught), caught[0].filename) == (1, __file__)
    even = changed("drug 1", "drug 2", 0.675)
    even.loc["drug 2", "drug 1"] = 0.675
    np.testing.assert_allclose(uneven.scores_, fit(WIDE, even).scores_, atol=1e-12)


# -------------------------------------------------------------------- what is refused


def changed(row: str, column: str, value: float) -> pd.DataFrame:
    table = SIMILARITY.copy()
    table.loc[row, column] = value
    return table


@pytest.mark.parametrize(
    ("table", "given", "message"),
    [
        (WIDE.reset_index(names="compound"), None, "the target 'compound': of affinities take a threshold"),
        (
            WIDE.astype(object).replace({"t1": {0.0: "n.d."}}),
            None,
            "found 'n.d.' for the drug 'drug 4' and the target 't1'",
        ),
        (pd.concat([WIDE, WIDE.iloc[:1]]), None, "each drug once, found 1 of them again: ['drug 0']"),
        (pd.concat([WIDE, WIDE.iloc[:, :1]], axis=1), None, "each target once"),
        (WIDE.iloc[:0], None, "a table of shape (0, 6)"),
        (long_of(WIDE).rename(columns={"interaction": "pKd"}), None, "found ['pKd']: rename it, or drop it"),
        (long_of(WIDE).assign(label=1), None, "one column of values"),
        (
            pd.concat([long_of(WIDE), long_of(1 - WIDE)[:1]]),
            None,
            "1 pairs with several, the first of 'drug 0' and 't0'",
        ),
        (long_of(WIDE).replace({"interaction": {0: -1}}), None, "found -1"),
        (
            long_of(WIDE).set_axis(["drug", "disease", "y"], axis=1),
            None,
            "fit(..., target='disease') (in the shell --target-column) says which has the targets",
        ),
        (WIDE.set_axis(range(8)).reset_index(names="cid"), None, "found 2 for the drug 2 and the target 'cid'"),
        (WIDE.T, SIMILARITY, "such as 't0', but its index has such as 'drug 0'; are the rows of the pairs targets?"),
        (WIDE.T, SIMILARITY.to_numpy(), "but its shape is (8, 8); are the rows of the pairs targets?"),
        (WIDE, SIMILARITY.reset_index(), "such as 'drug 0', but its index has such as 0"),
        (WIDE * 7.2, None, "1 for pairs that interact and 0 for others, found 7.2"),
        (WIDE * 0, None, "at least one pair that interacts"),
        (WIDE, np.eye(7), "of shape"),
        (WIDE, 2 * np.eye(8), "in [0, 1]"),
        (WIDE, SIMILARITY.iloc[:7, :7], "the 8 ids"),
        (WIDE, 1 - SIMILARITY, "found 0 everywhere, as distances have it"),
        (WIDE, 100 * SIMILARITY, "on a scale of 0..100, divide by 100"),
        (WIDE, SIMILARITY - 0.5, "in [0, 1], found -0.5"),
        (WIDE, changed("drug 1", "drug 2", 0.2), "a symmetric drug_similarity"),
        (WIDE, changed("drug 1", "drug 1", 0.2), "largest between an id and itself, found 0.2 for 'drug 1'"),
        (WIDE, SIMILARITY.rename(index={"drug 1": "Drug-1"}), "'drug 1' (the nearest is 'Drug-1')"),
        (WIDE, pd.concat([SIMILARITY, SIMILARITY.iloc[:1]]), "each id once in its rows"),
        (WIDE, changed("drug 1", "drug 2", np.nan), "in [0, 1], found nan"),
    ],
)
def test_data_that_make_no_sense_are_refused(table: pd.DataFrame, given: Any, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        fit(table, given)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.concat([long_of(WIDE)] * 2), "48 rows repeat a pair and its value: each counts once"),
        (long_of(WIDE)[["Drug", "TARGET"]].assign(Ki=">10"), "all of which interact, but does not read ['Ki']"),
        (long_of(WIDE).assign(Drug_ID="x"), "reads pairs of 'Drug' and 'TARGET', but does not read ['Drug_ID']"),
        (WIDE.rename(columns={"t1": "t0|t2"}), "ids such as 't0|t2' hold several, but count as one each"),
        (WIDE.rename(index={"drug 1": "drug x "}), "ids such as 'drug x ' begin or end with a blank, which counts"),
        (WIDE.set_axis([f"hsa:{k}" for k in range(8)]), "the rows look like targets, such as 'hsa:0'"),
        (WIDE.set_axis([f"P2921{k}-2" for k in range(8)]), "pass table.T (in the shell --transpose)"),
        (WIDE.set_axis([f"MKVLAAGIVGLLRSTPWWQ{k}" for k in "ACDEFGHI"]), "such as 'MKVLAAGIVGLLRSTPWWQA'"),
        (WIDE.rename_axis("Protein"), "the rows look like targets, such as 'drug 0'"),
        (WIDE.rename(columns={"t1": pd.Timestamp(0)}), "save will refuse the model"),
    ],
)
def test_what_may_be_meant_otherwise_is_told(table: pd.DataFrame, message: str) -> None:
    with pytest.warns(DataWarning, match=re.escape(message)) as caught:
        fit(table)
    assert (len(caught), caught[0].filename) == (1, __file__)


def test_similarities_without_names_beside_a_long_table_are_told() -> None:
    with pytest.warns(DataWarning, match=r"has no names: taken in the order of sorted names, \['drug 0'") as caught:
        fit(long_of(WIDE), SIMILARITY.to_numpy())
    assert caught[0].filename == __file__
    fit(WIDE, SIMILARITY.to_numpy())


def test_names_as_written_go_first_and_rounding_is_not_a_scale() -> None:
    named = long_of(WIDE).rename(columns={"Drug": "drug", "TARGET": "target"}).assign(Drug="CCO")
    with pytest.warns(DataWarning, match=r"does not read \['Drug'\]"):
        assert as_pairs(named).user_ids.tolist() == DRUGS
    rounded = SIMILARITY + 1e-16 * np.eye(8) * 3 - 1e-17
    np.testing.assert_allclose(fit(WIDE, rounded).similarities_[0], SIMILARITY, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "value"), [("similarity_weight", 1.2), ("noise", 0), ("n_rounds", 0), ("unobserved_weight", -1)]
)
def test_parameters_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be"):
        fit(WIDE, **{name: value})


def test_unknown_ids_are_refused_with_the_nearest_and_questions_before_fit() -> None:
    with pytest.raises(NotFittedError):
        DrugTargetAIR().predict("drug 0", "t0")
    with pytest.raises(UnknownIdError, match="'drug1' \\(the nearest is 'drug 1'\\)"):
        fit(WIDE).predict("drug1", "t1")


@pytest.mark.data
def test_nuclear_receptors_are_predicted_better_with_similarities(data_root: Path) -> None:
    found = load_yamanishi(data_root, "nr")
    precisions = {False: [], True: []}
    for split in interaction_folds(found.interactions, "cvs1", 10, 7771):
        hidden = found.interactions.select(split.test)
        for similar, figures in precisions.items():
            given = (found.drug_similarity, found.target_similarity) if similar else ()
            scores = fit(found.interactions.select(split.train), *given).scores_
            figures.append(average_precision(hidden.ratings, scores[hidden.user_index, hidden.item_index]))
    assert np.mean(precisions[True]) > np.mean(precisions[False]) + 0.05 > 0.55


# -------------------------------------------------------------------- the questions of all models


def test_drugs_are_users_and_targets_items():
    values = pd.DataFrame(
        np.kron(np.eye(3), np.ones((4, 3))), [f"d{n}" for n in range(12)], [f"t{n}" for n in range(9)]
    )
    values.iloc[0, 0], values.iloc[5, 4] = np.nan, 0
    model = DrugTargetAIR().fit(values)
    lists = model.recommend(["d0", "d5"], 2)
    assert lists.groupby("drug")["target"].first().to_dict() == {"d0": "t0", "d5": "t4"}
    assert lists.columns.tolist() == ["drug", "target", "score", "rank", "source"]
    first = model.new_interactions(1, drug_ids="d0")
    assert first["target"].tolist() == lists["target"].head(1).tolist()
    assert first["score"].item() == lists["score"].iloc[0]
    known = values.columns[values.loc["d5"] == 1].tolist()
    assert set(known) < set(model.recommend("d5", 9, exclude_seen=False)["target"])
    assert not set(known) & set(model.recommend("d5", 9)["target"])
    own = model.recommend(["d0", "d5"], items={"d0": ["t8", "t7"], "d5": ["t0"]}, exclude="t8")
    assert own[["drug", "target"]].to_numpy().tolist() == [["d0", "t7"], ["d5", "t0"]]
    assert model.recommend("d0", exclude=list(values.columns)).empty
    assert model.similar_items("t0", 2)["target"].tolist() == model.item_graph_.neighbors("t0", 2)["target"].tolist()
    assert set(model.similar_users("d0", 3)["drug"]) == {"d1", "d2", "d3"}
    table = model.predict_table(["d0", "d1"], "t0")
    assert table["score"].tolist() == model.predict(["d0", "d1"], "t0").tolist()
    assert table["target"].tolist() == ["t0", "t0"]
    assert model.score(values) == 1.0
    with pytest.raises(UnknownIdError, match="d99"):
        model.recommend("d99")
    with pytest.raises(UnknownIdError, match="t99"):
        model.recommend("d0", items=["t99"])
