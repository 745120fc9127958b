"""Two ranks train what one process trains, stop together, leave together, and go on where they stopped."""

from __future__ import annotations

import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.distributed as dist
from training_jobs import arrays, message, model, ratings, results, same, start

from air_recsys.distributed import fit, plan

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")

BOTH: dict[str, Any] = {}
DEEP = {"depth": 3, "n_batches": 3}
PLAIN = {"user_graph_reg": 0, "item_graph_reg": 0, "graph_neighbors": None, "graph_refresh": None, "depth": 4}
UNOBSERVED = {"unobserved_weight": 0.1, "biases": False, "center": False, "user_graph_reg": 0}
FORMS = {"both": BOTH, "deep": DEEP, "plain": PLAIN, "unobserved": UNOBSERVED}
# GPUs that each of two ranks of one machine sees, the device asked for, and what is told where it is not there.
GPUS = {
    "one each": ([2, 2], "auto", None),
    "on CPUs": ([2, 2], "cpu", None),
    "one for both": (
        [1, 1],
        "cuda",
        "rank 1 of 2: expected a CUDA device for each rank of a machine, found 1 for local",
    ),
    "none for one": ([2, 0], "cuda", "rank 1 of 2: device='cuda' was asked for, found 0 CUDA device(s)"),
    "CPU for one": ([2, 0], "auto", "expected a CUDA device for each of 2 ranks or device='cpu', found none on [1]"),
}
COUNTED = {"n_epochs": 10, "evaluate_every": 10, "graph_refresh": 100}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of what two ranks have trained; then all are killed at epoch 25, with checkpoints every 10 epochs."""
    out = tmp_path_factory.mktemp("trained")

    def keeping(folder: str, **more: Any) -> dict[str, Any]:
        return {"fit": {"checkpoint": str(out / folder), "every": 10} | more}

    tasks = [{"name": name, "model": options} for name, options in FORMS.items()]
    for name, n_epochs in (("short", 10), ("long", 30)):
        tasks.append({"name": name, "model": COUNTED | {"n_epochs": n_epochs}})
    sleep = {"epoch": 25, "way": "sleep", "ranks": [1]}
    tasks += [
        {"name": "other data", "data_of_rank_1": {"seed": 1}},
        {"name": "unshared seeds", "model": {"random_state": None, "n_batches": 2, "n_epochs": 5}},
        {"name": "late", "leaves": 0.5},
        *({"name": name, "joins": {"gpus": gpus, "device": device}} for name, (gpus, device, _) in GPUS.items()),
        {"name": "sleep", "stop": sleep, **keeping("kept", timeout=6)},
        {"name": "killed", "stop": {"epoch": 25, "way": "kill", "ranks": [0, 1]}, **keeping("both")},
    ]
    ends = two_ranks(out, tasks)
    assert min(status for status, _ in ends) < 0, ends
    assert [path.name for path in (out / "both").glob("[!.]*")] == ["epoch-0000000020"]
    return out


def two_ranks(out: Path, tasks: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """How two ranks end, and what they print; torchrun would end one where the other has died."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
    ranks = [start(out, tasks, [sys.executable], **place, RANK=str(rank), LOCAL_RANK=str(rank)) for rank in (0, 1)]
    try:
        printed = [rank.communicate(timeout=100)[0] for rank in ranks]
        return [(rank.returncode, text) for rank, text in zip(ranks, printed, strict=True)]
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()


# -------------------------------------------------------------------- the same training


@pytest.mark.parametrize("name", FORMS)
def test_two_ranks_have_the_losses_of_one_process_and_end_with_the_same_model(trained, name):
    """50 epochs in single precision: energies of graphs that are all but gone are compared with what they weigh."""
    one, (two, other) = arrays(model(**FORMS[name]).fit(ratings())), results(trained, name)
    assert same(two, other)
    for term in ("fit", "decay", "objective"):
        np.testing.assert_allclose(two[f"history_{term}"], one[f"history_{term}"], rtol=1e-4, err_msg=term)
    for term in ("user_energy", "item_energy"):
        np.testing.assert_allclose(two[f"history_{term}"], one[f"history_{term}"], rtol=1e-3, atol=1e-4, err_msg=term)
    np.testing.assert_allclose(two["user_factors"], one["user_factors"], atol=1e-3)


def test_ranks_without_a_shared_seed_train_the_same_model(trained):
    assert same(*results(trained, "unshared seeds"))


def test_the_plan_counts_what_is_sent(trained):
    """Twenty more steps cost twenty times what is planned for one; ragged rows are sent as if they were even."""
    short, long = (results(trained, name)[0] for name in ("short", "long"))
    data = ratings()
    cost = plan(data.n_users, data.n_items, data.n_ratings, n_factors=4, n_neighbors=4, n_ranks=2)
    assert long["n_messages"] - short["n_messages"] == 20 * cost.messages_per_step
    counted = (long["n_bytes"] - short["n_bytes"]) / 20
    assert counted == pytest.approx(cost.bytes_received_per_step, rel=0.1)


def test_ranks_with_different_data_are_refused_on_every_rank(trained):
    for rank in (0, 1):
        assert message(trained, "other data", rank).startswith("DataError: expected the same data on every rank")


def test_each_rank_has_a_gpu_and_talks_by_nccl_or_all_say_why_not(trained):
    """GPUs and NCCL are pretended."""
    for name, (_, device, told) in GPUS.items():
        if told:
            assert all(message(trained, name, rank).startswith(f"DeviceError: {told}") for rank in (0, 1))
            continue
        backends = ["gloo"] if device == "cpu" else ["gloo", "cpu:gloo,cuda:nccl"]
        for rank, found in enumerate(results(trained, name)):
            assert found["device"] == (device if device == "cpu" else f"cuda:{rank}")
            assert found["backends"].tolist() == backends


def test_no_rank_leaves_while_another_one_works(trained):
    first, second = results(trained, "late")
    assert max(first["done"], second["done"]) <= min(first["left"], second["left"])


# -------------------------------------------------------------------- stopping and going on


@pytest.fixture(scope="module")
def resumed(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the same training resumed, of one that a single process began, and of one that loses a rank."""
    out = tmp_path_factory.mktemp("resumed")
    shutil.copytree(trained / "both", out / "both")
    fit(model(**DEEP), ratings(), checkpoint=out / "deep")
    tasks = [{"name": n, "model": FORMS[n], "fit": {"checkpoint": str(out / n)}} for n in ("both", "deep")]
    stop = {"epoch": 25, "way": "kill", "ranks": [1]}
    tasks.append({"name": "kill", "stop": stop, "fit": {"checkpoint": str(out / "kept"), "every": 10}})
    (status, printed), _ = two_ranks(out, tasks)
    assert status == 0, printed
    return out


def test_a_killed_job_goes_on_as_if_nothing_had_been(trained, resumed):
    assert same(results(resumed, "both")[0], results(trained, "both")[0])


def test_one_process_goes_on_with_what_two_ranks_began(trained, tmp_path):
    shutil.copytree(trained / "both", tmp_path / "both")
    seen = []
    fitted = fit(
        model(), ratings(), checkpoint=tmp_path / "both", callbacks=[lambda record: seen.append(record.epoch)]
    )
    assert seen == list(range(20, 51))
    whole = results(trained, "both")[0]
    np.testing.assert_allclose(fitted.history_["objective"], whole["history_objective"], rtol=1e-4)


def test_one_process_reads_the_values_that_two_ranks_wrote(resumed):
    """The last epoch has a checkpoint: nothing is left to train."""
    fitted = fit(model(), ratings(), checkpoint=resumed / "both")
    assert len(fitted.history_) == 51
    read, wrote = arrays(fitted), results(resumed, "both")[0]
    for name in ("user_factors", "item_factors", "user_biases", "item_biases", "user_graph", "item_graph"):
        np.testing.assert_array_equal(read[name], wrote[name], err_msg=name)


def test_two_ranks_read_the_values_that_one_process_wrote(resumed):
    wrote, read = arrays(fit(model(**DEEP), ratings(), checkpoint=resumed / "deep")), results(resumed, "deep")[0]
    np.testing.assert_array_equal(read["item_factors"], wrote["item_factors"])
    np.testing.assert_allclose(read["user_factors"], wrote["user_factors"], rtol=1e-5, atol=1e-6)


# -------------------------------------------------------------------- a rank that is gone


@pytest.mark.parametrize("way", ["kill", "sleep"])
def test_a_rank_that_is_gone_stops_the_others_with_an_error(trained, resumed, way):
    out = resumed if way == "kill" else trained
    assert message(out, way).startswith("DistributedError: rank 0 of 2 lost contact with another rank")
    assert [path.name for path in (out / "kept").iterdir()] == ["epoch-0000000020"]
