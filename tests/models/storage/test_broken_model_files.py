"""Every file that is no usable model is named as one, and nothing in it is run."""

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from model_cases import USERS, dense
from safetensors.numpy import save_file
from sealing import parts_of, rewrite

from air_recsys import AIR, GlobalMean
from air_recsys.exceptions import ModelFileError


def fails(message):
    return pytest.raises(ModelFileError, match=re.escape(message))


# -------------------------------------------------------------------- files that are no models


def test_a_file_cut_off_anywhere_is_named(saved):
    whole = saved.read_bytes()
    for length in (0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:length])
        with fails(f"{saved} is not a whole air_recsys model file"):
            AIR.load(saved)


def test_random_bytes_are_named(tmp_path):
    path = tmp_path / "model.air"
    for seed in range(20):
        path.write_bytes(np.random.default_rng(seed).bytes(500))
        with fails(f"{path} is not a whole air_recsys model file"):
            AIR.load(path)


def test_a_byte_changed_in_the_header_never_escapes_as_another_error(saved):
    whole = saved.read_bytes()
    rng = np.random.default_rng(0)
    header = 8 + int.from_bytes(whole[:8], "little")
    for position in rng.integers(8, header, 150):
        damaged = bytearray(whole)
        damaged[position] ^= int(rng.integers(1, 256))
        saved.write_bytes(damaged)
        try:
            AIR.load(saved)  # some changes hit a parameter's value and cannot be seen
        except ModelFileError as error:
            assert str(saved) in str(error)  # noqa: PT017, most of the changes must end here, not all


class Bomb:
    """Unpickling it leaves a trace."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_is_refused_and_never_run(tmp_path):
    path, trace = tmp_path / "model.air", tmp_path / "trace"
    path.write_bytes(pickle.dumps(Bomb(trace)))
    with fails(f"{path} is not a whole air_recsys model file"):
        AIR.load(path)
    assert not trace.exists()
    pickle.loads(path.read_bytes())
    assert trace.exists()  # the bomb works


def test_loading_unpickles_nothing(saved, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a model file was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    assert AIR.load(saved).interactions_.n_users == len(USERS)


def test_other_safetensors_files_are_no_models(tmp_path):
    path = tmp_path / "model.air"
    for metadata in (None, {}, {"format": "pt"}):
        save_file({"weight": np.zeros(3)}, path, metadata)
        with fails(f"{path} is not an air_recsys model file"):
            AIR.load(path)


def test_a_file_or_folder_that_is_not_there(tmp_path):
    with fails(f"expected a model file, found no file {tmp_path / 'none.air'}"):
        AIR.load(tmp_path / "none.air")
    with fails(f"expected a model file, found no file {tmp_path}"):
        AIR.load(tmp_path)
    with fails(f"cannot write model.air: there is no folder {tmp_path / 'nowhere'}"):
        GlobalMean().fit(dense()).save(tmp_path / "nowhere" / "model.air")


@pytest.mark.parametrize("version", ["1", "2", "4", "", "one"])
def test_other_and_meaningless_format_versions(saved, version):
    rewrite(saved, {"format_version": version})
    with fails(f"{saved} holds a model of format version '{version}', this library reads version 3: load it with"):
        AIR.load(saved)


@pytest.mark.parametrize(
    "name",
    [
        *("user_index", "ratings", "user_ids_text", "item_ids_starts", "user_factors_", "item_biases_"),
        *("user_graph_indices", "history_epoch", "model", "parameters", "attributes"),
    ],
)
def test_missing_parts(saved, name):
    rewrite(saved, drop=[name])
    with fails(f"{saved} is not a whole air_recsys model file: '{name}'"):
        AIR.load(saved)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("user_factors_", np.zeros((12, 4), np.float32)),
        ("user_factors_", np.zeros((11, 9), np.float32)),
        ("user_factors_", np.zeros(12, np.float32)),
        ("item_factors_", np.zeros((9, 9, 1), np.float32)),
        ("user_biases_", np.zeros(13, np.float32)),
        ("ratings", np.zeros(3)),
        ("ratings", np.full(3, np.nan)),
        ("user_index", np.full(1000, 99)),
        ("item_index", np.zeros(1000)),
        ("user_ids_starts", np.arange(40)),
        ("item_ids_text", np.full(18, 255, np.uint8)),
        ("user_graph_data", np.zeros(1)),
        ("user_graph_indices", np.full(4, 77, np.int32)),
        ("item_graph_indptr", np.zeros(3, np.int32)),
        ("history_fit", np.zeros(1)),
    ],
)
def test_inconsistent_parts(saved, name, array):
    rewrite(saved, arrays={name: array})
    with fails(str(saved)):
        AIR.load(saved)


def test_indices_that_point_nowhere(saved):
    graph = AIR.load(saved).item_graph_
    assert graph is not None
    for wrong in (-1, 9, 10**6):
        rewrite(saved, arrays={"item_graph_indices": np.full(2 * graph.n_edges, wrong, np.int32)})
        with fails(f"{saved} is not a whole air_recsys model file"):
            AIR.load(saved)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("parameters", "{"),
        ("parameters", "[1]"),
        ("parameters", '{"no_such_parameter": 1}'),
        ("attributes", "{}"),
        ("attributes", "[]"),
    ],
)
def test_broken_metadata(saved, name, text):
    rewrite(saved, {name: text})
    with fails(f"{saved} is not a whole air_recsys model file"):
        AIR.load(saved)


@pytest.mark.parametrize(
    ("name", "value"), [("global_mean_", None), ("history_", 3), ("ending", 3), ("rating_scale", None), ("chosen", [])]
)
def test_broken_attributes(saved, name, value):
    attributes = json.loads(parts_of(saved)[0]["attributes"])
    rewrite(saved, {"attributes": json.dumps(attributes | {name: value})})
    with fails(f"{saved} is not a whole air_recsys model file: expected another type of {name}"):
        AIR.load(saved)
    del attributes[name]
    rewrite(saved, {"attributes": json.dumps(attributes)})
    with fails(f"{saved} is not a whole air_recsys model file"):
        AIR.load(saved)
