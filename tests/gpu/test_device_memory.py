"""The memory of a device is within the plan, and too little of it is said; skipped where there is no GPU."""

import numpy as np
import pytest
import torch
from gpu_cases import model, needs_emulation, needs_gpu, ratings

from air_recsys.exceptions import MemoryLimitError
from air_recsys.graphs.candidates import near_rows, nearest_rows
from air_recsys.nn import memory

pytestmark = needs_gpu

LARGE = ratings(300, 200, share=0.2)


def peak_of(run):
    """Bytes that are taken on the device beside those taken before."""
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    run()
    return torch.cuda.max_memory_allocated() - before


@pytest.mark.parametrize("solver", ["adam", "variational", "langevin"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_plan_is_above_the_peak(solver, dtype):
    made = model("cuda", solver, n_factors=8, dtype=dtype)
    assert peak_of(lambda: made.fit(LARGE)) <= made.memory_plan(LARGE).total


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("search", [nearest_rows, near_rows])
def test_a_search_for_near_rows_stays_within_its_share_of_the_plan(search, dtype):
    points, k = torch.randn(5_000, 4, dtype=dtype, device="cuda"), 10
    lists = memory._search(len(points), k)
    assert peak_of(lambda: search(points, points, k)) <= lists


@needs_emulation
@pytest.mark.parametrize("solver", ["adam", "variational"])
def test_memory_that_runs_out_within_a_training_leaves_the_last_good_state(solver, monkeypatch):
    from emulation.machine import machine

    def run_out(record):
        if record.epoch == 4:
            monkeypatch.setattr(machine(), "hold", refuse)

    def refuse(block, size):
        monkeypatch.undo()
        raise torch.OutOfMemoryError("CUDA out of memory (emulated)")

    fitted = model("cuda", solver, n_epochs=8) if solver == "adam" else model("cuda", solver, n_sweeps=8)
    with pytest.raises(MemoryLimitError, match="last good state"):
        fitted.fit(ratings(), callbacks=[run_out])
    assert fitted.stopped_by_ == "memory"
    assert np.isfinite(fitted.user_factors_).all()
