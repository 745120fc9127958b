"""A training goes on where it stopped, on the same device or on another; skipped where there is no GPU."""

import numpy as np
import pytest
from gpu_cases import assert_agree, by_solver, model, needs_gpu, ratings, scores

pytestmark = needs_gpu


def resumed(solver, first, second, path):
    stop = [lambda record: record.epoch >= 2]
    model(first, solver).fit(ratings(), checkpoint=path, every=2, callbacks=stop)
    return scores(model(second, solver).fit(ratings(), resume_from=path))


@by_solver
def test_a_training_that_goes_on_there_is_one_that_ran_through(solver, tmp_path):
    found = resumed(solver, "cuda", "cuda", tmp_path / "run.ckpt")
    np.testing.assert_allclose(found, scores(model("cuda", solver).fit(ratings())), rtol=1e-5, atol=1e-5)


@by_solver
@pytest.mark.parametrize(("first", "second"), [("cuda", "cpu"), ("cpu", "cuda")])
def test_a_training_moves_between_devices(solver, first, second, tmp_path):
    found = resumed(solver, first, second, tmp_path / "run.ckpt")
    if solver == "langevin":  # goes on with other draws
        assert np.isfinite(found).all()
    else:
        assert_agree(found, scores(model(second, solver).fit(ratings())))
