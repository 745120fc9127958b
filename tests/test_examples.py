"""Every example runs as a person would run it, in an empty folder, says something and leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example, tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    (tmp_path / "work").mkdir()
    ended = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path / "work",
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert len(ended.stdout.splitlines()) >= 3
    assert "Traceback" not in ended.stderr
    assert list((tmp_path / "work").iterdir()) == []


def test_there_is_one_for_every_question():
    found = {path.stem for path in EXAMPLES}
    assert found >= {
        "surprise_cross_validation",
        "implicit_top_n",
        "imputer_pipeline",
        "cornac_experiment",
        "tuning",
        "fold_in",
        "own_csv",
        "load_elsewhere",
        "faiss_index",
        "plots",
        "explain",
    }
