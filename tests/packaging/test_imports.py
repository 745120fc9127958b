"""What `import air_recsys` brings into memory: nothing of an extra, and nothing that only some commands need."""

import subprocess
import sys

LATER = {
    "cornac",
    "faiss",
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
}
EVERYWHERE = "air_recsys, air_recsys.datasets, air_recsys.graphs, air_recsys.models, air_recsys.plotting"
SHOW = "import sys, air_recsys; print(*{name.partition('.')[0] for name in sys.modules})"


def test_the_import_brings_no_extra_and_no_part_of_the_command_line():
    done = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert found & LATER == set()
    assert {"torch", "pandas"} <= found  # the test sees what there is


def test_no_import_looks_for_the_widgets_of_a_notebook():
    """Where there are none, tqdm.auto warns."""
    code = f"import sys, {EVERYWHERE}; print('tqdm.auto' in sys.modules, 'tqdm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
