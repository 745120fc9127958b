"""The pieces of sharded training in one process: cuts, starts, graphs, checks, checkpoints and costs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from sealing import parts_of, rewrite
from training_jobs import arrays, model, ratings

from air_recsys import AIR, Interactions
from air_recsys.distributed import Cost, SweepCost, fit, plan, plan_sweeps
from air_recsys.distributed.group import Cut
from air_recsys.distributed.laplacian import normal_rows, uniform_rows
from air_recsys.exceptions import CheckpointError, DivergenceError, MemoryLimitError, ParameterError
from air_recsys.graphs.candidates import nearest_among, nearest_rows
from air_recsys.models import DMF, DirichletDMF
from air_recsys.storage.held_files import hold

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")

# -------------------------------------------------------------------- cuts


@pytest.mark.parametrize("kind", ["even", "heavy head", "heavy tail", "random"])
def test_cuts_cover_all_rows_and_leave_no_rank_without(kind):
    ones = np.ones(20)
    weights = {
        "even": ones,
        "heavy head": ones + 1000 * (np.arange(20) == 0),
        "heavy tail": ones + 1000 * (np.arange(20) == 19),
        "random": np.random.default_rng(0).pareto(1.0, size=20) + 1,
    }[kind]
    for n_ranks in (1, 2, 5, 8):
        cut = Cut.balanced(weights, n_ranks)
        assert cut.n_rows == sum(cut.sizes) == 20
        assert min(cut.sizes) >= 1
        assert [row for rank in range(n_ranks) for row in range(20)[cut.of(rank)]] == list(range(20))


def test_a_balanced_cut_is_within_a_row_of_even():
    weights = np.random.default_rng(0).integers(1, 50, size=10_000)
    cut = Cut.balanced(weights, 7)
    sums = [weights[cut.of(rank)].sum() for rank in range(7)]
    assert max(sums) - min(sums) <= 2 * weights.max()


def test_an_even_cut_is_what_tensor_split_cuts_and_its_parts_within_rows_cover_them():
    for n_rows, n_parts in ((10, 3), (9, 3), (5, 5)):
        assert Cut.even(n_rows, n_parts).sizes == [len(part) for part in torch.arange(n_rows).tensor_split(n_parts)]
    cut, rows = Cut.even(20, 6), slice(5, 13)
    assert [row for part in cut.within(rows) for row in range(20)[rows][part]] == list(range(5, 13))


# -------------------------------------------------------------------- the start


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((5, 3), torch.float64), ((16, 1), torch.float32), ((33, 7), torch.float64), ((1000, 20), torch.float32)],
)
def test_blocks_draw_what_one_call_draws(blocks_of, shape: tuple[int, int], dtype):
    """With the generator in the same state afterwards, so that what is drawn next is the same too."""
    blocks_of(16)
    whole, shards = (torch.Generator().manual_seed(1) for _ in range(2))
    normal = torch.empty(shape, dtype=dtype).normal_(0.1, 0.3, generator=whole)
    uniform = torch.empty(shape, dtype=dtype).uniform_(-(shape[0] ** -0.5), shape[0] ** -0.5, generator=whole)
    rows = slice(shape[0] // 3, shape[0] - 1)
    drawn = normal_rows(*shape, rows, mean=0.1, std=0.3, generator=shards, dtype=dtype)
    assert torch.equal(drawn, normal[rows])
    assert torch.equal(uniform_rows(*shape, rows, generator=shards, dtype=dtype), uniform[rows])


def test_the_nearest_of_some_rows_are_those_of_the_search_among_all(blocks_of):
    blocks_of(100)
    generator = torch.Generator().manual_seed(0)
    points, others = (torch.empty(50, 4, dtype=torch.float64).normal_(generator=generator) for _ in range(2))
    weighted = points @ (others.T @ others)
    norms = torch.linalg.vecdot(points, weighted)
    assert torch.equal(nearest_among(weighted[13:40], points, norms, 13, 6), nearest_rows(points, weighted, 6)[13:40])


# -------------------------------------------------------------------- one process


def weighted() -> Interactions:
    frame = ratings().to_frame()
    frame["weight"] = np.random.default_rng(0).uniform(0.5, 2, size=len(frame))
    return Interactions.from_frame(frame, weight="weight", allow_negative=True)


@pytest.mark.parametrize(
    ("options", "make"), [({}, ratings), ({"n_batches": 4, "depth": 3}, ratings), ({"n_batches": 2}, weighted)]
)
def test_one_process_trains_what_the_model_trains(options, make):
    sharded, plain = arrays(fit(model(**options), make())), arrays(model(**options).fit(make()))
    np.testing.assert_allclose(sharded["history_objective"], plain["history_objective"], rtol=1e-4)
    np.testing.assert_allclose(sharded["user_factors"], plain["user_factors"], atol=1e-3)


def test_a_fitted_model_is_an_ordinary_one_and_a_callback_stops_its_training(tmp_path):
    fitted = fit(model(), ratings(), callbacks=[lambda record: record.epoch == 7])
    assert (fitted.stopped_by_, fitted.n_iter_) == ("callback", 7)
    assert fitted.recommend(0, n=3, exclude_seen=False).shape[0] == 3
    again = AIR.load(fitted.save(tmp_path / "model.air"))
    np.testing.assert_array_equal(again.user_factors_, fitted.user_factors_)
    assert len(fitted.fit(ratings()).history_) == 51  # in the ordinary way


def test_divergence_leaves_the_last_good_state():
    diverging = model(learning_rate=1e8, schedule="constant", n_epochs=200)
    with pytest.raises(DivergenceError):
        fit(diverging, ratings())
    assert np.isfinite(diverging.user_factors_).all()


def test_graphs_of_all_pairs_that_nobody_asked_for_become_sparse_and_none_stay_none():
    small = AIR.for_interactions(n_factors=4, n_epochs=4, random_state=0, device="cpu")
    assert small.engine().values(ratings())["graph_neighbors"] is None
    trained = fit(small, ratings())
    assert trained.settings_["graph_neighbors"] == 20
    assert np.isfinite(trained.user_factors_).all()
    plain = fit(DMF(n_factors=4, n_epochs=5, init_std=0.3, random_state=0, device="cpu"), ratings())
    assert plain.user_graph_ is None


def test_what_one_process_cannot_hold_is_no_reason_to_refuse(monkeypatch):
    """The model's own check is for training in one process."""
    monkeypatch.setattr("air_recsys.models.engines.protocol.device_memory", lambda device: 1)
    fit(model(n_epochs=1), ratings())


@pytest.mark.parametrize(
    ("bad", "how", "error", "says"),
    [
        (model(n_factors=None), {}, ParameterError, "set n_factors below 30, found n_factors=None"),
        (model(graph_neighbors=None, graph_refresh=None), {}, ParameterError, "graph_neighbors, or user_graph_reg=0"),
        (model(validation_fraction=0.1), {}, ParameterError, "needs validation_fraction=0, found 0.1"),
        (model(stopping_delta=1.0), {}, ParameterError, "needs stopping_delta=None, found 1.0"),
        (model(depth=1), {}, ParameterError, "depth must be an integer >= 2"),
        (DirichletDMF(n_factors=4), {}, ParameterError, "learns its graphs, found DirichletDMF"),
        ("AIR", {}, ParameterError, "expected a model of class AIR, DMF or GraphRanker, found str"),
        (model(), {"every": 0}, ParameterError, "every"),
        (model(), {"timeout": 0}, ParameterError, "timeout"),
        (model(max_memory="10KB"), {}, MemoryLimitError, r"each of 1 ranks needs about .* max_memory allows"),
    ],
)
def test_models_and_settings_that_cannot_be_shared_out_are_refused(bad, how, error, says):
    with pytest.raises(error, match=says):
        fit(bad, ratings(), **how)


# -------------------------------------------------------------------- checkpoints

FIRST = "rank-00000.ckpt"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoint of a finished training."""
    folder = tmp_path_factory.mktemp("finished") / "kept"
    fit(model(n_epochs=4), ratings(), checkpoint=folder, every=2)
    return folder


@pytest.fixture
def kept(finished: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return shutil.copytree(finished, tmp_path / "kept")


@pytest.mark.parametrize(
    ("options", "data", "says"),
    [
        ({"n_epochs": 4}, {"seed": 1}, "was written for other data"),
        ({"n_epochs": 5}, {}, "was written with solver__n_epochs=4, found solver__n_epochs=5"),
        ({"n_epochs": 4, "clip": False, "pattern_graphs": False}, {}, None),  # what changes no number may change
    ],
)
def test_a_checkpoint_of_another_training_is_refused(kept, options: dict[str, Any], data, says):
    if says is None:
        fit(model(**options), ratings(**data), checkpoint=kept)
        return
    with pytest.raises(CheckpointError, match=says):
        fit(model(**options), ratings(**data), checkpoint=kept)


@pytest.mark.parametrize(("flip", "says"), [(True, r"tensor \w+ differs from its digest"), (False, "found no file")])
def test_a_damaged_checkpoint_is_an_error(kept, flip, says):
    """Other damage: tests/training/test_checkpoint.py; what would be executed: tests/fuzz/test_hostile_files.py."""
    file = next(kept.iterdir()) / FIRST
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.unlink()
    if flip:
        file.write_bytes(content)
    with pytest.raises(CheckpointError, match=says):
        fit(model(n_epochs=4), ratings(), checkpoint=kept)


@pytest.mark.parametrize("starts", [[0, 40], [0, 20, 40], [0, 41], [], 3, None])
def test_cuts_that_make_no_sense_are_refused(kept, starts):
    file = next(kept.iterdir()) / FIRST
    state = json.loads(parts_of(file)[0]["state"])
    state[""]["cuts"][""]["first_factor"] = starts
    rewrite(file, {"state": json.dumps(state)})
    if starts == [0, 40]:
        fit(model(n_epochs=4), ratings(), checkpoint=kept)
        return
    with pytest.raises(CheckpointError, match="no whole checkpoint"):
        fit(model(n_epochs=4), ratings(), checkpoint=kept)


def test_one_training_at_a_time_writes_to_a_folder(kept):
    lock = hold(kept / ".lock")
    with pytest.raises(CheckpointError, match=rf"another training \(process {os.getpid()}\) writes to"):
        fit(model(n_epochs=4), ratings(), checkpoint=kept)
    lock.remove()
    (kept / ".lock").write_text("4711")  # of a training that was killed
    fit(model(n_epochs=4), ratings(), checkpoint=kept)
    assert [path.name for path in kept.iterdir()] == ["epoch-0000000004"]


def test_half_a_checkpoint_is_neither_read_nor_left_and_a_file_is_no_folder(tmp_path):
    half = tmp_path / "kept" / ".epoch-0000000003.partial"
    half.mkdir(parents=True)
    fit(model(n_epochs=4), ratings(), checkpoint=tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["epoch-0000000004"]
    (tmp_path / "file").write_text("")
    for place, says in (("file", "must be a folder"), ("file/folder", "cannot write the checkpoint")):
        with pytest.raises(CheckpointError, match=says):
            fit(model(), ratings(), checkpoint=tmp_path / place)


# -------------------------------------------------------------------- costs


def test_one_rank_receives_nothing():
    alone = plan_sweeps(10_000, 5_000, 1_000_000, n_factors=20, n_neighbors=5, n_ranks=1)
    assert plan(1000, 500, 10_000, n_factors=8, n_neighbors=5, n_ranks=1).bytes_received_per_step == 0
    assert alone.bytes_received_per_sweep == alone.messages_per_sweep == 0


def test_ranks_share_what_is_held_and_not_what_is_gathered():
    alone, shared = (plan(10_000, 5_000, 1_000_000, n_factors=8, n_neighbors=5, n_ranks=ranks) for ranks in (1, 8))
    assert shared.bytes_held == pytest.approx(alone.bytes_held / 8)
    gathered = 4 * (8 + 1) * (4 * 10_000 + 5_000)  # numbers of 4 bytes, rows of all ranks
    assert shared.bytes_passing - gathered == pytest.approx((alone.bytes_passing - gathered) / 8)
    assert shared.flops_per_refresh == alone.flops_per_refresh / 8
    assert alone.flops_per_step / 8 < shared.flops_per_step < alone.flops_per_step


def test_ranks_share_the_operations_of_sweeps_and_need_less_for_own_parts():
    sizes = {"n_users": 10_000, "n_items": 5_000, "n_ratings": 10**8, "n_factors": 20, "n_neighbors": 5}
    alone, shared = (plan_sweeps(**sizes, n_ranks=n) for n in (1, 8))
    own = plan_sweeps(**sizes, n_ranks=8, own_parts=True)
    assert alone.flops_per_sweep / 8 < shared.flops_per_sweep < alone.flops_per_sweep / 2
    assert own.bytes_needed < shared.bytes_needed / 4
    assert shared.bytes_needed == alone.bytes_needed


def test_users_without_a_graph_are_never_gathered():
    sizes = (100_000, 100, 1_000_000, 8, 5, 4)
    cost = Cost(*sizes, user_graph=False)
    assert cost.bytes_received_per_step == Cost(10, *sizes[1:], user_graph=False).bytes_received_per_step
    assert cost.bytes_received_per_step < Cost(*sizes).bytes_received_per_step


REPORT = Path(__file__).resolve().parents[2] / "benchmarks" / "reports" / "speed.md"


def columns(row: str) -> list[dict[str, str]]:
    """The columns of the table of the report that has a row of this name."""
    (table,) = (part for part in REPORT.read_text(encoding="utf-8").split("\n\n") if f"| {row} |" in part)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    (names, *values) = zip(*(line for line in cells if line[0] != "---"), strict=True)
    return [dict(zip(names, column, strict=True)) for column in values]


def sizes(column: dict[str, str]) -> tuple[Any, ...]:
    return tuple(int(column[name].replace(",", "")) for name in ("users", "items", "ratings"))


def test_the_report_has_the_costs_of_steps():
    for column in columns("messages a step"):
        both, ranks = column["graphs"] == "both", int(column["ranks"])
        cost = Cost(*sizes(column), *map(int, column["r, k"].split(",")), ranks, user_graph=both)
        assert f"{cost.bytes_held / 1e9:,.3g}" == column["held by a rank, GB"]
        assert f"{cost.bytes_passing / 1e9:,.3g}" == column["passing through a rank, GB"]
        assert f"{cost.bytes_received_per_step / 1e9:,.3g}" == column["received by a rank a step, GB"]
        assert f"{cost.messages_per_step}" == column["messages a step"]
        assert f"{cost.flops_per_step:.2g}" == column["flops of a rank a step"]
        assert f"{cost.flops_per_refresh:.2g}" == column["flops of a rank a refresh"]


def test_the_report_has_the_costs_of_sweeps():
    for column in columns("messages a sweep"):
        own, sample = column["ratings that a rank is given"] == "its part", column["solver"] == "Langevin"
        cost = SweepCost(*sizes(column), 40, 20, int(column["ranks"]), sample=sample, own_parts=own)
        assert f"{cost.bytes_needed / 1e9:,.3g}" == column["needed by a rank, GB"]
        assert f"{cost.bytes_received_per_sweep / 1e9:,.3g}" == column["received by a rank a sweep, GB"]
        assert f"{cost.messages_per_sweep}" == column["messages a sweep"]
        assert f"{cost.flops_per_sweep:.2g}" == column["flops of a rank a sweep"]
