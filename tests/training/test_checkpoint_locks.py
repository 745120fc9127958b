"""Two trainings on one checkpoint, and checkpoints that are damaged."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from air_recsys import AIR
from air_recsys.exceptions import CheckpointError
from air_recsys.training.checkpoint import CheckpointFile
from air_recsys.training.checkpointer import FileCheckpointer

MARK = {"data": "d", "parameters": {"depth": 3}}
RATINGS = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
RATINGS[0, 0] = np.nan
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


class StopHereError(Exception):
    """What a callback raises."""


def test_the_lock_is_let_go_of_in_all_cases(tmp_path):
    path = tmp_path / "run.ckpt"

    def stop(record):
        raise StopHereError

    with pytest.raises(StopHereError):
        model().fit(RATINGS, checkpoint=path, every=1, callbacks=[stop])
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(CheckpointError, match="was written with"):
        model().set_params(solver__n_sweeps=7).fit(RATINGS, checkpoint=path, resume_from=path)
    assert list(tmp_path.iterdir()) == [path]
    FileCheckpointer(MARK, tmp_path / "other.ckpt")  # which nobody closes
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_where_no_checkpoint_can_stand_is_named_before_any_work(tmp_path):
    with pytest.raises(CheckpointError, match=r"cannot write the checkpoint .*File name too long"):
        model().fit(RATINGS, checkpoint=tmp_path / ("x" * 300))


def test_what_would_not_be_read_replaces_nothing(tmp_path):
    file = CheckpointFile(tmp_path / "run.ckpt", MARK)
    file.write({"logits": torch.ones(2)})
    with pytest.raises(CheckpointError, match=r"cannot write the checkpoint .*found NaN or infinity in tensor 0"):
        file.write({"logits": torch.tensor([1.0, torch.nan])})
    torch.testing.assert_close(file.read()["logits"], torch.ones(2))


def test_the_same_state_makes_the_same_bytes(tmp_path):
    state = {"b": torch.ones(2), "a": [np.arange(3), None, 0.5]}
    contents = set()
    for name in ("one", "two"):
        file = CheckpointFile(tmp_path / name, MARK)
        file.write(state)
        file.write(file.read())
        contents.add(file.path.read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize("back", [1, 300])
def test_a_changed_bit_is_named(back, tmp_path: Path):
    file = CheckpointFile(tmp_path / "run.ckpt", MARK)
    file.write({"logits": torch.ones(50, dtype=torch.float64)})
    content = bytearray(file.path.read_bytes())
    content[-back] ^= 4
    file.path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"run\.ckpt is damaged: tensor 0 differs from its digest"):
        file.read()
