"""Every file that is no usable model is named as one, whichever bit has changed, and nothing in it is run."""

import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attacks.flips import flipped_bits, formats
from model_cases import MODELS, USERS, dense, fitted
from safetensors.numpy import save_file
from sealing import parts_of, rewrite

from air_recsys import AIR, GlobalMean, __version__
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


@pytest.mark.parametrize("newer", [{"format_version": "4"}, {"model": "AIR9"}, {"parameters": '{"taste": 1}'}])
def test_a_model_of_another_release_is_named_where_it_cannot_be_read(saved, newer):
    rewrite(saved, {"release": "9.1"})
    AIR.load(saved)
    rewrite(saved, newer)
    with fails(f"{saved} was written by air_recsys '9.1', which '{__version__}' cannot read: "):
        AIR.load(saved)


def test_a_file_or_folder_that_is_not_there(tmp_path):
    for path in (tmp_path / "none.air", tmp_path):
        with fails(f"expected a model file, found no file {path}"):
            AIR.load(path)
    with fails(f"cannot write model.air: there is no folder {tmp_path / 'nowhere'}"):
        GlobalMean().fit(dense()).save(tmp_path / "nowhere" / "model.air")


@pytest.mark.skipif(sys.platform != "linux", reason="files with holes, and limits of memory")
@pytest.mark.parametrize(("kind", "width", "size"), [("F32", 4, 3 * 2**30), ("U8", 1, 2**31)])
def test_a_file_beyond_the_memory_is_named(kind, width, size, tmp_path):
    tensor = {"dtype": kind, "shape": [size], "data_offsets": [0, width * size]}
    header = json.dumps({"__metadata__": {"format": "air_recsys model"}, "ratings": tensor}).encode()
    with (tmp_path / "model.air").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + width * size)
    program = """
import resource
from air_recsys import AIR
used = 1024 * int(open("/proc/self/status").read().split("VmSize:")[1].split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, -1))
AIR.load("model.air")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert re.search(r"ModelFileError: model.air of (12.9|2.1) GB does not fit into the memory", done.stderr)


# -------------------------------------------------------------------- damaged files


@pytest.mark.parametrize("name", formats())
def test_of_flipped_bits_none_is_silent(name):
    (row,) = flipped_bits(40, 1, [name])
    assert row["refused"] + row["unread"] == row["flips"] == 40
    if "Implicit" not in name:  # in a zip archive no one reads the dates
        assert row["unread"] == 0


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


def without(*names):
    return lambda path: rewrite(path, drop=names)


def array(name, change):
    """Write another array, or what a function makes of the one that is there."""

    def write(path):
        rewrite(path, arrays={name: change(parts_of(path)[1][name]) if callable(change) else change})

    return write


def text(name, value):
    return lambda path: rewrite(path, {name: value})


def entry(part, name, value=None, absent=False):
    """Write another value in the parameters, in those of the solver, or in the attributes."""

    def write(path):
        texts = json.loads(parts_of(path)[0][part.removesuffix(".solver")])
        changed = texts["solver"] if part.endswith(".solver") else texts
        changed |= {name: value}
        if absent:
            del changed[name]
        rewrite(path, {part.removesuffix(".solver"): json.dumps(texts)})

    return write


PARTS = [
    *("user_index", "ratings", "user_ids_text", "item_ids_starts", "user_factors_", "item_biases_"),
    *("user_graph_indices", "history_epoch", "model", "parameters", "attributes"),
]
TYPED = [("global_mean_", None), ("history_", 3), ("ending", 3), ("rating_scale", None), ("chosen", [])]
CASES = {
    "AIR-sparse": [
        *((without(name), f"'{name}'") for name in PARTS),
        (array("user_factors_", np.zeros((12, 4), np.float32)), "expected factors of shapes"),
        (array("user_factors_", np.zeros(12, np.float32)), "expected factors of shapes"),
        (array("item_factors_", np.zeros((9, 9, 1), np.float32)), "expected factors of shapes"),
        (array("user_biases_", np.zeros(13, np.float32)), "expected factors of shapes"),
        (array("ratings", np.zeros(3)), ""),
        (array("ratings", np.full(3, np.nan)), "expected finite numbers in ratings"),
        (array("user_index", lambda places: places + 99), ""),
        (array("item_index", lambda places: places * 1.0), ""),
        (array("user_ids_starts", np.arange(40)), "expected the places of ids"),
        (array("item_ids_text", lambda letters: letters | 255), ""),
        (array("user_graph_data", np.zeros(1)), "expected a sparse matrix"),
        *((array("item_graph_indices", lambda at, to=to: at * 0 + to), "a sparse matrix") for to in (-1, 9, 10**6)),
        (array("item_graph_indptr", np.zeros(3, np.int32)), "expected a sparse matrix"),
        (array("history_fit", np.zeros(1)), ""),
        (array("history_fit", lambda fit: fit * 1e300), r"expected numbers up to 1e\+150 in history_fit"),
        (entry("attributes", "ending", {"device_": "x"}), "device"),
        (entry("attributes", "global_mean_", 1e308), "expected a small, finite global_mean_, found 1e"),
        (lambda path: rewrite(path, arrays={f"{side}_factors_": np.zeros((n, 0)) for side, n in SIZES}), "found none"),
        (text("parameters", "{"), ""),
        (text("parameters", "[1]"), ""),
        (text("parameters", '{"no_such_parameter": 1}'), ""),
        (text("attributes", "[]"), "expected attributes by name, found list"),
        *((entry("attributes", name, value), f"expected another type of {name}") for name, value in TYPED),
        *((entry("attributes", name, absent=True), f"'{name}'") for name, _ in TYPED),
    ],
    "AIR-dense": [
        (entry("parameters.solver", "depth", -3), "depth must be an integer >= 2, found -3"),
        (entry("parameters.solver", "name", "magic"), "solver must be .*, found 'magic'"),
        (entry("parameters.solver", "transforms", [["rows", -1.0]]), "the strength of a transform"),
        (entry("parameters", "adjacency", "none"), "adjacency must be one of"),
        (entry("parameters", "device", "abacus"), "device must be"),
        (entry("parameters", "random_state", -1), "random_state must be"),
        (entry("parameters", "snapshot_epochs", [-1]), "an entry of snapshot_epochs"),
    ],
    "GraphRanker": [
        (entry("parameters", "settings", {"regression_penalty": 0}), "regression_penalty must be a number"),
        (array("history_regression_share", lambda share: share * 1e15), "regression_share must be a number"),
        (entry("attributes", "history_", []), "ndcg"),
    ],
    "AIR-variational": [
        (entry("parameters.solver", "n_sweeps", 0), "n_sweeps must be"),
        (array("spread_scales", lambda scales: scales * 0), "expected numbers above 0 in scales, found 0.0"),
        (array("spread_user_noise", lambda noise: -noise), "expected numbers above 0 in user_noise"),
        (array("spread_item_covariances", lambda each: each * 0), "above 0 in the diagonal of item_covariances"),
        (
            array("spread_user_precisions", lambda each: -each),
            "positive definite matrices in user_precisions",
        ),
        (without("spread_user_covariances"), "covariances of both sides beside means"),
        (without("spread_user_covariances", "spread_item_covariances"), "covariances of both sides"),
    ],
    "AIR-langevin": [(without("spread_users"), "users")],
}
SIZES = ("user", 12), ("item", 9)


@pytest.mark.parametrize(
    ("kind", "change", "message"), [(kind, *case) for kind, cases in CASES.items() for case in cases]
)
def test_contents_that_no_model_has_are_refused(kind, change, message, tmp_path):
    path = fitted(MODELS[kind]).save(tmp_path / "model.air")
    change(path)
    expected = f"^{re.escape(str(path))} is not a whole air_recsys model file: .*{message}"
    with pytest.raises(ModelFileError, match=expected):
        Recommender.load(path)


def test_rounded_covariances_give_deviations_that_are_numbers(tmp_path):
    """A matrix with a positive diagonal need not be positive definite; what it makes is a number all the same."""
    path = fitted(MODELS["AIR-variational"]).save(tmp_path / "model.air")
    array("spread_user_covariances", lambda covariances: 1e3 * np.sign(covariances + 1))(path)
    loaded: Any = AIR.load(path)
    users, items = loaded.interactions_.user_ids, loaded.interactions_.item_ids[0]
    assert np.isfinite(loaded.predict(users, items, return_std=True)[1]).all()
