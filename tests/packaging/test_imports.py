"""What `import air_recsys` and the command line bring into memory: what is needed, and nothing before it is."""

import subprocess
import sys

LATER = {
    *("cornac", "faiss", "fastapi", "h5py", "implicit", "matplotlib", "mlflow", "myfm", "networkx", "optuna", "PIL"),
    *("pooch", "pygsp", "ray", "skimage", "surprise", "tensorboard", "torch_geometric", "typer", "uvicorn"),
}
HEAVY = {"torch", "numpy", "scipy", "pandas", "sklearn"}
SHOW = "print(*{name.partition('.')[0] for name in sys.modules})"
NAMES = f"""
import sys, air_recsys
assert air_recsys.__version__
{SHOW}
from air_recsys import AIR
{SHOW}
first = {{name: getattr(air_recsys, name) for name in dir(air_recsys)}}
assert set(first) == set(air_recsys.__all__)
assert first.items() <= vars(air_recsys).items()  # made once
assert not hasattr(air_recsys, "none")
import air_recsys.datasets, air_recsys.graphs, air_recsys.models, air_recsys.report.plots
{SHOW}
"""
COMMANDS = f"""
import sys
from air_recsys.cli import main
for words in ("--help", "--version", "--verison", "nonsense", "train --help", "bench --help", "reproduce --help"):
    try:
        main(words.split())
    except SystemExit:
        pass
{SHOW}
"""


def shown(code: str, *options: str) -> list[set[str]]:
    """The modules of each line that a program has printed."""
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return [set(line.split()) for line in done.stdout.splitlines()]


def test_imports_bring_what_they_need_and_no_extra():
    alone, with_air, everything = shown(NAMES, "-W", "error")
    assert alone & (HEAVY | LATER) == set()
    assert with_air & LATER == set()
    assert with_air >= HEAVY  # the test sees what there is
    assert "tqdm" in everything
    assert "ipywidgets" not in everything  # where there are none, tqdm.auto warns in a notebook


def test_the_command_line_answers_without_the_library():
    modules = shown(COMMANDS)[-1]
    assert modules & (HEAVY | LATER - {"typer"}) == set()
    assert "typer" in modules
