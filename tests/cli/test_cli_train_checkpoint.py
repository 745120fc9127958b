"""`air-recsys train --checkpoint`: go on after Ctrl-C, with the model that an unbroken training ends in."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from air_recsys import AIR
from air_recsys.cli import main
from air_recsys.datasets import make_planted_ratings


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "ratings.csv"
    make_planted_ratings(60, 40, 900, random_state=0).interactions.to_frame().to_csv(path, index=False)
    return path


def options(table, *more):
    settings = ["--set", "solver=langevin", "--set", "n_sweeps=300", "--device", "cpu"]
    return ["train", str(table), *settings, *map(str, more)]


def run(arguments, status=0):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == status


def test_ctrl_c_writes_the_model_and_the_same_command_goes_on(table, tmp_path):
    checkpoint, model, whole = tmp_path / "run.ckpt", tmp_path / "model.air", tmp_path / "whole.air"
    command = options(table, "--model", model, "--checkpoint", checkpoint, "--every", 5)
    program = [sys.executable, "-c", "from air_recsys.cli import main; main()", *command]
    # A job in the background ignores Ctrl-C, and so would what it starts.
    options_of = {"stdout": subprocess.PIPE, "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(program, env=os.environ | {"OMP_NUM_THREADS": "1"}, **options_of) as process:
        while not checkpoint.exists() and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        told = process.stdout.read().decode()
    assert process.returncode == 130
    assert "training was interrupted at sweep" in told
    assert AIR.load(model).stopped_by_ == "interrupt"
    run(command)
    run(options(table, "--model", whole))
    resumed, expected = AIR.load(model), AIR.load(whole)
    assert (resumed.stopped_by_, resumed.n_iter_) == ("n_sweeps", 300)
    np.testing.assert_array_equal(resumed.user_factors_, expected.user_factors_)


def test_a_checkpoint_of_other_settings_is_an_error_with_a_way_out(table, tmp_path, capsys):
    common = ["--model", tmp_path / "model.air", "--checkpoint", tmp_path / "run.ckpt"]
    run(options(table, *common, "--set", "n_sweeps=5"))
    run(options(table, *common, "--set", "n_sweeps=6"), status=1)
    assert "written with solver__n_sweeps=5, found solver__n_sweeps=6; give another path" in capsys.readouterr().err
