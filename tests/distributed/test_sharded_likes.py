"""Two ranks choose and train what one process chooses and trains from likes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.distributed as dist
from training_jobs import arrays_of_likes, likes, message, ranker, results, same, sparse_from, torchrun

from air_recsys.distributed import ParquetRatings, fit
from air_recsys.exceptions import DataError, MemoryLimitError, ParameterError

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")

FORMS: dict[str, dict[str, Any]] = {
    "parts of the time": {"likes": {}},  # three, of which one rank has two
    "new users": {"likes": {"validation": "users", "n_steps": 5}},
    "one part": {"likes": {"validation": "last"}},
    "given settings": {"likes": {"settings": {}}},
    "neighbours": {"likes": {"settings": {}}, "sparse_from": 10},
}


@cache
def alone(name: str) -> dict[str, np.ndarray]:
    """What one process trains."""
    task = FORMS[name]
    with sparse_from(task.get("sparse_from")):
        return arrays_of_likes(ranker(**task["likes"]).fit(likes()))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of what two ranks have trained."""
    out = tmp_path_factory.mktemp("likes")
    tasks = [{"name": name, **task} for name, task in FORMS.items()]
    tasks.append({"name": "other data", "likes": {}, "data_of_rank_1": {"seed": 1}})
    tasks.append({"name": "ends", "likes": {"settings": {}}, "stop": {"epoch": 10, "way": "end", "ranks": [1]}})
    tasks.append({"name": "diverges", "likes": {}, "diverges": 1})
    torchrun(out, tasks)
    return out


@pytest.mark.parametrize("name", FORMS)
def test_two_ranks_have_the_choice_and_the_regression_of_one_process_and_its_factors_up_to_rounding(trained, name):
    (two, other), one = results(trained, name), alone(name)
    assert same(two, other)
    for part in ("settings", "weights", "history"):
        np.testing.assert_allclose(two[part], one[part], rtol=1e-6, err_msg=part)
    for part in one.keys() - {"settings", "weights", "history"}:
        np.testing.assert_allclose(two[part], one[part], rtol=1e-3, atol=1e-4, err_msg=part)
    assert two["n_messages"] >= one["settings"][-1]  # one in each step of the factors


def test_a_callback_of_one_rank_ends_both(trained):
    first, second = results(trained, "ends")
    assert same(first, second)
    assert first["settings"][-1] == 10


def test_a_rank_that_fails_in_the_search_ends_both_at_once(trained):
    assert message(trained, "diverges", 1).startswith("DivergenceError: ")
    assert message(trained, "diverges", 0).startswith("DistributedError: expected all ranks in the search")


def test_ranks_with_different_likes_are_refused(trained):
    assert message(trained, "other data").startswith("DataError: expected the same data on every rank")


def test_one_process_trains_what_fit_does():
    found = arrays_of_likes(fit(ranker(settings={}), likes()))
    assert same(found, alone("given settings"))


@pytest.mark.parametrize(
    ("bad", "how", "error", "says"),
    [
        (ranker(time_budget=3), {}, ParameterError, "of likes needs time_budget=None, found 3"),
        (ranker(), {"checkpoint": "kept"}, ParameterError, "of likes needs checkpoint=None, found 'kept'"),
        (ranker(max_memory="10KB"), {}, MemoryLimitError, "max_memory allows 10.*: lower n_factors or n_validation"),
        (ranker(n_factors=0), {}, ParameterError, "n_factors"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(bad, how, error, says):
    with pytest.raises(error, match=says):
        fit(bad, likes(), **how)


def test_each_rank_needs_all_likes_and_an_item():
    with pytest.raises(ParameterError, match="give every rank all likes"):
        fit(ranker(), ParquetRatings("likes.parquet"))
    with pytest.raises(DataError):
        fit(ranker(), np.full((2, 2), -1.0))
