"""What an installed package promises: models, the demo, light imports, and lines of code that work with each extra."""

from __future__ import annotations

import json

from environments import Environment, PackagingError, command

# networkx stands in `viz`, too, but is never missing: torch brings it.
DOORS = {
    "surprise": ["data.to_surprise()", "import air_recsys.adapters.surprise"],
    "implicit": ["import air_recsys.adapters.implicit"],
    "cornac": ["import air_recsys.adapters.cornac"],
    "lightfm": ["from air_recsys.adapters.lightfm_peer import LightFMLists; LightFMLists('warp')"],
    "viz": [
        "from air_recsys.report.plots import plot_ratings; plot_ratings(data).savefig('ratings.png')",
        "from air_recsys.report.plots import plot_adjacency; plot_adjacency(graph).savefig('graph.png')",
    ],
    "data": ["graph.to_parquet('graph.parquet')", "absent_matlab_file()"],
    "images": [
        "from air_recsys.images import save_image; save_image('picture.png', picture)",
        "from air_recsys.metrics import ssim; ssim(picture, picture)",
    ],
    "tune": ["from air_recsys.evaluation.tuning import tune; tune(data, n_trials=1, device='cpu')"],
    "track": [
        "from air_recsys.models.tracking import TensorBoardCallback; TensorBoardCallback('board').close()",
        "from air_recsys.models.tracking import MLflowCallback; MLflowCallback(AIR(), 'sqlite:///runs.db', 'films')",
    ],
    "ann": ["AIR.for_ratings(n_sweeps=2, device='cpu').fit(data).to_faiss()"],
    "distributed": ["import air_recsys.distributed.scoring"],
    "chemistry": ["from air_recsys.dti import smiles_similarity; smiles_similarity({'ethanol': 'CCO'})"],
    "serve": ["import air_recsys.serving", "import air_recsys.serving.server"],
    "graphs": ["graph.to_pyg()", "graph.to_pygsp()"],
    "test": ["import air_recsys.adapters.myfm_peer"],
}

_OPEN = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from air_recsys import AIR, Interactions, SimilarityGraph
from air_recsys.data.sets.monti import read_matlab
from air_recsys.exceptions import DataFileError

data = Interactions.from_dense(np.arange(1.0, 65.0).reshape(8, 8))
graph = SimilarityGraph.from_factors(np.arange(16.0).reshape(8, 2) ** 2, range(8), k=2)
picture = np.linspace(0, 1, 256).reshape(16, 16)

def absent_matlab_file():
    try:
        read_matlab("absent.mat", ["M"])
    except DataFileError:
        pass

found = {}
for door in json.loads(sys.argv[1]):
    try:
        exec(door)
    except Exception as error:
        found[door] = f"{type(error).__name__}: {error}".splitlines()[0]
    else:
        found[door] = ""
print()
print(json.dumps(found))
sys.stdout.flush()
os._exit(0)  # threads of a host may outlive the last line
"""

_IMPORT = """
import importlib, importlib.util, re, sys
from importlib.metadata import packages_distributions, requires

def plain(name):
    return re.sub("[-_.]+", "-", name).lower()

extra = sys.argv[1]
lines = [line.partition(";") for line in requires("air-recsys")]
wanted = {plain(re.match("[A-Za-z0-9_.-]+", line)[0]) for line, _, marker in lines if f'extra == "{extra}"' in marker}
wanted -= {"air-recsys", "myfm"}  # myfm wants a part of setuptools that is gone; our adapter imports it without
modules = {
    module: distribution
    for module, distributions in packages_distributions().items()
    for distribution in map(plain, distributions)
    if distribution in wanted and module.isidentifier() and not module.startswith("_")
    if importlib.util.find_spec(module)  # some list folders that hold no module
}
absent = wanted - set(modules.values())
assert not absent, f"no module of {sorted(absent)}"
for module in sorted(modules):
    importlib.import_module(module)
print(" ".join(sorted(modules)))
"""


def open_doors(environment: Environment, doors: list[str]) -> dict[str, str]:
    """Run each line in an environment: its error, or nothing where it works."""
    return json.loads(environment.run(_OPEN, json.dumps(doors)).splitlines()[-1])


def closed(environment: Environment) -> dict[str, str]:
    """Return the doors that do not name their extra where no extra is installed, with what they say."""
    found = open_doors(environment, [door for doors in DOORS.values() for door in doors])
    wanted = {door: f"pip install 'air-recsys[{extra}]'" for extra, doors in DOORS.items() for door in doors}
    return {door: text or "no error" for door, text in found.items() if wanted[door] not in text}


def kept(environment: Environment, extra: str) -> str:
    """Import what an extra brings and run its lines; return the modules.

    Raises
    ------
    PackagingError
        Where a module is missing or a line fails.
    """
    modules = environment.run(_IMPORT, extra).strip()
    broken = [f"{door}: {text}" for door, text in open_doors(environment, DOORS.get(extra, [])).items() if text]
    if broken:
        raise PackagingError("\n".join(broken))
    return modules


# -------------------------------------------------------------------- the core

_SAVE = """
import sys
from importlib import resources
import numpy as np
import air_recsys
from air_recsys import AIR
from air_recsys.data.sets.registry import read_registry

assert air_recsys.__file__.startswith(sys.argv[1]), air_recsys.__file__
assert resources.files("air_recsys").joinpath("py.typed").is_file()
assert read_registry()
model = AIR.for_ratings(n_sweeps=5, random_state=0, device="cpu").fit(np.arange(1.0, 65.0).reshape(8, 8))
model.save("model.air")
model.item_graph_.to_html("items.html")
print(model.predict([0, 1, 7], [3, 2, 0]).tolist())
"""
_LOAD = """
from air_recsys import AIR
print(AIR.load("model.air").predict([0, 1, 7], [3, 2, 0]).tolist())
"""
_VERSIONS = """
import sys
from importlib.metadata import version
print(sys.version.split()[0], *[version(name) for name in sys.argv[1:]])
"""
CORE = ("torch", "numpy", "scipy", "pandas", "scikit-learn")


def round_trip(environment: Environment) -> None:
    """Fit and save in one process, load in another; both predict the same, and the code is the installed one."""
    saved = environment.run(_SAVE, str(environment.folder))
    loaded = environment.run(_LOAD)
    if saved != loaded:
        raise PackagingError(f"saved {saved}, loaded {loaded}")


def demo(environment: Environment) -> None:
    """Run the first command of the README; its model can be loaded."""
    command([environment.folder / "bin" / "air-recsys", "demo", "--out", "demo"], environment.folder)
    environment.run("from air_recsys import AIR; AIR.load('demo/model.air')")


def versions(environment: Environment) -> dict[str, str]:
    """Return the versions of Python and of the core's packages."""
    return dict(zip(("python", *CORE), environment.run(_VERSIONS, *CORE).split(), strict=True))
