"""`DrugTargetAIR` in a file: nothing is lost, another process predicts the same, and other files are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dti_cases import DRUGS, GROUPS, SIMILARITY, TARGETS, WIDE, wide
from sealing import rewrite

import air_recsys
from air_recsys.data.interactions import Interactions
from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import DataError, DataWarning, ModelFileError, NotFittedError
from air_recsys.models import GlobalMean, Recommender
from air_recsys.models.drug_target.answers import Answers


def fitted(with_similarity: bool = True, **parameters: Any) -> DrugTargetAIR:
    """A model of two groups, a pair and a drug without data."""
    table = wide((1, 2), 0) if with_similarity else wide((1, 2))
    return DrugTargetAIR(**parameters).fit(table, SIMILARITY if with_similarity else None)


def weighted() -> DrugTargetAIR:
    """A model with weights of pairs, and other ids."""
    users, items = np.nonzero(GROUPS >= 0)
    weights = np.linspace(0.1, 1, users.size)
    data = Interactions(users, items, GROUPS.ravel(), range(10, 18), ["ä b", *"語xyzw"], weights=weights)
    return DrugTargetAIR().fit(data)


def assert_same_answers(first: DrugTargetAIR, second: DrugTargetAIR) -> None:
    for name in ("scores_", "open_scores_"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    pd.testing.assert_frame_equal(first.new_interactions(100), second.new_interactions(100))
    for name in ("drug_graph_", "target_graph_"):
        one, other = getattr(first, name), getattr(second, name)
        np.testing.assert_array_equal(one.to_scipy().toarray(), other.to_scipy().toarray())
        assert (one.kind, one.ids.tolist()) == (other.kind, other.ids.tolist())
    assert first.similarity_weight_ == second.similarity_weight_
    assert first.unobserved_weight_ == second.unobserved_weight_
    assert first.get_params() == second.get_params()
    assert first.interactions_.weights is second.interactions_.weights is None or np.array_equal(
        first.interactions_.weights, second.interactions_.weights
    )
    pd.testing.assert_frame_equal(first.interactions_.to_frame(), second.interactions_.to_frame())


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return fitted().save(tmp_path / "model.air")


@pytest.mark.parametrize(
    "make",
    [
        fitted,
        lambda: fitted(False),
        lambda: fitted(similarity_weight="auto", noise=np.float64(0.7)),
        lambda: fitted(False, unobserved_weight=0.5, n_rounds=np.int64(2)),
        weighted,
    ],
)
def test_saving_and_loading_changes_nothing(make: Any, tmp_path: Path) -> None:
    model = make()
    again = DrugTargetAIR.load(model.save(str(tmp_path / "model.air")))
    assert_same_answers(again, model)
    assert_same_answers(DrugTargetAIR.load(again.save(tmp_path / "again.air")), model)
    again.fit(WIDE)
    np.testing.assert_array_equal(again.scores_, DrugTargetAIR(**model.get_params()).fit(WIDE).scores_)


def test_open_scores_that_were_made_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted()
    expected = model.new_interactions(5)
    again = DrugTargetAIR.load(model.save(tmp_path / "model.air"))
    monkeypatch.setattr(Answers, "whole", lambda *args: pytest.fail("completed again"))
    pd.testing.assert_frame_equal(again.new_interactions(5), expected)


def test_what_cannot_be_saved_is_told_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        DrugTargetAIR().save(tmp_path / "model.air")
    named = Interactions.from_dense(GROUPS, [("D", k) for k in range(8)], TARGETS)
    with pytest.warns(DataWarning, match="save will refuse the model"):
        model = DrugTargetAIR().fit(named)
    with pytest.raises(DataError, match="all integers or all strings"):
        model.save(tmp_path / "model.air")
    with pytest.raises(ModelFileError, match="there is no folder"):
        fitted().save(tmp_path / "none" / "model.air")
    assert list(tmp_path.iterdir()) == []


def test_files_of_other_models_are_refused_either_way(saved: Path, tmp_path: Path) -> None:
    other = GlobalMean().fit(GROUPS).save(tmp_path / "mean.air")
    with pytest.raises(ModelFileError, match="holds a model of class GlobalMean, expected DrugTargetAIR"):
        DrugTargetAIR.load(other)
    with pytest.raises(ModelFileError, match="holds a model of class DrugTargetAIR, expected Recommender"):
        Recommender.load(saved)
    assert type(air_recsys.load(saved)) is DrugTargetAIR
    assert type(air_recsys.load(other)) is GlobalMean


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("scores_", None),
        ("target_graph_data", None),
        ("scores_", np.zeros((len(TARGETS), len(DRUGS)))),
        ("scores_", np.zeros((8, 6), np.float16)),
        ("open_scores_", np.zeros(48)),
        ("held_out_scores", np.zeros((2, 2))),
        ("drug_similarity", np.eye(7)),
        ("target_similarity", 2 * np.eye(6)),
        ("ratings", np.full(41, 3.0)),
        ("drug_graph_indices", np.full(4, 77, np.int32)),
        ("target_graph_indptr", np.zeros(3, np.int32)),
        ("parameters", '{"n_rounds": -1}'),
        ("attributes", '{"similarity_weight_": 2, "noise": 1}'),
        ("attributes", '{"similarity_weight_": 0.5, "noise": 0}'),
    ],
)
def test_inconsistent_parts_are_refused(name: str, content: Any, saved: Path) -> None:
    if content is None:
        rewrite(saved, drop=(name,))
    else:
        rewrite(saved, *({name: content}, None) if isinstance(content, str) else (None, {name: content}))
    with pytest.raises(ModelFileError, match=re.escape(str(saved))):
        DrugTargetAIR.load(saved)
