"""Where there is no GPU, the tests of this folder run on an emulated one, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_the_tests_of_this_folder_pass_on_an_emulated_device():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "emulation.plugin", "-m", "gpu", str(HERE)]
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        command, cwd=HERE.parents[1], env=environment, capture_output=True, text=True, timeout=1200, check=False
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2_000:]
