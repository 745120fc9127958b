"""A training that is cut short and goes on ends where one that ran through ends, to the bit."""

from pathlib import Path

import pytest
import torch
from covering import covering
from power_cuts import PowerCut, cut_at
from training_cases import FORMS, build, passed_on_the_way, plan, same, train

from air_recsys.exceptions import CheckpointError
from air_recsys.training.checkpoint import CheckpointFile
from air_recsys.training.checkpointer import FileCheckpointer

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


@pytest.mark.parametrize(("options", "course", "every"), covering(MORE_FORMS, COURSES, [4, 13, 4]))
def test_a_training_goes_on_as_if_it_had_never_stopped(options, course, every, tmp_path: Path):
    whole, cut, resumed = build(**options), build(**options), build(**options)
    expected = train(whole, plan(**course), validation=passed_on_the_way())
    path = tmp_path / "run.ckpt"
    with pytest.raises(PowerCut):
        train(
            cut,
            plan(**course),
            validation=passed_on_the_way(),
            callbacks=[cut_at(20)],
            checkpointer=FileCheckpointer(MARK, path, every),
        )
    again = FileCheckpointer(MARK, resume_from=path)
    found = train(resumed, plan(**course), validation=passed_on_the_way(), checkpointer=again)
    assert same(whole.state(), resumed.state())
    assert repr(without_seconds(found.records)) == repr(without_seconds(expected.records))
    assert (found.kept_epoch, found.stopped_by) == (expected.kept_epoch, expected.stopped_by)
    assert adjacencies(found) == adjacencies(expected)


class Handed:
    """A file of a checkpoint that holds what it is given in memory."""

    def __init__(self, monkeypatch, state=None):
        self.states = [] if state is None else [state]
        monkeypatch.setattr(CheckpointFile, "write", lambda file, state: self.states.append(state["course"]))
        monkeypatch.setattr(CheckpointFile, "read", lambda file: {"course": self.states[-1]})


def test_seconds_go_on_where_they_stopped(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    handed = Handed(monkeypatch)
    train(build(), plan(), checkpointer=FileCheckpointer(MARK, path, 20))
    handed.states[-1]["records"][-1] = handed.states[-1]["records"][-1]._replace(seconds=1000.0)
    result = train(build(), plan(n_epochs=80), checkpointer=FileCheckpointer(MARK, resume_from=path))
    assert 1000 <= result.records[-1].seconds < 1010


@pytest.mark.parametrize(("every", "expected"), [(25, [25, 50, 60]), (60, [60]), (100, [60])])
def test_states_are_handed_on_when_they_are_due_and_at_the_end(every, expected, tmp_path, monkeypatch):
    handed = Handed(monkeypatch)
    train(build(), plan(), checkpointer=FileCheckpointer(MARK, tmp_path / "run.ckpt", every))
    assert [state["position"] for state in handed.states] == expected


def test_a_state_that_cannot_be_kept_ends_the_training_with_all_that_it_has_reached(tmp_path, monkeypatch):
    def full(file, state):
        raise CheckpointError("no space left")

    monkeypatch.setattr(CheckpointFile, "write", full)
    objective, shorter = build(), build()
    result = train(objective, plan(), checkpointer=FileCheckpointer(MARK, tmp_path / "run.ckpt", 25))
    assert isinstance(result.error, CheckpointError)
    assert (result.stopped_by, result.kept_epoch, result.records[-1].epoch) == ("checkpoint", 25, 25)
    train(shorter, plan(n_epochs=25))
    assert same(objective.state(), shorter.state())


@pytest.mark.parametrize(
    "harm",
    [
        lambda state: state.pop("remembered"),
        lambda state: state["steps"]["optimizer"].pop(),
        lambda state: state["steps"]["optimizer"].__setitem__(0, None),
        lambda state: state["state"].__setitem__(0, torch.zeros(2, 2)),
        lambda state: state["records"].append([1]),
        lambda state: state.update(snapshots=[0]),
        lambda state: state.clear(),
    ],
)
def test_a_state_of_something_else_is_refused(harm, tmp_path, monkeypatch):
    path, handed = tmp_path / "run.ckpt", Handed(monkeypatch)
    train(build(), plan(), checkpointer=FileCheckpointer(MARK, path, 60))
    harm(handed.states[0])
    with pytest.raises(CheckpointError, match="no state of this training"):
        train(build(), plan(), checkpointer=FileCheckpointer(MARK, resume_from=path))


def test_a_checkpoint_replaces_no_file_that_is_none(tmp_path):
    path = tmp_path / "precious.csv"
    path.write_text("user,item,rating\n")
    with pytest.raises(CheckpointError, match="expected no file, or an older checkpoint to replace, found another"):
        FileCheckpointer(MARK, path)
    assert path.read_text() == "user,item,rating\n"
    path.write_text("")  # as of `tempfile`
    FileCheckpointer(MARK, path).close()
