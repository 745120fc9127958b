"""A training that is cut short and goes on ends where one that ran through ends, to the bit."""

from pathlib import Path

import pytest
import torch
from power_cuts import PowerCut, cut_at
from training_cases import FORMS, build, passed_on_the_way, plan, same

from air_recsys.exceptions import CheckpointError
from air_recsys.training import Record, train
from air_recsys.training.checkpoint import CheckpointFile
from air_recsys.training.resume import SavedCourse

MARK = {"data": "d", "parameters": {"depth": 3}}
COURSES = [
    {},
    {"graph_refresh": 7, "schedule": "cosine"},
    {"patience": 3, "snapshot_epochs": frozenset({0, 20, 60})},
    {"stopping_delta": 1e-6},
]
MORE_FORMS = [*FORMS, {"graph_every": 3}, {"width": 3, "n_neighbors": 3, "n_batches": 3, "biases": True}]


def without_seconds(records):
    return [record._replace(seconds=0.0) for record in records]


def adjacencies(result):
    return {epoch: [graph.toarray().tolist() for graph in graphs] for epoch, graphs in result.snapshots.items()}


@pytest.mark.parametrize("options", MORE_FORMS)
@pytest.mark.parametrize("course", COURSES)
@pytest.mark.parametrize("every", [4, 13])
def test_a_training_goes_on_as_if_it_had_never_stopped(options, course, every, tmp_path: Path):
    whole, cut, resumed = build(**options), build(**options), build(**options)
    expected = train(whole, plan(**course), validation=passed_on_the_way())
    file = CheckpointFile(tmp_path / "run.ckpt", MARK)
    saved = SavedCourse(cut, file.write, every)
    with pytest.raises(PowerCut):
        train(cut, plan(**course), validation=passed_on_the_way(), callbacks=[cut_at(20)], course=saved)
    found = train(
        resumed, plan(**course), validation=passed_on_the_way(), course=SavedCourse(resumed, state=file.read())
    )
    assert same(whole.state(), resumed.state())
    assert repr(without_seconds(found.records)) == repr(without_seconds(expected.records))
    assert (found.kept_epoch, found.stopped_by) == (expected.kept_epoch, expected.stopped_by)
    assert adjacencies(found) == adjacencies(expected)


def test_seconds_go_on_where_they_stopped(tmp_path):
    file = CheckpointFile(tmp_path / "run.ckpt", MARK)
    objective = build()
    train(objective, plan(), course=SavedCourse(objective, file.write, 20))
    state = file.read()
    state["records"][-1][Record._fields.index("seconds")] = 1000.0
    again = build()
    result = train(again, plan(n_epochs=80), course=SavedCourse(again, state=state))
    assert 1000 <= result.records[-1].seconds < 1010


@pytest.mark.parametrize(("every", "expected"), [(25, [25, 50, 60]), (60, [60]), (100, [60])])
def test_states_are_handed_on_when_they_are_due_and_at_the_end(every, expected):
    epochs = []
    objective = build()
    train(objective, plan(), course=SavedCourse(objective, lambda state: epochs.append(state["epoch"]), every))
    assert epochs == expected


def test_a_state_that_cannot_be_kept_ends_the_training_with_all_that_it_has_reached():
    def full(state):
        raise CheckpointError("no space left")

    objective, shorter = build(), build()
    result = train(objective, plan(), course=SavedCourse(objective, full, 25))
    assert isinstance(result.error, CheckpointError)
    assert (result.stopped_by, result.kept_epoch, result.records[-1].epoch) == ("checkpoint", 25, 25)
    train(shorter, plan(n_epochs=25))
    assert same(objective.state(), shorter.state())


def test_moments_go_to_the_device_of_their_tensor():
    objective = build()
    states = []
    train(objective, plan(), course=SavedCourse(objective, states.append, 60))
    moments = states[-1]["optimizer"]
    assert all(isinstance(value, torch.Tensor) for entry in moments for value in entry.values())
    assert len(moments) == len(objective.parameters())


@pytest.mark.parametrize(
    "harm",
    [
        lambda state: state.pop("remembered"),
        lambda state: state["optimizer"].pop(),
        lambda state: state["optimizer"].__setitem__(0, None),
        lambda state: state["objective"].__setitem__(0, torch.zeros(2, 2)),
        lambda state: state["records"].append([1]),
        lambda state: state.update(snapshots=[0]),
    ],
)
def test_a_state_of_something_else_is_refused(harm):
    states = []
    objective = build()
    train(objective, plan(), course=SavedCourse(objective, states.append, 60))
    harm(states[0])
    again = build()
    with pytest.raises(CheckpointError, match="no state of this training"):
        train(again, plan(), course=SavedCourse(again, state=states[0]))
