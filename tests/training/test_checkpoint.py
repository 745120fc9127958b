"""Checkpoint files: whole or absent, of one training only, and never executed."""

import json
import pickle

import numpy as np
import pytest
import torch
from sealing import tensor_bytes

from air_recsys.exceptions import CheckpointError
from air_recsys.training.checkpoint import FORMAT, FORMAT_VERSION, CheckpointFile

MARK = {"data": "d", "parameters": {"depth": 3, "random_state": 0}}
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


def test_what_is_read_is_what_was_written(file):
    file.write(STATE)
    assert plain(file.read()) == plain(STATE)


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


def test_places_where_no_file_can_stand_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="found the folder"):
        CheckpointFile(tmp_path, MARK)
    with pytest.raises(CheckpointError, match="there is no folder"):
        CheckpointFile(tmp_path / "none" / "run.ckpt", MARK)


def test_no_file_is_no_checkpoint(file):
    with pytest.raises(CheckpointError, match="found no file"):
        file.read()


def test_what_cannot_be_written_leaves_what_was_there(file, monkeypatch):
    file.write({"epoch": 1})

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(CheckpointError, match="No space left"):
        file.write({"epoch": 2})
    monkeypatch.undo()
    assert file.read() == {"epoch": 1}
    assert [path.name for path in file.path.parent.iterdir()] == ["run.ckpt"]


def test_a_pickle_is_no_checkpoint(file):
    class Harm:
        def __reduce__(self):
            return pytest.fail, ("a checkpoint was executed",)

    file.path.write_bytes(pickle.dumps(Harm()))
    with pytest.raises(CheckpointError, match="no whole checkpoint"):
        file.read()


def test_every_cut_of_a_file_is_refused(file):
    file.write(STATE)
    content = file.path.read_bytes()
    for length in range(0, len(content), 7):
        file.path.write_bytes(content[:length])
        with pytest.raises(CheckpointError, match="no whole checkpoint"):
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
