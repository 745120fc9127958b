"""Model files: nothing is lost, and an interrupted save does no harm."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from model_cases import ITEMS, MODELS, USERS, dense, fitted, frame
from sealing import parts_of

import air_recsys
from air_recsys import AIR, DMF, BiasModel, GlobalMean, Interactions
from air_recsys.exceptions import DataError, DataWarning, DivergenceError, ModelFileError
from air_recsys.models import Recommender
from air_recsys.models.storage import files
from air_recsys.testing import all_scores, assert_same_answers


def fails(message, error: type[Exception] = ModelFileError):
    return pytest.raises(error, match=re.escape(message))


# -------------------------------------------------------------------- round trips


@pytest.mark.filterwarnings("ignore:each row counts as one like")  # of ratings given to all models
@pytest.mark.parametrize("name", ["AIR-sparse", "AIR-langevin", "GraphRanker", "PatchAIR", "GlobalMean"])
def test_a_loaded_model_can_be_fitted_again(name, tmp_path):
    model = fitted(MODELS[name])
    assert_same_answers(Recommender.load(model.save(tmp_path / "first.air")).fit(frame()), model)


@pytest.mark.filterwarnings("ignore:ids such as")
@pytest.mark.parametrize("ids", [[*"äß語 🎬xyzabcd"], list(range(100, 112)), ["", "a b", "\n", *"123456789"]])
def test_ids_come_back_as_they_were(ids, tmp_path):
    data = Interactions.from_dense(dense(), user_ids=ids)
    again = GlobalMean.load(GlobalMean().fit(data).save(tmp_path / "model.air"))
    assert again.interactions_.user_ids.tolist() == ids
    assert again.interactions_.user_ids.dtype == data.user_ids.dtype


@pytest.mark.parametrize("ids", [[*USERS[:-1], 11], [("u", user) for user in range(12)], [0.5 * n for n in range(12)]])
def test_other_ids_are_refused_before_anything_is_written(ids, saved):
    before = saved.read_bytes()
    with pytest.warns(DataWarning, match="save will refuse the model"):
        model = GlobalMean().fit(Interactions.from_dense(dense(), user_ids=ids))
    found = type(next(value for value in ids if not isinstance(value, str))).__name__
    message = f"all integers or all strings, found a {found} in user_ids; give others as text"
    with fails(f"a model file holds ids that are {message}", DataError):
        model.save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_ids_that_pandas_made_floats_are_integers_again(tmp_path):
    table = frame().head(30).assign(user=lambda t: t["user"].astype("category").cat.codes.astype(float))
    model = GlobalMean().fit(table)
    assert model.interactions_.user_ids.dtype == np.int64
    loaded = GlobalMean.load(model.save(tmp_path / "model.air"))
    for user in (1, 1.0, np.float64(1)):
        assert loaded.interactions_.users.lookup(user) == [1]
    assert loaded.recommend(1.0, n=1)["user"].tolist() in ([1], [])


@pytest.mark.parametrize(
    ("state", "expected"),
    [(7, 7), (np.int64(7), 7), (None, None), (np.random.default_rng(7), None), (np.random.RandomState(7), None)],
)
def test_numbers_of_numpy_can_be_saved_and_the_position_of_a_generator_is_not(state, expected, tmp_path):
    numbers = {"learning_rate": np.float32(0.5) / 500, "depth": np.int64(3), "biases": np.bool_(True)}
    model = MODELS["DMF"](random_state=state, **numbers).fit(frame())
    again = DMF.load(model.save(tmp_path / "model.air"))
    assert again.get_params() == model.get_params() | {"random_state": expected}
    assert all(type(value) in (int, float, bool, str, type(None)) for value in again.get_params().values())


def test_a_model_that_diverged_can_be_saved(tmp_path):
    model = MODELS["AIR-dense"](learning_rate=1e3)
    with pytest.raises(DivergenceError):
        model.fit(frame())
    assert_same_answers(AIR.load(model.save(tmp_path / "model.air")), model)


def test_subclasses_are_loaded_by_their_base_and_no_other_class_and_arrays_by_safetensors(saved, tmp_path):
    metadata, arrays = parts_of(saved)
    assert metadata["model"] == "AIR"
    np.testing.assert_array_equal(arrays["item_factors_"], AIR.load(saved).item_factors_)
    other = BiasModel().fit(frame()).save(tmp_path / "biases.air")
    assert type(Recommender.load(other)) is type(air_recsys.load(other, mapped=True)) is BiasModel
    with fails(f"{other} holds a model of class BiasModel, expected AIR: air_recsys.load reads"):
        AIR.load(other)
    with fails(f"{saved} holds a model of class AIR, expected DMF: air_recsys.load reads"):
        DMF.load(saved)


# -------------------------------------------------------------------- interrupted saves, other processes


@pytest.mark.parametrize(
    ("where", "error", "raised"),
    [
        ((os, "fsync"), OSError(28, "No space left on device"), ModelFileError),
        ((Path, "replace"), OSError("No space left on device"), ModelFileError),
        ((os, "fsync"), KeyboardInterrupt(), KeyboardInterrupt),
        ((files, "tensor_chunks"), MemoryError(), MemoryError),
    ],
)
def test_an_interrupted_save_leaves_what_was_there_and_nothing_else(
    where, error, raised, saved, tmp_path_factory, monkeypatch
):
    def interrupt(*args):
        raise error

    before, empty = saved.read_bytes(), tmp_path_factory.mktemp("empty")
    monkeypatch.setattr(*where, interrupt)
    for path in (saved, empty / "model.air"):
        with pytest.raises(raised) as caught:
            GlobalMean().fit(frame()).save(path)
        if raised is ModelFileError:
            assert str(caught.value) == f"cannot write {path}: No space left on device"
    monkeypatch.undo()
    assert list(saved.parent.iterdir()) == [saved]
    assert list(empty.iterdir()) == []
    assert saved.read_bytes() == before


PROGRAM = """
import os, sys, numpy as np
from pathlib import Path
from air_recsys import AIR
whole, copied, scores = map(Path, sys.argv[1:4])
model = AIR.load(copied)
with copied.open("r+b") as file:  # as a careless copy does: the same file, shorter
    file.truncate(10)
np.save(scores, model.predict(sys.argv[4].split(), sys.argv[5]))
model.save(copied)
AIR.load(copied)
os.fsync = lambda handle: os._exit(9)  # as if the process were killed
model.save(whole)
"""


def test_another_process_predicts_the_same_whatever_becomes_of_the_file_and_being_killed_leaves_one_whole(
    saved, tmp_path
):
    before, copied, scores = saved.read_bytes(), tmp_path / "copied.air", tmp_path / "scores.npy"
    copied.write_bytes(before)
    arguments = [str(saved), str(copied), str(scores), " ".join(USERS), ITEMS[1]]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (9, "")
    expected = all_scores(AIR.load(saved)).reshape(len(USERS), -1)[:, 1]
    np.testing.assert_array_equal(np.load(scores), expected)
    assert saved.read_bytes() == copied.read_bytes() == before
