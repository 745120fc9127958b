"""What `import air_recsys` and the command line bring into memory: what is needed, and nothing before it is."""

import subprocess
import sys

import pytest

LATER = {
    "cornac",
    "faiss",
    "fastapi",
    "h5py",
    "implicit",
    "matplotlib",
    "mlflow",
    "myfm",
    "networkx",
    "optuna",
    "PIL",
    "pooch",
    "pygsp",
    "ray",
    "skimage",
    "surprise",
    "tensorboard",
    "torch_geometric",
    "typer",
    "uvicorn",
}
HEAVY = {"torch", "numpy", "scipy", "pandas", "sklearn"}
EVERYWHERE = "air_recsys, air_recsys.datasets, air_recsys.graphs, air_recsys.models, air_recsys.report.plots"
SHOW = "print(*{name.partition('.')[0] for name in sys.modules})"
# The last line: what the command itself writes stands before it.
COMMAND = "import sys\nfrom air_recsys.cli import main\ntry:\n    main(sys.argv[1:])\nfinally:\n    " + SHOW


def modules_after(code: str, *arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_the_import_brings_nothing_but_itself():
    modules = modules_after(f"import sys, air_recsys; assert air_recsys.__version__; {SHOW}")
    assert modules & (HEAVY | LATER) == set()


def test_a_public_name_brings_what_it_needs_and_no_extra():
    modules = modules_after(f"import sys; from air_recsys import AIR; {SHOW}")
    assert modules & LATER == set()
    assert modules >= HEAVY  # the test sees what there is


def test_every_public_name_is_there_and_the_module_is_made_once():
    code = "import air_recsys; first = {name: getattr(air_recsys, name) for name in dir(air_recsys)}"
    check = "assert set(first) == set(air_recsys.__all__); assert first.items() <= vars(air_recsys).items()"
    subprocess.run([sys.executable, "-c", f"{code}; {check}; assert not hasattr(air_recsys, 'none')"], check=True)


@pytest.mark.parametrize(
    "arguments", ["--help", "--version", "--verison", "nonsense", "train --help", "bench --help", "reproduce --help"]
)
def test_the_command_line_answers_without_the_library(arguments):
    modules = modules_after(COMMAND, *arguments.split())
    assert modules & (HEAVY | LATER - {"typer"}) == set()
    assert "typer" in modules


def test_no_import_looks_for_the_widgets_of_a_notebook():
    """Where there are none, tqdm.auto warns in a notebook."""
    code = f"import sys, {EVERYWHERE}; print('ipywidgets' in sys.modules, 'tqdm' in sys.modules)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False True\n", "")
