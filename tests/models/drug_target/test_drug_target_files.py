"""`DrugTargetAIR` in a file: nothing is lost, another process predicts the same, and other files are refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sealing import rewrite

from air_recsys.data.interactions import Interactions
from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import DataError, ModelFileError, NotFittedError
from air_recsys.models import GlobalMean, Recommender
from air_recsys.models.drug_target.answers import Answers

DRUGS, TARGETS = [f"D{k}" for k in range(8)], [f"hsa{k}" for k in range(6)]
GROUPS = np.kron(np.eye(2), np.ones((4, 3)))
SIMILARITY = np.kron(np.eye(2), np.full((4, 4), 0.7)) + 0.3 * np.eye(8)


def fitted(with_similarity: bool = True, drug_ids: Any = DRUGS, **parameters: Any) -> DrugTargetAIR:
    """A model of two groups, a pair and a drug without data."""
    values = GROUPS.copy()
    values[1, 2] = np.nan
    if with_similarity:
        values[0] = np.nan
    interactions = Interactions.from_dense(values, drug_ids, TARGETS)
    return DrugTargetAIR(**parameters).fit(interactions, SIMILARITY if with_similarity else None)


def assert_same_answers(first: DrugTargetAIR, second: DrugTargetAIR) -> None:
    for name in ("scores_", "open_scores_"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    pd.testing.assert_frame_equal(first.new_interactions(100), second.new_interactions(100))
    for name in ("drug_graph_", "target_graph_"):
        one, other = getattr(first, name), getattr(second, name)
        np.testing.assert_array_equal(one.to_scipy().toarray(), other.to_scipy().toarray())
        assert (one.kind, one.ids.tolist()) == (other.kind, other.ids.tolist())
    assert first.similarity_weight_ == second.similarity_weight_
    assert first.get_params() == second.get_params()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return fitted().save(tmp_path / "model.air")


@pytest.mark.parametrize(
    ("with_similarity", "parameters"),
    [
        (True, {}),
        (False, {}),
        (True, {"similarity_weight": "auto", "noise": np.float64(0.7)}),
        (False, {"unobserved_weight": 0.5, "n_rounds": np.int64(2)}),
    ],
)
def test_saving_and_loading_changes_nothing(with_similarity, parameters, tmp_path) -> None:
    model = fitted(with_similarity, **parameters)
    again = DrugTargetAIR.load(model.save(str(tmp_path / "model.air")))
    assert_same_answers(again, model)
    pd.testing.assert_frame_equal(again.interactions_.to_frame(), model.interactions_.to_frame())
    assert_same_answers(DrugTargetAIR.load(again.save(tmp_path / "again.air")), model)


def test_open_scores_that_were_made_are_not_made_again(tmp_path, monkeypatch) -> None:
    model = fitted()
    expected = model.new_interactions(5)
    again = DrugTargetAIR.load(model.save(tmp_path / "model.air"))
    monkeypatch.setattr(Answers, "whole", lambda *args: pytest.fail("completed again"))
    pd.testing.assert_frame_equal(again.new_interactions(5), expected)


def test_a_loaded_model_can_be_fitted_again(saved) -> None:
    again = DrugTargetAIR.load(saved).fit(Interactions.from_dense(GROUPS, DRUGS, TARGETS))
    np.testing.assert_array_equal(again.scores_, DrugTargetAIR().fit(GROUPS).scores_)


def test_weights_of_pairs_and_other_ids_come_back(tmp_path) -> None:
    users, items = np.nonzero(GROUPS >= 0)
    weights = np.linspace(0.1, 1, users.size)
    data = Interactions(users, items, GROUPS.ravel(), range(10, 18), ["ä b", *"語xyzw"], weights=weights)
    model = DrugTargetAIR().fit(data)
    again = DrugTargetAIR.load(model.save(tmp_path / "model.air"))
    assert_same_answers(again, model)
    assert again.predict(17, "ä b") == model.predict(17, "ä b")
    assert again.interactions_.weights is not None
    np.testing.assert_array_equal(again.interactions_.weights, weights)


PROGRAM = """
import sys, numpy as np
from air_recsys.dti import DrugTargetAIR
from air_recsys.models.drug_target.answers import Answers
model = DrugTargetAIR.load(sys.argv[1])
np.save(sys.argv[2], model.predict(np.repeat(model.drugs_.ids, 6), np.tile(model.targets_.ids, 8)))
"""


def test_another_process_predicts_the_same(saved, tmp_path) -> None:
    scores = tmp_path / "scores.npy"
    subprocess.run([sys.executable, "-c", PROGRAM, str(saved), str(scores)], check=True)
    np.testing.assert_array_equal(np.load(scores).reshape(8, 6), fitted().scores_)


def test_what_cannot_be_saved_is_told_and_leaves_no_file(tmp_path) -> None:
    with pytest.raises(NotFittedError):
        DrugTargetAIR().save(tmp_path / "model.air")
    with pytest.raises(DataError, match="all integers or all strings"):
        fitted(drug_ids=[("D", k) for k in range(8)]).save(tmp_path / "model.air")
    with pytest.raises(ModelFileError, match="there is no folder"):
        fitted().save(tmp_path / "none" / "model.air")
    assert list(tmp_path.iterdir()) == []


def test_files_of_other_models_are_refused_either_way(saved, tmp_path) -> None:
    other = GlobalMean().fit(GROUPS).save(tmp_path / "mean.air")
    with pytest.raises(ModelFileError, match="holds a model of class GlobalMean, expected DrugTargetAIR"):
        DrugTargetAIR.load(other)
    with pytest.raises(ModelFileError, match="holds a model of class DrugTargetAIR, expected Recommender"):
        Recommender.load(saved)


def test_a_file_cut_off_anywhere_is_named(saved) -> None:
    whole = saved.read_bytes()
    for length in (0, 7, 8, 100, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=re.escape(f"{saved} is not a whole air_recsys model file")):
            DrugTargetAIR.load(saved)


@pytest.mark.parametrize(
    "name", ["scores_", "target_graph_data", "user_ids_text", "ratings", "parameters", "attributes"]
)
def test_missing_parts(name, saved) -> None:
    rewrite(saved, drop=(name,))
    with pytest.raises(ModelFileError, match=f"is not a whole air_recsys model file: '{name.removesuffix('data')}"):
        DrugTargetAIR.load(saved)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("scores_", np.zeros((6, 8))),
        ("scores_", np.zeros((8, 6), np.float32)),
        ("scores_", np.full((8, 6), np.nan)),
        ("open_scores_", np.zeros(48)),
        ("drug_similarity", np.eye(7)),
        ("drug_similarity", np.full((8, 8), np.nan)),
        ("target_similarity", 2 * np.eye(6)),
        ("ratings", np.full(41, 3.0)),
        ("drug_graph_indices", np.full(4, 77, np.int32)),
        ("target_graph_indptr", np.zeros(3, np.int32)),
    ],
)
def test_inconsistent_parts(name, array, saved) -> None:
    rewrite(saved, arrays={name: array})
    with pytest.raises(ModelFileError, match=re.escape(str(saved))):
        DrugTargetAIR.load(saved)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("parameters", "[1]"),
        ("parameters", '{"no_such_parameter": 1}'),
        ("parameters", '{"n_rounds": -1}'),
        ("attributes", "{}"),
        ("attributes", '{"similarity_weight_": 2, "noise": 1}'),
        ("attributes", '{"similarity_weight_": 0.5, "noise": 0}'),
        ("attributes", '{"similarity_weight_": "auto", "noise": NaN}'),
        ("format_version", "4"),
    ],
)
def test_broken_metadata(name, text, saved) -> None:
    rewrite(saved, {name: text})
    with pytest.raises(ModelFileError, match=re.escape(str(saved))):
        DrugTargetAIR.load(saved)
