"""Training that does not fit is refused before it starts, with what would fit."""

import numpy as np
import pytest
import torch

from air_recsys import AIR, Interactions
from air_recsys.exceptions import MemoryLimitError, ParameterError
from air_recsys.models.engines import posterior, protocol
from air_recsys.nn.objective import FactorWidthObjective


def many(n_users=30_000, n_items=20_000):
    size = max(n_users, n_items)
    return Interactions(
        np.arange(size) % n_users, np.arange(size) % n_items, np.ones(size), range(n_users), range(n_items)
    )


def test_dense_graphs_of_many_users_are_refused_with_what_fits():
    model = AIR.for_ratings(device="cpu", graph_neighbors=None, max_memory="4GB")
    with pytest.raises(MemoryLimitError, match=r"about \d+.*max_memory allows 4.0 GB; graph_neighbors=50 needs"):
        model.fit(many())
    assert not hasattr(model, "user_factors_")


def test_what_is_said_to_fit_fits():
    model = AIR.for_completion(n_factors=None, graph_neighbors=None, device="cpu", max_memory="1GB")
    with pytest.raises(MemoryLimitError, match="graph_neighbors=50, n_factors=64 needs") as found:
        protocol.check_memory(model.engine(), many(), "1GB", "cpu")
    assert "n_batches" not in str(found.value)
    model.set_params(graph_neighbors=50, n_factors=64)
    protocol.check_memory(model.engine(), many(), "1GB", "cpu")


def test_what_is_chosen_for_many_users_fits_where_all_of_the_matrix_does_not():
    model = AIR.for_completion(device="cpu")
    protocol.check_memory(model.engine(), many(), "1GB", "cpu")
    with pytest.raises(MemoryLimitError, match="n_factors=64 needs"):
        protocol.check_memory(model.set_params(n_factors=None).engine(), many(), "1GB", "cpu")


def test_a_limit_that_nothing_meets():
    with pytest.raises(MemoryLimitError, match="no setting tried fits"):
        AIR.for_ratings(device="cpu", max_memory=1000).fit(np.eye(5))


def test_the_device_is_the_limit_where_none_is_given(monkeypatch):
    monkeypatch.setattr(protocol, "device_memory", lambda device: 10_000)
    with pytest.raises(MemoryLimitError, match=r"the device has 10\.0 kB"):
        AIR.for_ratings(device="cpu").fit(np.eye(5))


def test_the_memory_of_this_machine_is_a_number():
    found = protocol.device_memory("cpu")
    assert found is None or found > 2**28


@pytest.mark.parametrize("limit", ["8", "8 potatoes", -1, 0, 1.5, True, "GB"])
def test_sizes_that_are_none(limit):
    with pytest.raises(ParameterError, match=r"max_memory must be .*'8GB', found"):
        AIR.for_completion(max_memory=limit, device="cpu").fit(np.eye(4))


def test_the_plan_is_said_before_a_verbose_training(capfd):
    model = AIR.for_ratings(n_sweeps=1, device="cpu", verbose=True, random_state=0).fit(np.eye(6))
    said = capfd.readouterr().err
    assert f"graphs of 20 edges a node; training will take about {model.memory_plan(np.eye(6))}" in said


@pytest.mark.parametrize("when", ["building", "training"])
def test_a_device_that_runs_out_of_memory(monkeypatch, when):
    plain, calls = FactorWidthObjective._evaluate, []

    def evaluate(self, *args):
        calls.append(1)
        if when == "training" and len(calls) > 12:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return plain(self, *args)

    def build(*args):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(FactorWidthObjective, "_evaluate", evaluate)
    if when == "building":
        monkeypatch.setattr("air_recsys.models.engines.objective.build_objective", build)
    ratings = np.random.default_rng(0).uniform(1, 5, (40, 30))
    options = {"solver": "adam", "n_factors": 3, "n_batches": 1, "evaluate_every": 5}
    model = AIR.for_ratings(**options, device="cpu", random_state=0)
    with pytest.raises(MemoryLimitError, match=r"CUDA out of memory.*; (no setting tried fits|.* needs about)"):
        model.fit(ratings)
    if when == "training":  # nothing is lost: the last good state is there
        assert model.stopped_by_ == "memory"
        assert model.n_iter_ == 10
        assert np.isfinite(model.predict([0, 1], [0, 1])).all()


def test_draws_take_smaller_blocks_where_memory_is_short(monkeypatch):
    """And are the same draws but for their start; below one row at a time the training is refused."""
    ratings = np.random.default_rng(0).integers(1, 6, (60, 50)).astype(float)

    def model(limit: int | None) -> AIR:
        given = {"n_factors": 20, "n_sweeps": 20, "random_state": 0, "device": "cpu", "max_memory": limit}
        return AIR.for_ratings(solver="langevin", user_graph_reg=0, item_graph_reg=0, **given)

    whole = model(None).memory_plan(ratings).total
    least = model(1).memory_plan(ratings).total
    assert least < whole
    assert model(whole - 20_000).memory_plan(ratings).total <= whole - 20_000
    monkeypatch.setattr(posterior, "_BEFORE_DRAWS", 0)  # variational sweeps need covariances
    plain, tight = (model(limit).fit(ratings).predict(np.arange(50), np.arange(50)) for limit in (None, least))
    np.testing.assert_allclose(tight, plain, rtol=1e-4)
    with pytest.raises(MemoryLimitError, match="max_memory allows"):
        model(least - 1).fit(ratings)
