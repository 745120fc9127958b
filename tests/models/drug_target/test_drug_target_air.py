"""The contract of `DrugTargetAIR`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_yamanishi
from air_recsys.dti import DrugTargetAIR, interaction_folds
from air_recsys.exceptions import DataError, NotFittedError, ParameterError, UnknownIdError
from air_recsys.metrics import average_precision

DRUGS, TARGETS = [f"D{k}" for k in range(8)], [f"hsa{k}" for k in range(6)]
GROUPS = np.kron(np.eye(2), np.ones((4, 3)))
SIMILARITY = pd.DataFrame(np.kron(np.eye(2), np.full((4, 4), 0.7)) + 0.3 * np.eye(8), DRUGS, DRUGS)


def data(*hidden: tuple[int, int] | int) -> Interactions:
    values = GROUPS.copy()
    for place in hidden:
        values[place] = np.nan
    return Interactions.from_dense(values, DRUGS, TARGETS)


def test_a_hidden_interaction_of_a_group_is_the_first_new_one() -> None:
    table = DrugTargetAIR().fit(data((1, 2), (6, 0))).new_interactions(2)
    assert table.loc[0, ["drug", "target", "known"]].tolist() == ["D1", "hsa2", False]
    assert table["score"].tolist() == sorted(table["score"], reverse=True)
    assert table["rank"].tolist() == [1, 2]


def test_known_interactions_are_never_new() -> None:
    model = DrugTargetAIR().fit(data())
    table = model.new_interactions(100)
    assert len(table) == 24
    assert table["recorded_zero"].all()
    assert not table["known"].any()
    both = model.new_interactions(100, include_known=True)
    assert (len(both), both["known"].sum()) == (48, 24)


@pytest.mark.order
def test_pairs_whose_scores_tie_come_in_the_order_of_drugs_and_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of the size of rounding does not order pairs that are alike."""
    model = DrugTargetAIR().fit(data((1, 2), (6, 0)))
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


def test_new_interactions_of_one_drug_or_target() -> None:
    model = DrugTargetAIR().fit(data())
    assert set(model.new_interactions(100, drug_ids="D1")["drug"]) == {"D1"}
    assert set(model.new_interactions(100, target_ids=["hsa0"])["target"]) == {"hsa0"}


def test_a_drug_without_data_is_predicted_from_similar_ones() -> None:
    model = DrugTargetAIR().fit(data(0), drug_similarity=SIMILARITY)
    scores = model.predict("D0", TARGETS)
    assert scores[:3].min() > 0.5 > scores[3:].max()
    assert set(model.drug_graph_.neighbors("D0", n=3)["drug"]) == {"D1", "D2", "D3"}


def test_both_sides_without_data() -> None:
    values = GROUPS.copy()
    values[0], values[:, 0] = np.nan, np.nan
    similarity = np.kron(np.eye(2), np.full((3, 3), 0.7)) + 0.3 * np.eye(6)
    model = DrugTargetAIR().fit(Interactions.from_dense(values, DRUGS, TARGETS), SIMILARITY, similarity)
    assert model.predict("D0", "hsa0")[0] > 0.5 > model.predict("D7", "hsa0")[0]


def test_similarities_go_by_their_ids() -> None:
    order = np.random.default_rng(0).permutation(8)
    shuffled = SIMILARITY.iloc[order, order]
    first = DrugTargetAIR().fit(data(0), drug_similarity=SIMILARITY)
    np.testing.assert_array_equal(DrugTargetAIR().fit(data(0), drug_similarity=shuffled).scores_, first.scores_)


def test_forms_of_a_question_agree() -> None:
    model = DrugTargetAIR().fit(data())
    pairs = model.predict(["D0", "D0"], ["hsa1", "hsa4"])
    np.testing.assert_array_equal(pairs, model.predict("D0", ["hsa1", "hsa4"]))
    np.testing.assert_array_equal(pairs, model.scores_[0, [1, 4]])


def test_a_second_fit_forgets_the_first() -> None:
    model = DrugTargetAIR().fit(data((0, 0)))
    again = model.fit(data(0), drug_similarity=SIMILARITY).scores_
    np.testing.assert_array_equal(again, DrugTargetAIR().fit(data(0), drug_similarity=SIMILARITY).scores_)


def test_fit_leaves_parameters_alone_and_they_make_the_same_model() -> None:
    model = DrugTargetAIR(noise=0.7)
    before = model.get_params()
    model.fit(data())
    assert model.get_params() == before
    assert DrugTargetAIR(**before).get_params() == before


def test_pairs_that_are_not_there_can_count_as_zeros() -> None:
    frame = data().to_frame().query("rating == 1")
    positives = Interactions.from_frame(frame)
    as_zeros = DrugTargetAIR(unobserved_weight=1).fit(positives)
    np.testing.assert_allclose(as_zeros.scores_, DrugTargetAIR().fit(data()).scores_)
    between = DrugTargetAIR(unobserved_weight=0.5).fit(positives)
    assert not np.allclose(between.scores_, as_zeros.scores_)


def test_where_only_interactions_are_recorded_all_other_pairs_are_zeros() -> None:
    positives = Interactions.from_frame(data().to_frame().query("rating == 1"))
    model = DrugTargetAIR().fit(positives)
    assert model.unobserved_weight_ == 1
    np.testing.assert_array_equal(model.scores_, DrugTargetAIR(unobserved_weight=1).fit(positives).scores_)
    assert DrugTargetAIR().fit(data()).unobserved_weight_ == 0
    with pytest.raises(DataError, match="expected pairs with 0"):
        DrugTargetAIR(unobserved_weight=0).fit(positives)


def test_weights_of_zero_hide_a_pair() -> None:
    weights = np.ones(48)
    weights[2] = 0
    full = data()
    weighted = Interactions(full.user_index, full.item_index, full.ratings, DRUGS, TARGETS, weights=weights)
    np.testing.assert_allclose(DrugTargetAIR().fit(weighted).scores_, DrugTargetAIR().fit(data((0, 2))).scores_)


def test_a_zero_in_the_midst_of_interactions_is_the_first_new_one() -> None:
    values = GROUPS.copy()
    values[1, 2] = 0  # recorded as unknown
    model = DrugTargetAIR().fit(Interactions.from_dense(values, DRUGS, TARGETS))
    assert model.new_interactions(1)[["drug", "target", "recorded_zero"]].to_numpy().tolist() == [["D1", "hsa2", True]]
    assert model.open_scores_[1, 2] > model.scores_[1, 2]
    np.testing.assert_array_equal(model.open_scores_[values == 1], model.scores_[values == 1])


def test_open_scores_belong_to_the_last_fit() -> None:
    model = DrugTargetAIR().fit(data((0, 0)))
    before = model.open_scores_
    again = model.fit(data(0), drug_similarity=SIMILARITY).open_scores_
    assert not np.allclose(before, again)


def test_similarities_that_mean_nothing_are_not_trusted() -> None:
    rng = np.random.default_rng(0)
    interactions = Interactions.from_dense(np.kron(np.eye(3), np.ones((6, 5))))
    groups = np.kron(np.eye(3), np.full((6, 6), 0.8)) + 0.2 * np.eye(18)
    order = rng.permutation(18)
    useless = DrugTargetAIR("auto").fit(interactions, groups[np.ix_(order, order)])
    assert useless.similarity_weight_ < 0.5
    assert DrugTargetAIR(0.3).fit(interactions, groups).similarity_weight_ == 0.3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"similarity_weight": 1.2}, "similarity_weight must be"),
        ({"noise": 0}, "noise must be"),
        ({"n_rounds": 0}, "n_rounds must be"),
        ({"unobserved_weight": -1}, "unobserved_weight must be"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        DrugTargetAIR(**parameters).fit(data())


@pytest.mark.parametrize(
    ("values", "similarity", "message"),
    [
        (GROUPS * 2, None, "expected 1 for pairs that interact"),
        (GROUPS * 0, None, "at least one pair that interacts"),
        (GROUPS, np.eye(7), "of shape"),
        (GROUPS, np.eye(8) * 2, "in \\[0, 1\\]"),
        (GROUPS, SIMILARITY.iloc[:7, :7], "the 8 ids"),
    ],
)
def test_data_that_make_no_sense_are_refused(values: Any, similarity: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        DrugTargetAIR().fit(Interactions.from_dense(values, DRUGS, TARGETS), drug_similarity=similarity)


def test_unknown_ids_and_questions_before_fit() -> None:
    with pytest.raises(NotFittedError):
        DrugTargetAIR().predict("D0", "hsa0")
    with pytest.raises(UnknownIdError, match="drug id"):
        DrugTargetAIR().fit(data()).predict("D9", "hsa0")


@pytest.mark.data
def test_nuclear_receptors_are_predicted_better_with_similarities(data_root: Path) -> None:
    found = load_yamanishi(data_root, "nr")
    precisions = {False: [], True: []}
    for split in interaction_folds(found.interactions, "cvs1", 10, 7771):
        hidden = found.interactions.select(split.test)
        for similar, figures in precisions.items():
            given = (found.drug_similarity, found.target_similarity) if similar else ()
            model = DrugTargetAIR().fit(found.interactions.select(split.train), *given)
            scores = model.scores_[hidden.user_index, hidden.item_index]
            figures.append(average_precision(hidden.ratings, scores))
    assert np.mean(precisions[True]) > np.mean(precisions[False]) + 0.05 > 0.55
