"""`fit` with checkpoints: a training that was cut short ends where one that ran through ends, to the bit."""

import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from covering import covering
from model_cases import CPU, assert_same_predictions, frame
from power_cuts import PowerCut, cut_at

from air_recsys import AIR, Interactions
from air_recsys.exceptions import CheckpointError
from air_recsys.models import DirichletDMF
from air_recsys.training.checkpointer import generator_at, position_of

CASES = {
    "adam": {"solver": "adam", "n_epochs": 30, "evaluate_every": 5, "graph_refresh": 7},
    "validated": {"solver": "adam", "n_epochs": 30, "validation_fraction": 0.2, "patience": 9, "evaluate_every": 2},
    "dense": {"solver": "adam", "n_epochs": 30, "graph_neighbors": None, "graph_every": 4},
    "exact": {"solver": "adam", "preset": "completion", "n_factors": None, "n_epochs": 30, "exact_epochs": 20},
    "variational": {"solver": "variational", "n_sweeps": 30, "snapshot_epochs": (0, 5, 20)},
    "langevin": {"solver": "langevin", "n_sweeps": 30, "validation_fraction": 0.2},
}


def make(**options):
    preset = options.pop("preset", "ratings")
    return AIR.of_preset(preset, **{"n_factors": 3, "settings": "fixed", **CPU} | options)


@cache
def whole(case):
    """A training that was never interrupted; not to be changed."""
    return make(**CASES[case]).fit(frame())


def same(first, second):
    """Assert that two fitted models are equal to the bit."""
    for name in ("user_factors_", "item_factors_", "user_biases_", "item_biases_"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    for name in ("user_graph_", "item_graph_"):
        np.testing.assert_array_equal(*(getattr(model, name).to_scipy().toarray() for model in (first, second)))
    pd.testing.assert_frame_equal(first.history_.drop(columns="seconds"), second.history_.drop(columns="seconds"))
    assert (first.n_iter_, first.stopped_by_) == (second.n_iter_, second.stopped_by_)
    assert first.snapshots_.keys() == second.snapshots_.keys()
    if first.knows_deviations_:
        assert_same_predictions(first, second, frame()["user"], frame()["item"])


def interrupted(path, every=4, **options):
    model = make(**options)
    with pytest.raises(PowerCut):
        model.fit(frame(), checkpoint=path, every=every, callbacks=[cut_at(13)])


@pytest.mark.parametrize("case", CASES)
def test_a_resumed_training_equals_one_that_was_never_interrupted(case, tmp_path):
    path = tmp_path / "run.ckpt"
    interrupted(path, **CASES[case])
    with pytest.raises(PowerCut):  # cut again, it goes on from the same file
        make(**CASES[case]).fit(frame(), checkpoint=path, every=1, resume_from=path, callbacks=[cut_at(15)])
    same(make(**CASES[case]).fit(frame(), resume_from=path), whole(case))


@pytest.mark.parametrize(
    ("case", "state"),
    covering(["adam", "variational"], [None, np.random.RandomState(3), np.random.default_rng(3), None]),
)
def test_chance_is_part_of_a_checkpoint(case, state, tmp_path):
    path = tmp_path / "run.ckpt"
    first = make(**CASES[case] | {"random_state": state}).fit(frame(), checkpoint=path, every=10)
    same(make(**CASES[case] | {"random_state": None}).fit(frame(), resume_from=path), first)


def test_keeping_changes_nothing_and_clears_what_a_killed_write_left_behind(tmp_path):
    path = tmp_path / "run.ckpt"
    (tmp_path / ".run.ckpt.0123456789abcdef").write_bytes(b"half")
    (tmp_path / ".run.ckpt.mine").write_bytes(b"not ours")
    same(make(**CASES["adam"]).fit(frame(), checkpoint=path, every=1), whole("adam"))
    assert sorted(file.name for file in tmp_path.iterdir()) == [".run.ckpt.mine", "run.ckpt"]


def test_a_checkpoint_of_other_parameters_or_data_is_refused_and_the_model_stays_as_it_was(tmp_path):
    path = tmp_path / "run.ckpt"
    interrupted(path, **CASES["adam"])
    for changes, message in (
        ({"n_factors": 2}, "written with n_factors=3, found n_factors=2"),
        ({"weight_decay": 1.0}, "written with solver__weight_decay=12.0, found solver__weight_decay=1.0"),
        ({"random_state": 1}, "written with random_state=0, found random_state=1"),
    ):
        model = make(**CASES["adam"] | changes).fit(frame())
        before = model.user_factors_
        with pytest.raises(CheckpointError, match=message):
            model.fit(frame(), resume_from=path)
        assert model.user_factors_ is before
    data = Interactions.from_frame(frame())
    for given, options in (
        (frame().assign(rating=lambda table: 6 - table["rating"]), {}),
        (data, {"validation": data}),
    ):
        with pytest.raises(CheckpointError, match="written for other data"):
            make(**CASES["adam"]).fit(given, resume_from=path, **options)


def test_a_checkpoint_of_another_given_graph_is_refused(tmp_path):
    path, n_users = tmp_path / "run.ckpt", frame()["user"].nunique()
    ring = np.roll(np.eye(n_users), 1, axis=0) + np.roll(np.eye(n_users), -1, axis=0)

    def given(graph):
        return DirichletDMF(graph, None, n_factors=3, n_epochs=30, **CPU)

    with pytest.raises(PowerCut):
        given(ring).fit(frame(), checkpoint=path, every=4, callbacks=[cut_at(13)])
    for other in (2 * ring, ring @ ring, None, "neighbors"):
        with pytest.raises(CheckpointError, match="written with user_graph='given, "):
            given(other).fit(frame(), resume_from=path)
    resumed, expected = given(ring).fit(frame(), resume_from=path), given(ring).fit(frame())
    np.testing.assert_array_equal(resumed.user_factors_, expected.user_factors_)


@pytest.mark.parametrize("case", ["adam", "variational", "langevin"])
@pytest.mark.usefixtures("plain_handlers")
def test_ctrl_c_ends_with_a_usable_model_that_can_go_on(case, tmp_path):
    path = tmp_path / "run.ckpt"
    model = make(**CASES[case])
    press = [lambda record: signal.raise_signal(signal.SIGINT) if record.epoch == 15 else None]
    with pytest.raises(KeyboardInterrupt, match="interrupted at"):
        model.fit(frame(), checkpoint=path, every=1000, callbacks=press)
    assert model.stopped_by_ == "interrupt"
    assert model.history_["epoch"].iloc[-1] == 16
    assert np.isfinite(model.predict(frame()["user"], frame()["item"])).all()
    same(make(**CASES[case]).fit(frame(), resume_from=path), whole(case))


SCRIPT = """
import sys
from model_cases import frame
from test_resume import CASES, make
tell = [lambda record: print(record.epoch, flush=True)]
make(**CASES[sys.argv[1]]).fit(frame(), checkpoint=sys.argv[2], every=1, callbacks=tell)
"""


def test_a_killed_process_leaves_a_checkpoint_to_go_on_from(tmp_path):
    case, path = "langevin", tmp_path / "run.ckpt"
    here = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": f"{here}{os.pathsep}{here.parent}"}
    command = [sys.executable, "-c", SCRIPT, case, str(path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while int(next(process.stdout)) < 10:
            pass
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    same(make(**CASES[case]).fit(frame(), resume_from=path), whole(case))


# -------------------------------------------------------------------- where random numbers stand


def plain(state):
    return json.loads(json.dumps(state, default=lambda value: value.tolist()))


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_random_numbers_go_on(kind):
    rng = np.random.Generator(getattr(np.random, kind)(3))
    rng.random(5)
    assert generator_at(plain(position_of(rng))).random(5).tolist() == rng.random(5).tolist()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: [],
        lambda state: state | {"bit_generator": "Dice"},
        lambda state: {"bit_generator": "PCG64"},
        lambda state: state | {"state": {"state": 10**400, "inc": 1}},
        lambda state: state | {"state": {"state": -1, "inc": 1}},
        lambda state: state | {"uinteger": 10**30},
        lambda state: state | {"has_uint32": "many"},
    ],
    ids=["a list", "another kind", "no state", "too large", "negative", "a large rest", "a word"],
)
def test_a_position_that_is_none_is_refused(spoil):
    state = plain(position_of(np.random.default_rng(0)))
    with pytest.raises(CheckpointError, match="the checkpoint holds no position of a random generator"):
        generator_at(spoil(state))
