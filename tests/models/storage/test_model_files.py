"""Model files: nothing is lost, and an interrupted save does no harm."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from model_cases import ITEMS, MODELS, USERS, all_scores, assert_same_answers, dense, every_model, fitted, frame

from air_recsys import AIR, DMF, BiasModel, GlobalMean, Interactions
from air_recsys.exceptions import DataError, DivergenceError, ModelFileError
from air_recsys.models import Recommender
from air_recsys.models.storage import files


def fails(message, error: type[Exception] = ModelFileError):
    return pytest.raises(error, match=re.escape(message))


# -------------------------------------------------------------------- round trips


@every_model
def test_saving_and_loading_changes_nothing(make, tmp_path):
    model = fitted(make)
    path = tmp_path / "model.air"
    assert model.save(str(path)) == path
    again = type(model).load(path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert_same_answers(again, model)
    pd.testing.assert_frame_equal(again.history_, model.history_)
    pd.testing.assert_frame_equal(again.interactions_.to_frame(), model.interactions_.to_frame())
    for name in ("n_iter_", "stopped_by_", "device_"):
        assert getattr(again, name, None) == getattr(model, name, None)


@every_model
def test_a_loaded_model_can_be_saved_and_fitted_again(make, tmp_path):
    model = fitted(make)
    again = Recommender.load(model.save(tmp_path / "first.air"))
    again.save(tmp_path / "second.air")
    assert_same_answers(Recommender.load(tmp_path / "second.air"), model)
    assert_same_answers(again.fit(frame()), model)


@pytest.mark.parametrize("ids", [[*"äß語 🎬xyzabcd"], list(range(100, 112)), ["", "a b", "\n", *"123456789"]])
def test_ids_come_back_as_they_were(ids, tmp_path):
    data = Interactions.from_dense(dense(), user_ids=ids)
    again = GlobalMean.load(GlobalMean().fit(data).save(tmp_path / "model.air"))
    assert again.interactions_.user_ids.tolist() == ids
    assert again.interactions_.user_ids.dtype == data.user_ids.dtype


@pytest.mark.parametrize("ids", [[*USERS[:-1], 11], [("u", user) for user in range(12)], [0.5 * n for n in range(12)]])
def test_other_ids_cannot_be_saved(ids, tmp_path):
    model = GlobalMean().fit(Interactions.from_dense(dense(), user_ids=ids))
    found = type(next(value for value in ids if not isinstance(value, str))).__name__
    message = f"a model file holds ids that are all integers or all strings, found a {found} in user_ids"
    with fails(message, DataError):
        model.save(tmp_path / "model.air")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("state", "expected"),
    [(7, 7), (np.int64(7), 7), (None, None), (np.random.default_rng(7), None), (np.random.RandomState(7), None)],
)
def test_the_position_of_a_generator_is_not_saved(state, expected, tmp_path):
    model = MODELS["DMF"](random_state=state).fit(frame())
    assert DMF.load(model.save(tmp_path / "model.air")).random_state == expected


def test_numbers_of_numpy_among_the_parameters_can_be_saved(tmp_path):
    model = MODELS["DMF"](learning_rate=np.float32(0.5) / 500, depth=np.int64(3), biases=np.bool_(True)).fit(frame())
    again = DMF.load(model.save(tmp_path / "model.air"))
    assert again.get_params() == model.get_params()
    assert all(type(value) in (int, float, bool, str, type(None)) for value in again.get_params().values())


def test_a_model_that_diverged_can_be_saved(tmp_path):
    model = MODELS["AIR-dense"](learning_rate=1e3)
    with pytest.raises(DivergenceError):
        model.fit(frame())
    assert_same_answers(AIR.load(model.save(tmp_path / "model.air")), model)


def test_subclasses_are_loaded_by_their_base_and_no_other_class(saved, tmp_path):
    other = BiasModel().fit(frame()).save(tmp_path / "biases.air")
    assert type(Recommender.load(other)) is BiasModel
    with fails(f"{other} holds a model of class BiasModel, expected AIR"):
        AIR.load(other)
    with fails(f"{saved} holds a model of class AIR, expected DMF"):
        DMF.load(saved)


# -------------------------------------------------------------------- interrupted saves, other processes


@pytest.mark.parametrize("error", [OSError("no space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", [(os, "fsync"), (Path, "replace")], ids=["while-writing", "while-moving"])
def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(saved, monkeypatch, where, error):
    before = saved.read_bytes()

    def interrupt(*args):
        raise error

    monkeypatch.setattr(*where, interrupt)
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else ModelFileError):
        GlobalMean().fit(frame()).save(saved)
    monkeypatch.undo()
    assert list(saved.parent.iterdir()) == [saved]
    assert saved.read_bytes() == before


def test_a_first_save_that_fails_leaves_no_file(tmp_path, monkeypatch):
    def full(*args):
        raise MemoryError

    monkeypatch.setattr(files, "tensor_chunks", full)
    with pytest.raises(MemoryError):
        GlobalMean().fit(frame()).save(tmp_path / "model.air")
    assert list(tmp_path.iterdir()) == []


PROGRAM = """
import os, sys, numpy as np
from air_recsys import AIR
model = AIR.load(sys.argv[1])
np.save(sys.argv[2], model.predict(sys.argv[3].split(), sys.argv[4]))
os.fsync = lambda handle: os._exit(9)  # as if the process were killed
model.save(sys.argv[1])
"""


def test_another_process_predicts_the_same_and_being_killed_leaves_the_file_whole(saved, tmp_path):
    before = saved.read_bytes()
    scores = tmp_path / "scores.npy"
    command = [sys.executable, "-c", PROGRAM, str(saved), str(scores), " ".join(USERS), ITEMS[1]]
    assert subprocess.run(command, check=False).returncode == 9
    expected = all_scores(AIR.load(saved)).reshape(len(USERS), -1)[:, 1]
    np.testing.assert_array_equal(np.load(scores), expected)
    assert saved.read_bytes() == before
