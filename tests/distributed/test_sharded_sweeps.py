"""Ranks started by torchrun find the posterior that one process finds, and all end with the same one."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.distributed as dist
from cost_tables import OF_SWEEPS, SWEEPS, table
from rank_processes import message, results, same, torchrun
from training_jobs import arrays, learned, ratings, sweeping

from air_recsys.distributed import fit, plan_sweeps
from air_recsys.distributed.checkpointer import FILE
from air_recsys.distributed.checks import shared_engine
from air_recsys.exceptions import MemoryLimitError, ParameterError

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")

UNRATED = {"n_users": 60, "n_without": 40}  # of three ranks the last one has only users without ratings
LANGEVIN = {"solver": "langevin", "n_sweeps": 20}
END = {"epoch": 5, "way": "end", "ranks": [0]}
FORMS: dict[str, dict[str, Any]] = {
    "variational": {"sweeps": {}},
    "langevin": {"sweeps": LANGEVIN},
    "unrated": {"sweeps": {}, "data": UNRATED},
    "unrated draws": {"sweeps": LANGEVIN, "data": UNRATED},
    "features": {"sweeps": {}, "data": {"known": True}},
    "similarities": {"sweeps": {"item_graph_strength": 0.5}, "data": {"known": True, "alike": True}},
    "biases alone": {"sweeps": {"n_factors": "auto", "graph_neighbors": None, "graph_refresh": None}},
}


def cut_short(name: str, folder: Path) -> dict[str, Any]:
    """A task that ends at sweep 5, with a checkpoint of sweep 4."""
    return FORMS["langevin"] | {"name": name, "stop": END, "fit": {"checkpoint": str(folder), "every": 4}}


@pytest.fixture(scope="module", params=[2, 3])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Folder of what so many ranks have found, of checkpoints, and of how ranks end on bad input."""
    out = tmp_path_factory.mktemp("sweeps")
    one = sweeping(**LANGEVIN)
    (out / "of one").mkdir()
    one.fit(ratings(), checkpoint=out / "of one" / FILE, every=4, callbacks=[lambda record: record.epoch == 5])
    (out / "file").write_text("")
    tasks = [{"name": name} | task for name, task in FORMS.items()]
    tasks += [cut_short("begun", out / "kept"), cut_short("for one", out / "for one")]
    for name, folder in (("gone on", "kept"), ("from one", "of one")):
        tasks.append(FORMS["langevin"] | {"name": name, "fit": {"checkpoint": str(out / folder)}})
    for name, options in (("variational", {}), ("langevin", LANGEVIN)):
        for n_sweeps in (2, 5):
            counted = options | {"n_sweeps": n_sweeps, "graph_refresh": 100}
            tasks.append({"name": f"{n_sweeps} sweeps, {name}", "sweeps": counted})
    tasks += [
        {"name": "unshared seeds", "sweeps": {"random_state": None}},
        {"name": "few items", "sweeps": {}, "data": {"n_items": request.param - 1}},
        {"name": "lost numbers", "sweeps": {}, "loses": 7},
        {"name": "other sweeps", "sweeps": {}, "fit": {"checkpoint": str(out / "kept")}},
        {"name": "a file", "sweeps": {}, "fit": {"checkpoint": str(out / "file")}},
    ]
    torchrun(out, tasks, n_ranks=request.param)
    return out, request.param


@cache
def alone(name: str) -> dict[str, np.ndarray]:
    """What one process finds."""
    task = FORMS[name]
    return learned(sweeping(**task["sweeps"]).fit(ratings(**task.get("data", {}))))


@pytest.mark.parametrize("name", FORMS)
def test_ranks_find_what_one_process_finds(trained, name):
    out, n_ranks = trained
    found, expected = results(out, name, n_ranks)[0], alone(name)
    assert expected.keys() <= found.keys()
    for part in ("scores", "deviations", "folded", "user_biases", "item_biases", "history_noise"):
        np.testing.assert_allclose(found[part], expected[part], rtol=1e-5, atol=1e-5, err_msg=part)
    for part in ("user_graph", "item_graph", "history_user_energy", "history_item_energy"):
        np.testing.assert_allclose(found[part], expected[part], rtol=1e-4, atol=1e-5, err_msg=part)


@pytest.mark.parametrize("name", [*FORMS, "unshared seeds"])
def test_every_rank_ends_with_the_same_posterior(trained, name):
    out, n_ranks = trained
    first, *others = results(out, name, n_ranks)
    assert all(same(first, other) for other in others)


@pytest.mark.parametrize("name", ["variational", "langevin"])
def test_the_plan_counts_what_is_sent(trained, name):
    """Three more sweeps cost three times what is planned for one, on average over the ranks."""
    out, n_ranks = trained
    short, long = (results(out, f"{n_sweeps} sweeps, {name}", n_ranks) for n_sweeps in (2, 5))
    data, sample = ratings(), name == "langevin"
    sizes = data.n_users, data.n_items, data.n_ratings
    cost = plan_sweeps(*sizes, n_factors=4, n_neighbors=4, n_ranks=n_ranks, n_features=5, sample=sample)
    assert long[0]["n_messages"] - short[0]["n_messages"] == 3 * cost.messages_per_sweep
    counted = sum(more["n_bytes"] - less["n_bytes"] for more, less in zip(long, short, strict=True))
    assert counted == pytest.approx(3 * n_ranks * cost.bytes_received_per_sweep, rel=0.001)


def test_a_rank_that_loses_its_numbers_ends_all_of_them_in_the_last_good_state(trained):
    out, n_ranks = trained
    told = {message(out, "lost numbers", rank) for rank in range(n_ranks)}
    assert len(told) == 1
    assert re.match("DivergenceError: .* epoch 3", told.pop())


REFUSALS = {
    "few items": "DataError: expected at least one of the items for each of",
    "other sweeps": "CheckpointError: .* was written with solver",
    "a file": "CheckpointError: checkpoint must be a folder",
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused_is_refused_on_every_rank(trained, name):
    out, n_ranks = trained
    for rank in range(n_ranks):
        assert re.match(REFUSALS[name], message(out, name, rank))


# -------------------------------------------------------------------- going on


def test_sweeps_go_on_as_if_nothing_had_been(trained):
    out, n_ranks = trained
    assert results(out, "begun", n_ranks)[0]["history_epoch"][-1] == 5
    assert same(results(out, "gone on", n_ranks)[0], results(out, "langevin", n_ranks)[0])


def test_ranks_go_on_with_what_one_process_began(trained):
    out, n_ranks = trained
    np.testing.assert_allclose(results(out, "from one", n_ranks)[0]["scores"], alone("langevin")["scores"], rtol=1e-5)


def test_one_process_goes_on_with_what_ranks_began(trained):
    """By `fit` of the model too, as the file is that of one process."""
    out, _ = trained
    seen: list[int] = []
    resumed = sweeping(**LANGEVIN).fit(ratings(), resume_from=out / "for one" / FILE)
    again = fit(
        sweeping(**LANGEVIN),
        ratings(),
        checkpoint=out / "for one",
        callbacks=[lambda record: seen.append(record.epoch)],
    )
    assert seen == list(range(4, 21))
    assert same(learned(again), learned(resumed))
    np.testing.assert_allclose(learned(again)["scores"], alone("langevin")["scores"], rtol=1e-5)


# -------------------------------------------------------------------- one process


@pytest.mark.parametrize("name", ["variational", "langevin"])
def test_one_rank_finds_the_same_to_the_bit(name):
    assert same(learned(fit(sweeping(**FORMS[name]["sweeps"]), ratings())), alone(name))


def test_a_callback_ends_the_sweeps():
    fitted = fit(sweeping(), ratings(), callbacks=[lambda record: record.epoch == 3])
    assert (fitted.stopped_by_, fitted.n_iter_) == ("callback", 3)
    assert same(arrays(fitted), arrays(sweeping().fit(ratings(), callbacks=[lambda record: record.epoch == 3])))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"validation_fraction": 0.1}, "needs validation_fraction=0, found 0.1"),
        ({"snapshot_epochs": [3]}, r"needs snapshot_epochs=\(\), found \(3,\)"),
        ({"n_factors": None}, "needs n_factors"),
    ],
)
def test_what_needs_one_process_is_refused(bad, says):
    with pytest.raises(ParameterError, match=says):
        fit(sweeping(**bad), ratings())


def test_more_memory_than_allowed_is_refused_before_any_work():
    with pytest.raises(MemoryLimitError, match=r"each of 1 ranks needs about .* max_memory allows"):
        fit(sweeping(max_memory="10KB"), ratings())


# -------------------------------------------------------------------- the plan


def test_one_rank_receives_nothing_and_many_share_the_operations():
    alone, shared = (plan_sweeps(10_000, 5_000, 1_000_000, n_factors=20, n_neighbors=5, n_ranks=n) for n in (1, 8))
    assert alone.bytes_received_per_sweep == alone.messages_per_sweep == 0
    assert alone.flops_per_sweep / 8 < shared.flops_per_sweep < alone.flops_per_sweep / 2
    assert shared.flops_per_refresh == alone.flops_per_refresh / 8
    assert shared.bytes_needed == alone.bytes_needed


def test_the_plan_needs_the_memory_that_a_model_plans():
    data = ratings()
    cost = plan_sweeps(data.n_users, data.n_items, data.n_ratings, 4, 4, 2, n_features=5)
    assert cost.bytes_needed == sweeping().memory_plan(data).total


def test_the_table_of_the_report_is_what_the_module_prints():
    report = Path(__file__).resolve().parents[2] / "benchmarks" / "reports" / "speed.md"
    assert table(SWEEPS, OF_SWEEPS) in report.read_text(encoding="utf-8")


def test_strengths_of_given_graphs_are_not_searched():
    with pytest.raises(ParameterError, match=r"set item_graph_strength, .*found 'auto'"):
        shared_engine(sweeping(), ratings(alike=True))
    assert shared_engine(sweeping(item_graph_strength=0.3), ratings(alike=True)) is not None
