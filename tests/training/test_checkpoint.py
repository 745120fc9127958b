"""Checkpoint files: whole or absent, of one training only, locked while it writes, and never executed."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
import torch
from power_cuts import PowerCut, cut_at
from sealing import tensor_bytes

from air_recsys import AIR
from air_recsys.exceptions import CheckpointError
from air_recsys.training.checkpoint import FORMAT, FORMAT_VERSION, CheckpointFile
from air_recsys.training.checkpointer import FileCheckpointer

MARK: dict[str, Any] = {"data": "d", "parameters": {"depth": 3, "random_state": 0}}
STATE = {
    "epoch": 3,
    "text": "ümlaut",
    "none": None,
    "numbers": [float("nan"), float("inf"), 1e-300, 2**100, True],
    "empty": {},
    "": {"array": "not a name", "tensor": "nor this"},
    "tensors": [torch.arange(6.0).reshape(2, 3).T, torch.tensor(5), torch.zeros(0, 4), {"deep": torch.ones(1)}],
    "arrays": (np.arange(3, dtype=np.uint8), np.array([], dtype=np.int32)),
}
GOOD = {
    "format": FORMAT,
    "format_version": str(FORMAT_VERSION),
    "fingerprint": json.dumps(MARK),
    "state": '{"": {"epoch": 1}}',
}


@pytest.fixture
def file(tmp_path):
    return CheckpointFile(tmp_path / "run.ckpt", MARK)


def plain(value):
    """Return a state with what tells tensors and arrays apart, so that two of them can be compared."""
    if isinstance(value, dict):
        return {name: plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, torch.Tensor | np.ndarray):
        return type(value).__name__, str(value.dtype), tuple(value.shape), value.tolist()
    return repr(value)


def test_what_is_read_is_what_was_written_and_makes_the_same_bytes(file):
    file.write(STATE)
    content = file.path.read_bytes()
    found = file.read()
    assert plain(found) == plain(STATE)
    file.write(found)
    assert file.path.read_bytes() == content


def test_a_tensor_is_kept_as_it_was_when_it_was_written(file):
    tensor = torch.zeros(3)
    file.write({"now": tensor, "same": tensor})
    tensor.fill_(1)
    assert plain(file.read()) == plain({"now": torch.zeros(3), "same": torch.zeros(3)})


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ({**MARK, "data": "e"}, "written for other data"),
        ({**MARK, "parameters": {"depth": 4, "random_state": 0}}, "written with depth=3, found depth=4"),
        ({**MARK, "parameters": {"depth": 3}}, "written with random_state=0, found random_state=None"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(file, mark, message):
    file.write(STATE)
    with pytest.raises(CheckpointError, match=message):
        CheckpointFile(file.path, mark).read()


def test_places_where_no_file_can_stand_are_refused_before_any_work(file, tmp_path):
    for path, message in (
        (tmp_path, "found the folder"),
        (tmp_path / "none" / "run.ckpt", "there is no folder"),
        (tmp_path / ("x" * 300), r"cannot write the checkpoint .*File name too long"),
    ):
        with pytest.raises(CheckpointError, match=message):
            model().fit(RATINGS, checkpoint=path)
    with pytest.raises(CheckpointError, match="found no file"):
        file.read()


def test_what_cannot_be_written_or_would_not_be_read_leaves_what_was_there(file, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    file.write({"epoch": 1})
    with pytest.raises(CheckpointError, match=r"cannot write the checkpoint .*found NaN or infinity in tensor 0"):
        file.write({"logits": torch.tensor([1.0, torch.nan])})
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(CheckpointError, match="No space left"):
            file.write({"epoch": 2})
    assert file.read() == {"epoch": 1}
    assert [path.name for path in file.path.parent.iterdir()] == ["run.ckpt"]


class Harm:
    def __reduce__(self):
        return pytest.fail, ("a checkpoint was executed",)


def test_pickles_cut_files_and_changed_bits_are_refused(file):
    file.write(STATE)
    content = file.path.read_bytes()
    for wrong in (pickle.dumps(Harm()), *(content[:length] for length in range(0, len(content), 7))):
        file.path.write_bytes(wrong)
        with pytest.raises(CheckpointError, match="no whole checkpoint"):
            file.read()
    for back in (1, 9):
        changed = bytearray(content)
        changed[-back] ^= 4
        file.path.write_bytes(changed)
        with pytest.raises(CheckpointError, match=r"run\.ckpt is damaged: tensor . differs from its digest"):
            file.read()


@pytest.mark.parametrize(
    "change",
    [
        {"format": "another"},
        {"fingerprint": "{}"},
        {"fingerprint": "[1]"},
        {"fingerprint": '{"data": "d", "parameters": 3}'},
        {"state": "{}"},
        {"state": '{"tensor": "9"}'},
        {"state": '{"tensor": ["0"]}'},
        {"state": '{"": 3}'},
        {"state": "[" * 100_000},
        {"state": "3"},
    ],
)
def test_headers_that_make_no_sense_are_refused(file, change):
    file.path.write_bytes(tensor_bytes({"0": np.zeros(1)}, GOOD | change))
    with pytest.raises(CheckpointError, match="no whole checkpoint"):
        file.read()


@pytest.mark.parametrize("version", ["1", str(FORMAT_VERSION - 1), str(FORMAT_VERSION + 1), ""])
def test_a_checkpoint_of_another_version_is_refused_by_name(file, version):
    file.path.write_bytes(tensor_bytes({"0": np.zeros(1)}, GOOD | {"format_version": version}))
    with pytest.raises(CheckpointError, match=f"version '{version}', expected '{FORMAT}', version {FORMAT_VERSION}"):
        file.read()


# -------------------------------------------------------------------- two trainings on one checkpoint

TRAINING = """
import sys, time
import numpy as np
from air_recsys import AIR
ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
ratings[0, 0] = np.nan
def wait(record):
    if record.epoch == 12:
        print("at work", flush=True)
        time.sleep(60)
AIR.for_ratings(random_state=0, device="cpu").fit(ratings, checkpoint=sys.argv[1], every=5, callbacks=[wait])
"""
RATINGS = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
RATINGS[0, 0] = np.nan


def model() -> AIR:
    return AIR.for_ratings(random_state=0, device="cpu")


def test_a_second_training_on_a_checkpoint_is_refused_until_the_first_has_died(tmp_path):
    path = tmp_path / "run.ckpt"
    process = subprocess.Popen([sys.executable, "-c", TRAINING, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    whole = path.read_bytes()
    link = tmp_path / "link.ckpt"
    link.symlink_to(path)
    for given in (path, link):
        for resume_from in (None, path):
            with pytest.raises(
                CheckpointError, match=rf"another training \(process {process.pid}\) writes to {given}"
            ):
                model().fit(RATINGS, checkpoint=given, resume_from=resume_from)
    assert path.read_bytes() == whole
    model().fit(RATINGS, resume_from=path)  # which writes nothing
    process.kill()
    process.communicate()
    resumed = model().fit(RATINGS, checkpoint=path, resume_from=path)
    np.testing.assert_array_equal(resumed.item_factors_, model().fit(RATINGS).item_factors_)
    link.unlink()
    assert list(tmp_path.iterdir()) == [path]


def test_a_second_thread_is_refused_likewise(tmp_path):
    path, at_work, go_on = tmp_path / "run.ckpt", threading.Event(), threading.Event()

    def wait(record):
        at_work.set()
        go_on.wait(60)

    thread = threading.Thread(target=lambda: model().fit(RATINGS, checkpoint=path, callbacks=[wait]))
    thread.start()
    try:
        assert at_work.wait(60)
        with pytest.raises(CheckpointError, match="another training"):
            model().fit(RATINGS, checkpoint=path)
        model().fit(RATINGS, checkpoint=tmp_path / "other.ckpt")
    finally:
        go_on.set()
        thread.join()
    model().fit(RATINGS, checkpoint=path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other.ckpt", "run.ckpt"]


def test_the_lock_is_let_go_of_in_all_cases(tmp_path):
    path = tmp_path / "run.ckpt"
    with pytest.raises(PowerCut):
        model().fit(RATINGS, checkpoint=path, every=1, callbacks=[cut_at(0)])
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(CheckpointError, match="was written with"):
        model().set_params(solver__n_sweeps=7).fit(RATINGS, checkpoint=path, resume_from=path)
    assert list(tmp_path.iterdir()) == [path]
    FileCheckpointer(MARK, tmp_path / "other.ckpt")  # which nobody closes
    assert list(tmp_path.iterdir()) == [path]
