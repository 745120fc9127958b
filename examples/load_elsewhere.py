"""Train here, use there: a model file read by another Python process, as it would be on another machine.

A model file holds NumPy arrays and JSON, no code and no device: one that was trained on a GPU loads on a machine
without one, and the reverse.

Run: python examples/load_elsewhere.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from air_recsys import AIR
from air_recsys.datasets import make_syn_netflix

THERE = """
import sys
from air_recsys import AIR

model = AIR.load(sys.argv[1])
print(model.recommend("user 7", n=3).to_string(index=False))
"""


def make_ratings() -> pd.DataFrame:
    """Generate ratings of 60 users and 40 items in hidden groups."""
    data = make_syn_netflix(60, 40, 4, 4, random_state=0)
    users, items = np.nonzero(data.train_mask)
    names = {"user": [f"user {user}" for user in users], "item": [f"item {item}" for item in items]}
    return pd.DataFrame(names | {"rating": data.matrix[users, items].round()})


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = AIR.for_ratings(random_state=0).fit(make_ratings())  # on a GPU where there is one
        path = model.save(Path(folder, "model.air"))
        print(f"trained on {model.device_}, saved {path.stat().st_size / 1024:.0f} KiB")
        here = model.recommend("user 7", n=3).to_string(index=False)

        there = subprocess.run([sys.executable, "-c", THERE, path], capture_output=True, text=True, check=True).stdout
        print("in a fresh process:", there, sep="\n")
        assert there.strip() == here.strip()


if __name__ == "__main__":
    main()
