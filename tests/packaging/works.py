"""That an installed package works: a model saved, loaded in another process, the demo, the time of its import."""

from __future__ import annotations

from environments import Environment, PackagingError, command

_SAVE = """
import sys
from importlib import resources
import numpy as np
import air_recsys
from air_recsys import AIR
from benchmarks.paper.recipes import recipes_of
from air_recsys.data.sets.registry import read_registry

assert air_recsys.__file__.startswith(sys.argv[1]), air_recsys.__file__
assert resources.files("air_recsys").joinpath("py.typed").is_file()
assert recipes_of("table1") and read_registry()
model = AIR.for_ratings(n_sweeps=5, random_state=0, device="cpu").fit(np.arange(1.0, 65.0).reshape(8, 8))
model.save("model.air")
model.item_graph_.to_html("items.html")
print(model.predict([0, 1, 7], [3, 2, 0]).tolist())
"""
_LOAD = """
from air_recsys import AIR
print(AIR.load("model.air").predict([0, 1, 7], [3, 2, 0]).tolist())
"""
# Processor time: the wall's depends on what else runs. torch is imported before, so it does not count.
_IMPORT = """
import time
import torch
begin = time.process_time()
from air_recsys import AIR
print(f"{time.process_time() - begin:.2f}")
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


def import_seconds(environment: Environment) -> float:
    """Least processor time of three imports, torch's not counted."""
    return min(float(environment.run(_IMPORT)) for _ in range(3))


def versions(environment: Environment) -> dict[str, str]:
    """Return the versions of Python and of the core's packages."""
    return dict(zip(("python", *CORE), environment.run(_VERSIONS, *CORE).split(), strict=True))
