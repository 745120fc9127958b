"""Every file that is no usable model is named as one, whichever bit has changed, and nothing in it is run."""

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attacks.flips import flipped, flipped_bits, formats
from model_cases import MODELS, USERS, dense, fitted
from safetensors.numpy import save_file
from sealing import parts_of, rewrite

from air_recsys import AIR, GlobalMean
from air_recsys.exceptions import ModelFileError
from air_recsys.models import Recommender

pytest.importorskip("implicit")


def fails(message):
    return pytest.raises(ModelFileError, match=re.escape(message))


# -------------------------------------------------------------------- files that are no models


def test_a_file_cut_off_anywhere_and_random_bytes_are_named(saved):
    whole = saved.read_bytes()
    cut = [whole[:length] for length in (0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1)]
    for content in (*cut, *(np.random.default_rng(seed).bytes(500) for seed in range(9))):
        saved.write_bytes(content)
        with fails(f"{saved} is not a whole air_recsys model file"):
            AIR.load(saved)


class Bomb:
    """Unpickling it leaves a trace."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_nothing_is_unpickled(saved, tmp_path, monkeypatch):
    path, trace = tmp_path / "bomb.air", tmp_path / "trace"
    path.write_bytes(pickle.dumps(Bomb(trace)))
    with fails(f"{path} is not a whole air_recsys model file"):
        AIR.load(path)
    assert not trace.exists()
    pickle.loads(path.read_bytes())
    assert trace.exists()  # the bomb works
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, lambda *_, **__: pytest.fail("a model file was unpickled"))
    assert AIR.load(saved).interactions_.n_users == len(USERS)


def test_other_safetensors_files_are_no_models_and_other_versions_are_named(saved, tmp_path):
    path = tmp_path / "weights.air"
    for metadata in (None, {}, {"format": "pt"}):
        save_file({"weight": np.zeros(3)}, path, metadata)
        with fails(f"{path} is not an air_recsys model file"):
            AIR.load(path)
    for version in ("1", "2", "4", "", "one"):
        rewrite(saved, {"format_version": version})
        with fails(f"{saved} holds a model of format version '{version}', this library reads version 3: load it with"):
            AIR.load(saved)


def test_a_file_or_folder_that_is_not_there(tmp_path):
    for path in (tmp_path / "none.air", tmp_path):
        with fails(f"expected a model file, found no file {path}"):
            AIR.load(path)
    with fails(f"cannot write model.air: there is no folder {tmp_path / 'nowhere'}"):
        GlobalMean().fit(dense()).save(tmp_path / "nowhere" / "model.air")


# -------------------------------------------------------------------- damaged files


@pytest.mark.parametrize("name", formats())
def test_of_flipped_bits_none_is_silent(name):
    (row,) = flipped_bits(40, 1, [name])
    assert row["refused"] + row["unread"] == row["flips"] == 40
    if "Implicit" not in name:  # in a zip archive no one reads the dates
        assert row["unread"] == 0


def test_every_bit_of_a_small_file_counts(tmp_path):
    path = fitted(MODELS["GlobalMean"]).save(tmp_path / "model.air")
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), 29):
        path.write_bytes(flipped(whole, bit))
        with pytest.raises(ModelFileError):
            Recommender.load(path)


def test_the_damaged_tensor_is_named(saved):
    content = bytearray(saved.read_bytes())
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    content[end + header["item_factors_"]["data_offsets"][0]] ^= 1
    saved.write_bytes(content)
    with fails("is damaged: tensor item_factors_ differs from its digest"):
        AIR.load(saved)


def test_a_file_of_version_3_without_digests_is_damaged(saved):
    metadata, arrays = parts_of(saved)
    for absent in (("digest",), ("digests",), ("digest", "digests")):
        kept = {name: text for name, text in metadata.items() if name not in absent}
        save_file(arrays, saved, kept)
        with pytest.raises(ModelFileError, match=r"damaged|not a whole"):
            AIR.load(saved)


# -------------------------------------------------------------------- contents, with right digests


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


def test_indices_that_point_nowhere_and_factors_of_no_width(saved):
    whole, n_edges = saved.read_bytes(), AIR.load(saved).item_graph_.n_edges
    for wrong in (-1, 9, 10**6):
        rewrite(saved, arrays={"item_graph_indices": np.full(2 * n_edges, wrong, np.int32)})
        with fails(f"{saved} is not a whole air_recsys model file"):
            AIR.load(saved)
    saved.write_bytes(whole)
    rewrite(
        saved, arrays={"user_factors_": np.zeros((12, 0), np.float32), "item_factors_": np.zeros((9, 0), np.float32)}
    )
    with fails("expected factors of at least one column, found none"):
        AIR.load(saved)


@pytest.mark.parametrize(
    ("name", "text"),
    [("parameters", "{"), ("parameters", "[1]"), ("parameters", '{"no_such_parameter": 1}'), ("attributes", "[]")],
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


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        ("AIR-dense", "solver__depth", -3, "depth must be an integer >= 2, found -3"),
        ("AIR-dense", "solver__name", "magic", "solver must be .*, found 'magic'"),
        ("AIR-dense", "solver__learning_rate", 0, "learning_rate must be 'auto' or a number > 0"),
        ("AIR-dense", "solver__transforms", [["rows", -1.0]], "the strength of a transform"),
        ("AIR-dense", "n_factors", 0, "n_factors must be"),
        ("AIR-dense", "adjacency", "none", "adjacency must be one of"),
        ("AIR-dense", "device", "abacus", "device must be"),
        ("AIR-dense", "random_state", -1, "random_state must be"),
        ("AIR-dense", "max_memory", "much", "max_memory must be"),
        ("AIR-dense", "snapshot_epochs", [-1], "an entry of snapshot_epochs"),
        ("AIR-variational", "solver__n_sweeps", 0, "n_sweeps must be"),
        ("GraphRanker", "settings", {"regression_penalty": 0}, "regression_penalty must be a number > 0"),
    ],
)
def test_parameters_out_of_range_are_refused(kind, name, value, message, tmp_path):
    path = fitted(MODELS[kind]).save(tmp_path / "model.air")
    parameters = json.loads(parts_of(path)[0]["parameters"])
    part = parameters["solver"] if name.startswith("solver__") else parameters
    part[name.removeprefix("solver__")] = value
    rewrite(path, {"parameters": json.dumps(parameters)})
    with pytest.raises(ModelFileError, match=f"not a whole air_recsys model file: {message}"):
        Recommender.load(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("spread_scales", "expected numbers above 0 in scales"),
        ("spread_user_noise", "expected numbers above 0 in user_noise"),
        ("spread_item_covariances", "expected numbers above 0 in the diagonal of item_covariances"),
        ("spread_user_precisions", "expected positive definite matrices in user_precisions"),
    ],
)
@pytest.mark.parametrize("factor", [0, -1])
def test_variances_that_are_none_are_refused(name, message, factor, tmp_path):
    path = fitted(MODELS["AIR-variational"]).save(tmp_path / "model.air")
    rewrite(path, arrays={name: parts_of(path)[1][name] * factor})
    with fails(message):
        AIR.load(path)


@pytest.mark.parametrize(
    ("kind", "drop", "message"),
    [
        ("AIR-variational", ["spread_user_covariances"], "covariances of both sides beside means"),
        ("AIR-variational", ["spread_user_covariances", "spread_item_covariances"], "covariances of both sides"),
        ("AIR-langevin", ["spread_users"], "users"),
    ],
)
def test_a_posterior_that_is_not_whole_is_refused(kind, drop, message, tmp_path):
    path = fitted(MODELS[kind]).save(tmp_path / "model.air")
    rewrite(path, drop=drop)
    with fails(message):
        AIR.load(path)


def test_rounded_covariances_give_deviations_that_are_numbers(tmp_path):
    """A matrix with a positive diagonal need not be positive definite; what it makes is a number all the same."""
    path = fitted(MODELS["AIR-variational"]).save(tmp_path / "model.air")
    covariances = parts_of(path)[1]["spread_user_covariances"]
    rewrite(path, arrays={"spread_user_covariances": 1e3 * np.sign(covariances + 1)})
    loaded: Any = AIR.load(path)
    users, items = loaded.interactions_.user_ids, loaded.interactions_.item_ids[0]
    assert np.isfinite(loaded.predict(users, items, return_std=True)[1]).all()
