"""A file that is not what was written is refused, whichever bit has changed, and harms nothing that was read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attacks.flips import flipped, flipped_bits, formats
from model_cases import MODELS, assert_same_answers, every_model, fitted
from safetensors.numpy import save_file
from sealing import parts_of, rewrite

from air_recsys import AIR
from air_recsys.exceptions import ModelFileError, ParameterError
from air_recsys.models import Recommender

pytest.importorskip("implicit")


@pytest.mark.parametrize("name", formats())
def test_of_flipped_bits_none_is_silent(name):
    (row,) = flipped_bits(60, 1, [name])
    assert row["refused"] + row["unread"] == row["flips"] == 60
    if "Implicit" not in name:  # in a zip archive no one reads the dates
        assert row["unread"] == 0


def test_the_formats_are_asked_for_by_name():
    with pytest.raises(ParameterError, match="a format must be one of"):
        flipped_bits(1, 1, ["none"])


def test_every_bit_of_a_small_file_counts(tmp_path):
    path = fitted(MODELS["GlobalMean"]).save(tmp_path / "model.air")
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), 13):
        path.write_bytes(flipped(whole, bit))
        with pytest.raises(ModelFileError):
            Recommender.load(path)


def test_the_damaged_tensor_is_named(saved):
    content = bytearray(saved.read_bytes())
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    content[end + header["item_factors_"]["data_offsets"][0]] ^= 1
    saved.write_bytes(content)
    with pytest.raises(ModelFileError, match="is damaged: tensor item_factors_ differs from its digest"):
        AIR.load(saved)


def test_a_file_of_version_3_without_digests_is_damaged(saved):
    metadata, arrays = parts_of(saved)
    for absent in (("digest",), ("digests",), ("digest", "digests")):
        kept = {name: text for name, text in metadata.items() if name not in absent}
        save_file(arrays, saved, kept)
        with pytest.raises(ModelFileError, match=r"damaged|not a whole"):
            AIR.load(saved)


@every_model
def test_two_saves_of_a_loaded_model_are_equal_in_bytes(make, tmp_path):
    first = fitted(make).save(tmp_path / "first.air")
    loaded = Recommender.load(first)
    files = [loaded.save(tmp_path / name).read_bytes() for name in ("second.air", "third.air")]
    assert files[0] == files[1] == first.read_bytes()


def test_safetensors_itself_reads_the_files(saved):
    metadata, arrays = parts_of(saved)
    assert metadata["model"] == "AIR"
    np.testing.assert_array_equal(arrays["item_factors_"], AIR.load(saved).item_factors_)


IN_PLACE = """
import sys
from pathlib import Path
from air_recsys import AIR
path = Path(sys.argv[1])
model = AIR.load(path)
users, items = model.interactions_.user_ids, model.interactions_.item_ids
before = model.predict(users, items[0]).sum(), model.item_factors_.sum()
with path.open("r+b") as file:  # as a careless copy does: the same file, shorter
    file.truncate(10)
assert (model.predict(users, items[0]).sum(), model.item_factors_.sum()) == before
model.save(path)
AIR.load(path)
"""


def test_a_file_that_is_rewritten_in_place_does_not_end_the_process(saved):
    done = subprocess.run([sys.executable, "-c", IN_PLACE, str(saved)], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# -------------------------------------------------------------------- contents, with right digests


def metadata_of(path: Path, **changes: Any) -> dict[str, str]:
    parameters = json.loads(parts_of(path)[0]["parameters"])
    solver = {name.removeprefix("solver__"): value for name, value in changes.items() if name.startswith("solver__")}
    own = {name: value for name, value in changes.items() if not name.startswith("solver__")}
    return {"parameters": json.dumps(parameters | own | {"solver": parameters["solver"] | solver})}


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("AIR-dense", {"solver__depth": -3}, "depth must be an integer >= 2, found -3"),
        ("AIR-dense", {"solver__name": "magic"}, "solver must be .*, found 'magic'"),
        ("AIR-dense", {"solver__learning_rate": 0}, "learning_rate must be 'auto' or a number > 0"),
        ("AIR-dense", {"solver__transforms": [["rows", -1.0]]}, "the strength of a transform"),
        ("AIR-dense", {"n_factors": 0}, "n_factors must be"),
        ("AIR-dense", {"adjacency": "none"}, "adjacency must be one of"),
        ("AIR-dense", {"device": "abacus"}, "device must be"),
        ("AIR-dense", {"random_state": -1}, "random_state must be"),
        ("AIR-dense", {"max_memory": "much"}, "max_memory must be"),
        ("AIR-dense", {"snapshot_epochs": [-1]}, "an entry of snapshot_epochs"),
        ("AIR-variational", {"solver__n_sweeps": 0}, "n_sweeps must be"),
    ],
)
def test_parameters_out_of_range_are_refused(name, changes, message, tmp_path):
    path = fitted(MODELS[name]).save(tmp_path / "model.air")
    rewrite(path, metadata_of(path, **changes))
    with pytest.raises(ModelFileError, match=f"not a whole air_recsys model file: {message}"):
        AIR.load(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("spread_scales", "expected numbers above 0 in scales, found 0.0"),
        ("spread_user_noise", "expected numbers above 0 in user_noise, found 0.0"),
        ("spread_item_covariances", "expected numbers above 0 in the diagonal of item_covariances, found 0.0"),
        ("spread_user_precisions", "expected positive definite matrices in user_precisions"),
    ],
)
@pytest.mark.parametrize("factor", [0, -1])
def test_variances_that_are_none_are_refused(name, message, factor, tmp_path):
    path = fitted(MODELS["AIR-variational"]).save(tmp_path / "model.air")
    rewrite(path, arrays={name: parts_of(path)[1][name] * factor})
    with pytest.raises(ModelFileError, match=message if factor == 0 else message.partition(", found")[0]):
        AIR.load(path)


@pytest.mark.parametrize(
    ("model", "drop", "message"),
    [
        ("AIR-variational", ["spread_user_covariances"], "covariances of both sides beside means"),
        ("AIR-variational", ["spread_user_covariances", "spread_item_covariances"], "covariances of both sides"),
        ("AIR-langevin", ["spread_users"], "spread_users|missing|users"),
    ],
)
def test_a_posterior_that_is_not_whole_is_refused(model, drop, message, tmp_path):
    path = fitted(MODELS[model]).save(tmp_path / "model.air")
    rewrite(path, drop=drop)
    with pytest.raises(ModelFileError, match=message):
        AIR.load(path)


def test_factors_of_no_width_are_refused(saved):
    nothing = {"user_factors_": np.zeros((12, 0), np.float32), "item_factors_": np.zeros((9, 0), np.float32)}
    rewrite(saved, arrays=nothing)
    with pytest.raises(ModelFileError, match="expected factors of at least one column, found none"):
        AIR.load(saved)


def test_a_ranker_with_settings_out_of_range_is_refused(tmp_path):
    path = fitted(MODELS["GraphRanker"]).save(tmp_path / "model.air")
    parameters = json.loads(parts_of(path)[0]["parameters"])
    rewrite(path, {"parameters": json.dumps(parameters | {"settings": {"regression_penalty": 0}})})
    with pytest.raises(ModelFileError, match="regression_penalty must be a number > 0"):
        Recommender.load(path)


def test_rounded_covariances_give_deviations_that_are_numbers(tmp_path):
    """A matrix with a positive diagonal need not be positive definite; what it makes is a number all the same."""
    path = fitted(MODELS["AIR-variational"]).save(tmp_path / "model.air")
    covariances = parts_of(path)[1]["spread_user_covariances"]
    rewrite(path, arrays={"spread_user_covariances": np.abs(covariances) * 0 + 1e3 * np.sign(covariances + 1)})
    loaded: Any = AIR.load(path)
    users, items = loaded.interactions_.user_ids, loaded.interactions_.item_ids[0]
    assert np.isfinite(loaded.predict(users, items, return_std=True)[1]).all()
    assert_same_answers(AIR.load(path), loaded)
