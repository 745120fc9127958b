"""Snapshots in model files: what `snapshots_` holds comes back, and what is no snapshot is refused."""

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from covering import covering
from model_cases import CPU, by_paper, frame
from sealing import parts_of, rewrite

from air_recsys import AIR, SimilarityGraph
from air_recsys.exceptions import ModelFileError
from air_recsys.models import Recommender
from air_recsys.report import explorer_of

POSTERIOR: dict[str, Any] = {"n_factors": 3, "graph_neighbors": 3, "n_sweeps": 6, "snapshot_epochs": [0, 2, 6], **CPU}
DESCENT: dict[str, Any] = {"n_epochs": 20, "init_std": 0.1, "snapshot_epochs": [0, 2, 6], **CPU}
MAKERS = {
    "default": lambda: AIR.for_ratings(**POSTERIOR),
    "langevin": lambda: AIR.for_ratings(solver="langevin", **POSTERIOR),
    "dense": lambda: by_paper(**DESCENT),
    "one side": lambda: by_paper(user_graph_reg=0.0, **DESCENT),
    "transforms": lambda: by_paper(transforms=[("blocks:3", 1e-3)], **DESCENT),
}


@cache
def fitted(name: str) -> Any:
    """A model that is not to be changed."""
    return MAKERS[name]().fit(frame())


def same(one: SimilarityGraph | None, other: SimilarityGraph | None) -> bool:
    if one is None or other is None:
        return one is other
    alike = one.kind == other.kind and one.ids.tolist() == other.ids.tolist()
    return alike and np.array_equal(one.to_scipy().toarray(), other.to_scipy().toarray())


def assert_same_snapshots(found: Recommender, expected: Recommender) -> None:
    assert isinstance(found, AIR)
    assert isinstance(expected, AIR)
    assert list(found.snapshots_) == list(expected.snapshots_)
    for epoch, (users, items, others) in expected.snapshots_.items():
        one = found.snapshots_[epoch]
        assert same(one.user_graph, users)
        assert same(one.item_graph, items)
        assert all(same(mine, other) for mine, other in zip(one.transform_graphs, others, strict=True))


@pytest.mark.parametrize(("name", "mapped"), covering(MAKERS, [False, True]))
def test_a_file_holds_the_snapshots(name, mapped, tmp_path):
    model = fitted(name)
    path = model.save(tmp_path / "model.air")
    again = AIR.load(path, mapped=mapped)
    assert sorted(again.snapshots_) == [0, 2, 6]
    assert_same_snapshots(again, model)
    assert again.save(tmp_path / "again.air").read_bytes() == path.read_bytes()


def test_a_resumed_training_has_them_in_its_file(tmp_path):
    short = AIR.for_ratings(**POSTERIOR).fit(
        frame(), checkpoint=tmp_path / "course", every=1, callbacks=[lambda record: record.epoch == 3]
    )
    assert sorted(short.snapshots_) == [0, 2]
    resumed = AIR.for_ratings(**POSTERIOR).fit(frame(), resume_from=tmp_path / "course")
    assert_same_snapshots(AIR.load(resumed.save(tmp_path / "model.air")), fitted("default"))


def test_those_who_come_later_are_not_in_the_snapshots_of_a_file(tmp_path):
    model = AIR.load(fitted("default").save(tmp_path / "model.air"))
    new = pd.DataFrame({"user": ["new one"], "item": model.interactions_.item_ids[:1], "rating": [3.0]})
    assert model.fold_in(new).snapshots_ == {}
    model.partial_fit(new)
    again = AIR.load(model.save(tmp_path / "model.air"))
    assert_same_snapshots(again, fitted("default"))
    assert len(again.interactions_.user_ids) == len(again.snapshots_[2].user_graph or []) + 1
    explorer_of(again, tmp_path / "page.html")  # where the new one stands alone


NONE: dict[str, Any] = {"epoch": 0, "users": None, "items": None, "others": []}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("many", "expected a list of snapshots, found str"),
        ([7], "expected snapshots with epoch, items, others, users, found 7"),
        ([{"epoch": 0}], "expected snapshots with epoch, items, others, users"),
        ([NONE | {"epoch": -1}], "expected whole numbers in a snapshot, found -1"),
        ([NONE | {"users": 10**9}], "expected a snapshot of at most"),
        ([NONE | {"others": [10**15]}], "snapshot_0_0_indptr"),
        ([NONE | {"epoch": 9, "users": 3}], "in the snapshot of epoch 9, found none"),
        (None, "other places of its values"),
    ],
)
def test_what_is_no_snapshot_is_refused(entry, message, tmp_path):
    path = fitted("default").save(tmp_path / "model.air")
    texts, arrays = parts_of(path)
    if entry is None:
        rewrite(path, arrays={"snapshot_2_user_indices": arrays["snapshot_2_user_indices"] + 1000})
    else:
        rewrite(path, {"attributes": json.dumps(json.loads(texts["attributes"]) | {"snapshots": entry})})
    with pytest.raises(ModelFileError, match=message):
        AIR.load(path)
