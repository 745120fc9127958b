"""Snapshots in model files: what `snapshots_` holds comes back, and what is no snapshot is refused."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
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
        assert [same(mine, other) for mine, other in zip(one.transform_graphs, others, strict=True)] == [True] * len(
            others
        )


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("mapped", [False, True])
def test_a_file_holds_the_snapshots(make, mapped, tmp_path):
    model = make().fit(frame())
    path = model.save(tmp_path / "model.air")
    again = AIR.load(path, mapped=mapped)
    assert sorted(again.snapshots_) == [0, 2, 6]
    assert_same_snapshots(again, model)
    assert again.save(tmp_path / "again.air").read_bytes() == path.read_bytes()


def test_a_resumed_training_has_them_in_its_file(tmp_path):
    whole = MAKERS["default"]().fit(frame())
    short = AIR.for_ratings(**POSTERIOR).fit(
        frame(), checkpoint=tmp_path / "course", every=1, callbacks=[lambda record: record.epoch == 3]
    )
    assert sorted(short.snapshots_) == [0, 2]
    resumed = AIR.for_ratings(**POSTERIOR).fit(frame(), resume_from=tmp_path / "course")
    assert_same_snapshots(AIR.load(resumed.save(tmp_path / "model.air")), whole)


def test_without_snapshots_a_file_says_nothing_of_them(tmp_path):
    plain = AIR.for_ratings(**POSTERIOR | {"snapshot_epochs": []}).fit(frame())
    metadata, arrays = parts_of(plain.save(tmp_path / "model.air"))
    assert "snapshots" not in json.loads(metadata["attributes"])
    assert not [name for name in arrays if name.startswith("snapshot")]
    assert AIR.load(tmp_path / "model.air").snapshots_ == {}


def test_an_edge_takes_24_bytes(tmp_path):
    sizes = {}
    for epochs in ([], [2]):
        model = AIR.for_ratings(**POSTERIOR | {"snapshot_epochs": epochs}).fit(frame())
        path = model.save(tmp_path / "model.air")
        sizes[len(epochs)] = sum(array.nbytes for array in parts_of(path)[1].values())
    shot = model.snapshots_[2]
    graphs = [graph for graph in (shot.user_graph, shot.item_graph) if graph is not None]
    rows = sum(4 * (len(graph) + 1) for graph in graphs)
    assert sizes[1] - sizes[0] == 24 * sum(graph.n_edges for graph in graphs) + rows


def test_those_who_come_later_are_not_in_the_snapshots_of_a_file(tmp_path):
    model = MAKERS["default"]().fit(frame())
    before = dict(model.snapshots_)
    item = model.interactions_.item_ids[0]
    model.partial_fit(pd.DataFrame({"user": ["new one"], "item": [item], "rating": [3.0]}))
    again = AIR.load(model.save(tmp_path / "model.air"))
    assert_same_snapshots(again, model)
    assert len(again.interactions_.user_ids) == len(again.snapshots_[2].user_graph or []) + 1
    assert same(again.snapshots_[2].user_graph, before[2].user_graph)
    explorer_of(again, tmp_path / "page.html")  # where the new one stands alone


def test_a_model_of_new_users_has_no_snapshots_of_others(tmp_path):
    model = MAKERS["default"]().fit(frame())
    item = model.interactions_.item_ids[0]
    alone = model.new_users(pd.DataFrame({"user": ["new one"], "item": [item], "rating": [3.0]}))
    assert alone.snapshots_ == {}
    assert AIR.load(alone.save(tmp_path / "model.air")).interactions_.user_ids.tolist() == ["new one"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("many", "expected a list of snapshots, found str"),
        ([7], "expected snapshots with epoch, items, others, users, found 7"),
        ([{"epoch": 0}], "expected snapshots with epoch, items, others, users"),
        (
            [{"epoch": -1, "users": None, "items": None, "others": []}],
            "expected whole numbers in a snapshot, found -1",
        ),
        ([{"epoch": 0, "users": 10**9, "items": None, "others": []}], "expected a snapshot of at most"),
        ([{"epoch": 0, "users": None, "items": None, "others": [10**15]}], "snapshot_0_0_indptr"),
        ([{"epoch": 9, "users": 3, "items": None, "others": []}], "in the snapshot of epoch 9, found none"),
    ],
)
def test_what_is_no_snapshot_is_refused(entry, message, tmp_path):
    path = MAKERS["default"]().fit(frame()).save(tmp_path / "model.air")
    attributes = json.loads(parts_of(path)[0]["attributes"])
    rewrite(path, {"attributes": json.dumps(attributes | {"snapshots": entry})})
    with pytest.raises(ModelFileError, match=message):
        AIR.load(path)


def test_places_outside_of_a_graph_are_refused(tmp_path):
    path = MAKERS["default"]().fit(frame()).save(tmp_path / "model.air")
    rewrite(path, arrays={"snapshot_2_user_indices": parts_of(path)[1]["snapshot_2_user_indices"] + 1000})
    with pytest.raises(ModelFileError, match="other places of its values"):
        AIR.load(path)
