"""Ray Train starts the ranks, and the caller gets what they have found, or the reason why they have not."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from training_jobs import learned, ratings, sweeping

from air_recsys.distributed import ParquetRatings, fit_on_ray
from air_recsys.exceptions import DataError, DistributedError, MissingExtraError, ParameterError


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Ray on this machine, with processors for two ranks and no GPU."""
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    quiet: Any = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(address="local", num_cpus=2, num_gpus=0, **quiet)
    yield
    ray.shutdown()


@pytest.mark.filterwarnings("ignore")  # of ray
class TestOnTwoWorkers:
    def test_the_caller_holds_what_two_ranks_find(self, cluster, tmp_path):
        model = sweeping()
        assert fit_on_ray(model, ratings(), 2, checkpoint=tmp_path, every=4) is model
        alone = sweeping().fit(ratings())
        found, expected = learned(model), learned(alone)
        for part in ("scores", "deviations", "folded"):
            np.testing.assert_allclose(found[part], expected[part], rtol=1e-5, atol=1e-5, err_msg=part)
        resumed = sweeping().fit(ratings(), resume_from=tmp_path / "sweeps.ckpt")
        np.testing.assert_array_equal(resumed.user_factors_, model.user_factors_)

    def test_a_worker_that_dies_is_named(self, cluster):
        def dies(record: Any) -> bool:
            if record.epoch == 3 and os.environ["RANK"] == "1":
                os.kill(os.getpid(), 9)
            return False

        model = sweeping()
        with pytest.raises(DistributedError, match="rank 1 of 2 ranks of 1 CPU died on Ray"):
            fit_on_ray(model, ratings(), 2, timeout=10, callbacks=[dies])
        assert not model.__sklearn_is_fitted__()

    def test_an_error_of_the_ranks_is_that_of_the_training(self, cluster, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        ratings(n_items=1).to_frame().to_parquet("ratings.parquet", index=False)
        with pytest.raises(DataError, match="at least one of the items for each of 2 ranks, found 1"):
            fit_on_ray(sweeping(), ParquetRatings("ratings.parquet", allow_negative=True), 2)

    def test_a_cluster_without_room_is_told(self, cluster, monkeypatch):
        monkeypatch.setenv("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "1")
        with pytest.raises(DistributedError, match="room for 5 ranks of 1 CPU and 1 GPU, found one of 2 CPU"):
            fit_on_ray(sweeping(device="cuda"), ratings(), 5)


def test_the_extra_is_named_where_ray_is_missing(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "ray"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match="distributed"):
        fit_on_ray(sweeping(), ratings(), 2)


@pytest.mark.parametrize("name", ["n_ranks", "cpus_per_rank"])
def test_numbers_are_checked_before_anything_starts(name):
    with pytest.raises(ParameterError, match=f"{name} must be an integer >= 1, found 0"):
        fit_on_ray(sweeping(), ratings(), **{"n_ranks": 2} | {name: 0})
