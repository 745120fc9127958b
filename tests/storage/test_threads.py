"""The pool: results in order, errors, numbers of threads, processes that fork, and models that train at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from air_recsys import AIR
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import ParameterError, ParameterWarning
from air_recsys.storage import threads as module
from air_recsys.storage.threads import cores, default_threads, in_workers, one_thread, threads, torch_threads

MANY = cores() + 14


def numbers() -> list[int]:
    """The threads of torch and of each library of linear algebra but those by OpenMP, which others may have loaded."""
    libraries = [each for each in threadpool_info() if each["user_api"] == "blas"]
    return [
        torch.get_num_threads(),
        *(each["num_threads"] for each in libraries if each.get("threading_layer") != "openmp"),
    ]


@pytest.fixture(autouse=True)
def _two_threads():
    with torch_threads(2):
        yield


# -------------------------------------------------------------------- what is shared out


@pytest.mark.parametrize("number", [1, 2, MANY])
def test_results_come_in_the_order_of_the_items_by_workers_of_one_thread(number):
    before, seen = numbers(), set()

    def work(item: int) -> tuple[int, list[int]]:
        seen.add(threading.get_ident())
        time.sleep(0.002 * (item % 3))
        return item, numbers()

    found = in_workers(work, range(40), number)
    assert [item for item, _ in found] == list(range(40))
    assert {number for _, own in found for number in own} == {1}
    assert len(seen) <= number
    assert numbers() == before


def test_one_item_has_all_threads_and_little_work_the_calling_one():
    assert in_workers(lambda _: torch.get_num_threads(), [0]) == [2]
    assert set(in_workers(lambda _: threading.get_ident(), range(9), 2, work=10)) == {threading.get_ident()}


def test_what_workers_share_out_they_do_themselves():
    with threads(3):
        found = in_workers(lambda _: (threading.get_ident(), set(in_workers(_ident, range(5), 4))), range(6))
    assert all(inner == {own} for own, inner in found)


def _ident(_: object) -> int:
    return threading.get_ident()


@pytest.mark.parametrize("number", [1, 2, MANY])
def test_the_error_of_the_first_item_is_raised_and_the_others_end(number):
    before, begun, ended = numbers(), [], []

    def fail(item: int) -> None:
        begun.append(item)
        time.sleep(0.01)
        ended.append(item)
        if item in (3, 4, 5):
            raise ValueError(item)

    with pytest.raises(ValueError, match=r"^3$"):
        in_workers(fail, range(1000), number)
    assert sorted(begun) == sorted(ended)
    assert max(begun) <= 5 + number
    assert numbers() == before


@pytest.fixture
def _python_hears_ctrl_c():
    """The handler of Python, which a library of a test before may have replaced."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_python_hears_ctrl_c")
def test_ctrl_c_ends_what_is_begun():
    main, ended = threading.get_ident(), []

    def work(item: int) -> None:
        if threading.get_ident() == main and item:
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.01)
        ended.append(item)

    with pytest.raises(KeyboardInterrupt), threads(2):
        in_workers(work, range(1000))
    assert len(ended) < 10
    n_ended = len(ended)
    time.sleep(0.05)
    assert len(ended) == n_ended
    assert in_workers(abs, [-1, 2], 2) == [1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_that_forks_from_started_threads_works_alone():
    with threads(2), one_thread():
        in_workers(_ident, range(10))
        if not (process := os.fork()):
            found = in_workers(_ident, range(10), 2) if torch.get_num_threads() == 1 else []
            os._exit(0 if len(found) == 10 else 1)
        assert os.waitpid(process, 0)[1] == 0
        assert len(in_workers(_ident, range(10))) == 10


def test_threads_that_need_one_each_leave_the_numbers_as_they_were():
    """The first takes the numbers of all and leaves before the second."""
    before, within, left, seen = numbers(), threading.Event(), threading.Event(), []

    def second() -> None:
        with one_thread():
            within.set()
            left.wait(10)
            seen.append(numbers())
        seen.append(torch.get_num_threads())

    other = threading.Thread(target=second)
    with one_thread():
        other.start()
        assert within.wait(10)
    assert torch.get_num_threads() == before[0]
    with torch_threads(3):
        left.set()
        other.join()
    assert seen == [[1] * len(before), 2]
    assert numbers() == before


# -------------------------------------------------------------------- how many


def groups(root: Path, lines: str, files: dict[str, str]) -> Path:
    """A root with control groups."""
    for name, text in {"proc/self/cgroup": lines, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


V1, V2 = "4:memory:/box\n3:cpu,cpuacct:/box\n0::/\n", "0::/slice/box\n"


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        (V2, {"cpu.max": "50000 100000"}, 1),  # half a core
        (V2, {"slice/box/cpu.max": "300000 100000", "cpu.max": "max 100000"}, 3),
        (V2, {"slice/box/cpu.max": "max 100000", "slice/cpu.max": "150000 100000"}, 2),
        (V2, {"cpu.max": "max 100000"}, 64),
        (V2, {"cpu.max": "nonsense"}, 64),
        (V1, {"cpu/box/cpu.cfs_quota_us": "50000\n", "cpu/box/cpu.cfs_period_us": "100000\n"}, 1),
        (V1, {"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
        (V1, {"cpu/box/cpu.cfs_quota_us": "-1", "cpu/box/cpu.cfs_period_us": "100000"}, 64),
        (V1, {"cpu/box/cpu.cfs_quota_us": "100000", "cpu/box/cpu.cfs_period_us": "0"}, 64),
        ("", {}, 64),
    ],
)
def test_containers_limit_the_cores(tmp_path, monkeypatch, lines, files, expected):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    root = groups(tmp_path, lines, {f"sys/fs/cgroup/{name}": text for name, text in files.items()})
    assert cores(root) == expected
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    assert cores(root) == 1
    assert cores(tmp_path / "elsewhere") == 1


def test_the_default_is_that_of_torch_within_the_cores_unless_the_environment_says_more(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(module, "cores", lambda: 1)
    assert default_threads() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert default_threads() == 2
    with one_thread():
        assert default_threads() == 2
        with threads(1):
            assert len(set(in_workers(_ident, range(50), 4))) == 1


# -------------------------------------------------------------------- models


def ratings() -> Interactions:
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((1300, 700)) < 0.06)
    values = (3 + rng.normal(size=1300)[users] + rng.normal(size=700)[items]).clip(1, 5)
    return Interactions(users, items, values.round(), range(1300), range(700))


def model(n_threads: int | None, solver: str = "variational") -> AIR:
    how = {"n_sweeps": 3, "n_factors": 12, "random_state": 0, "device": "cpu"}
    return AIR.for_ratings(solver=solver, n_threads=n_threads, **how)


def learned(fitted: AIR) -> list[np.ndarray]:
    """What the training found, lists and new rows."""
    some = fitted.interactions_.to_csr()[:600]
    return [
        *fitted.factors_.arrays(),
        *(graph.to_scipy().toarray() for graph in (fitted.user_graph_, fitted.item_graph_) if graph is not None),
        fitted.predict(range(100), range(100)),
        *(fitted.recommend(range(1300), 5, rank_by="rating")[name].to_numpy() for name in ("item", "score")),
        fitted.fold_in(some).user_factors_,
    ]


@pytest.mark.parametrize("solver", ["variational", "langevin"])
@pytest.mark.filterwarnings("ignore:n_threads=.* is more than")
def test_any_number_of_threads_finds_the_same_bits(solver):
    data = ratings()
    expected = learned(model(1, solver).fit(data))
    for number in (2, 16, None):
        for one, other in zip(expected, learned(model(number, solver).fit(data)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_two_trainings_at_once_find_the_same_bits():
    data, found = ratings(), {}
    expected, before = learned(model(2).fit(data)), numbers()
    runs = [threading.Thread(target=lambda key=key: found.update({key: learned(model(2).fit(data))})) for key in "ab"]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    for each in found.values():
        for one, other in zip(expected, each, strict=True):
            np.testing.assert_array_equal(one, other)
    assert len(found) == 2
    assert numbers() == before


def test_an_error_in_a_worker_leaves_the_model_as_before(monkeypatch):
    from air_recsys.nn.posterior import equations

    data, fitted = ratings(), model(2)
    before = learned(fitted.fit(data))

    def fail(*_: object) -> None:
        raise ZeroDivisionError("in a worker")

    monkeypatch.setattr(equations, "gaussians", fail)
    with pytest.raises(ZeroDivisionError, match="in a worker"):
        fitted.fit(data)
    monkeypatch.undo()
    for one, other in zip(before, learned(fitted), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "2", 10**30])
def test_what_is_no_number_of_threads_is_refused(bad):
    with pytest.raises(ParameterError, match="n_threads must be None or an integer >= 1"):
        model(bad).fit(ratings())


def test_more_threads_than_cores_are_said():
    with pytest.warns(ParameterWarning, match=f"n_threads={MANY} is more than the {cores()} processor"):
        model(MANY).fit([[1.0, 2.0], [3.0, np.nan]])


def test_the_number_is_saved_and_is_no_part_of_a_checkpoint(tmp_path):
    data = ratings()
    fitted = model(2).fit(data)
    assert AIR.load(fitted.save(tmp_path / "model.air") or tmp_path / "model.air").n_threads == 2
    model(2).fit(data, checkpoint=tmp_path / "run.ckpt", every=1, callbacks=[lambda record: record.epoch == 2])
    resumed = model(1).fit(data, resume_from=tmp_path / "run.ckpt")
    np.testing.assert_array_equal(resumed.user_factors_, fitted.user_factors_)
