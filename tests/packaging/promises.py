"""What an installed package promises: a model in another process, the demo, and lines of code for each extra."""

from __future__ import annotations

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
    "data": ["graph.to_parquet('graph.parquet')", "import h5py"],
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
    "chemistry": ["from air_recsys.dti import scaffolds; scaffolds({'ethanol': 'CCO'})"],
    "serve": ["import air_recsys.serving", "import air_recsys.serving.server"],
    "graphs": ["graph.to_pyg()", "graph.to_pygsp()"],
    "test": ["import air_recsys.adapters.myfm_peer"],
}

_OPEN = """
import os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from air_recsys import AIR, Interactions, SimilarityGraph

data = Interactions.from_dense(np.arange(1.0, 65.0).reshape(8, 8))
graph = SimilarityGraph.from_factors(np.arange(16.0).reshape(8, 2) ** 2, range(8), k=2)
picture = np.linspace(0, 1, 256).reshape(16, 16)
exec(sys.argv[1])
sys.stdout.flush()
os._exit(0)  # threads of a host may outlive the last line
"""


def kept(environment: Environment, extra: str) -> None:
    """Run the lines of an extra."""
    environment.run(_OPEN, "\n".join(DOORS.get(extra, [])))


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
