"""Lists of many users need the memory of a block."""

import subprocess
import sys

import pytest


def test_a_large_job_needs_the_memory_of_a_block():
    """50,000 users x 4,000 items are 800 MB of scores."""
    pytest.importorskip("resource", reason="needs Unix")
    code = """
import resource
import numpy as np, torch
from air_recsys.models.ranking.top_items import top_items
torch.set_num_threads(1)
rng = np.random.default_rng(0)
users, items, offsets = (rng.normal(size=shape).astype("f4") for shape in ((50_000, 4), (4_000, 4), (4_000,)))
top_items(users[:200], items, offsets, 10)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
top_items(users, items, offsets, 10)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    grown = int(run.stdout) * (1 if sys.platform == "darwin" else 1024)  # bytes
    lists = 50_000 * 10 * (8 + 4)
    assert grown < lists + 50e6


def test_ties_of_all_items_need_no_more_than_blocks():
    """All items tie for all users: 2,000 users x 20,000 items are 320 MB of scores in double precision."""
    pytest.importorskip("resource", reason="needs Unix")
    code = """
import resource
import numpy as np, torch
from air_recsys.models.ranking.top_items import top_items
torch.set_num_threads(1)
users, items, offsets = (np.zeros(shape, "f4") for shape in ((2_000, 2), (20_000, 2), 20_000))
top_items(users[:10], items, offsets, 10)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lists, _ = top_items(users, items, offsets, 10)
assert (lists == np.arange(10)).all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) * (1 if sys.platform == "darwin" else 1024) < 120e6
