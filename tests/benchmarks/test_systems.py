"""A system sees what it is shown and nothing else, and what a run leaves behind comes back from its file."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reproduction_cases import AIR, GIVEN, M, N, ring, small_case, small_recipe, use_small_cases

from air_recsys.exceptions import DataFileError
from air_recsys.metrics import nmae
from benchmarks.paper import systems
from benchmarks.paper.cases import observed_entries, validation_entries
from benchmarks.paper.systems import Outcome, run_system

SYSTEMS = {
    "AIR": (AIR, "syn-netflix"),
    "preset": (AIR | {"preset": "interactions", "graph_neighbors": 3}, "ic"),
    "auto": (AIR | {"user_graph_reg": "auto"}, "rank-5"),
    "RDMF": ({"model": "RDMF", "n_epochs": 20, "init_std": 0.1}, "barbara"),
    "neighbors": (GIVEN, "gpcr"),
    "side": (GIVEN | {"side": True}, "gpcr"),
    "KNN": ({"model": "KNN"}, "barbara"),
    "SVD": ({"model": "IterativeSVD", "rank": 2, "n_iterations": 5}, "barbara"),
    "PNMC": ({"model": "PNMC", "patch": 4, "n_rounds": 1}, "barbara"),
}
KEEP = ("completed", "curves", "graphs")
every_system = pytest.mark.parametrize(("chosen", "data"), SYSTEMS.values(), ids=SYSTEMS)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    use_small_cases(monkeypatch)


def run(chosen, data="rank-5", seed=0, mask="random", root=None, keep=KEEP, **how):
    return run_system(small_recipe(data=data, mask=mask, keep=keep), chosen, seed, root=root, device="cpu", **how)


def parts(data, seed=0, mask="random", validation=0.0):
    """What is hidden, and what is asked for of the rest."""
    recipe, case = small_recipe(data=data, mask=mask), small_case(data)
    shown = observed_entries(recipe, case, None, seed)
    asked = validation_entries(recipe, shown, validation, seed) if validation else np.zeros_like(shown)
    return ~shown, asked


def with_changes(monkeypatch, data, change):
    """Replace the truth by what `change` makes of it."""
    case = small_case(data)
    changed = dataclasses.replace(case, truth=change(case.truth.copy()))
    monkeypatch.setattr(systems, "load_case", lambda name, root: changed)


def scramble(where):
    """Reverse the order of some entries and add noise: same places, other values."""

    def change(truth):
        truth[where] = truth[where][::-1] * 0.9 + np.random.default_rng(1).random(where.sum())
        return truth

    return change


@every_system
def test_hidden_entries_reach_no_training(chosen, data, monkeypatch):
    hidden, _ = parts(data)
    honest = run(chosen, data)
    with_changes(monkeypatch, data, scramble(hidden))
    garbage = run(chosen, data)
    np.testing.assert_array_equal(honest.arrays["completed"], garbage.arrays["completed"])
    assert honest.numbers["nmae"] != garbage.numbers["nmae"]  # but they are what is asked for
    for name in ("user_energy", "item_energy"):
        assert honest.curves.get(name) == garbage.curves.get(name)
    for name in honest.arrays:
        np.testing.assert_array_equal(honest.arrays[name], garbage.arrays[name])


@every_system
def test_observed_entries_do_reach_it(chosen, data, monkeypatch):
    hidden, _ = parts(data)
    honest = run(chosen, data)
    with_changes(monkeypatch, data, scramble(~hidden))
    assert (honest.arrays["completed"] != run(chosen, data).arrays["completed"]).any()


@pytest.mark.parametrize("mask", ["random", "patch", "texture"])
@pytest.mark.parametrize("chosen", [AIR, {"model": "KNN"}], ids=["AIR", "KNN"])
def test_in_validation_neither_hidden_nor_asked_entries_reach_training(chosen, mask, monkeypatch):
    data = "barbara"
    monkeypatch.setattr("benchmarks.paper.cases._SHIFT", (4, 4))
    hidden, asked = parts(data, mask=mask, validation=0.3)
    assert asked.any()
    honest = run(chosen, data, mask=mask, validation=0.3)
    np.testing.assert_array_equal(honest.arrays["shown"], ~hidden & ~asked)
    with_changes(monkeypatch, data, scramble(hidden | asked))
    garbage = run(chosen, data, mask=mask, validation=0.3)
    np.testing.assert_array_equal(honest.arrays["completed"], garbage.arrays["completed"])


@pytest.mark.parametrize("data", ["barbara", "ic", "syn-netflix"])
def test_in_validation_no_figure_depends_on_hidden_entries(data, monkeypatch):
    hidden, _ = parts(data)

    def exchange(truth):  # the range of the truth stays
        truth[hidden] = truth[hidden][::-1]
        return truth

    honest = run(AIR, data, validation=0.3)
    with_changes(monkeypatch, data, exchange)
    garbage = run(AIR, data, validation=0.3)
    for outcome in (honest, garbage):
        outcome.numbers.pop("seconds")
    assert honest.numbers == garbage.numbers
    assert honest.curves == garbage.curves


@every_system
def test_the_error_is_that_of_the_hidden_entries(chosen, data):
    outcome, truth = run(chosen, data), small_case(data).truth
    hidden, _ = parts(data)
    completed = outcome.arrays["completed"]
    expected = nmae(truth[hidden], completed[hidden], value_range=float(np.ptp(truth)))
    assert outcome.numbers["nmae"] == pytest.approx(expected, rel=1e-5)
    assert outcome.numbers["seconds"] > 0
    np.testing.assert_array_equal(outcome.arrays["shown"], ~hidden)
    assert all(np.isfinite(value) for value in outcome.numbers.values())
    names = set(outcome.numbers) - {"nmae", "seconds"}
    graphs = {"user_auc", "item_auc", "user_nmi", "item_nmi"}
    kinds = {"barbara": {"psnr", "ssim"}, "ic": {"auroc", "average_precision"}, "syn-netflix": graphs}
    assert names == kinds.get("ic" if data == "gpcr" else data, set())


@pytest.mark.parametrize("changes", [{}, {"biases": True, "center": True, "weight_decay": 0.1}])
def test_curves_end_in_the_errors_of_the_run(changes):
    outcome = run(AIR | changes, "rank-5")
    assert outcome.curves["epoch"] == [0, 10, 20]
    assert all(len(values) == 3 for values in outcome.curves.values())
    assert outcome.curves["hidden"][-1] == pytest.approx(outcome.numbers["nmae"], rel=1e-5)


def test_same_seed_same_run_and_another_for_another():
    first, again, other = (run(AIR, seed=seed).arrays["completed"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_side_graphs_are_given_and_graphs_of_another_run_taken_at_the_epoch_asked_for():
    case = small_case("gpcr")
    assert case.side is not None
    model = systems.make_model(GIVEN | {"side": True}, case, 0)
    assert model.get_params()["user_graph"] is case.side[0]
    assert systems.make_model(GIVEN, case, 0).get_params()["user_graph"] == "neighbors"
    graphs = {}
    for epoch, size in ((5, 1.0), (10, 2.0)):
        graphs |= {f"user_graph_{epoch}": size * ring(M).toarray(), f"item_graph_{epoch}": size * ring(N).toarray()}
    taken = systems.make_model(GIVEN | {"graphs_at": 10}, case, 0, graphs=graphs).get_params()
    assert taken["user_graph"].max() == taken["item_graph"].max() == 2
    quick = systems.make_model(GIVEN | {"graphs_at": 7000}, case, 0, quick=True, graphs=graphs).get_params()
    assert quick["user_graph"].max() == 1  # a quick run has no such epoch


# ---------------------------------------------------------------- files


@settings(max_examples=20)
@given(
    st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False), max_size=4),
    st.dictionaries(st.text(max_size=5), st.lists(st.floats(allow_nan=False), max_size=4), max_size=3),
    st.integers(0, 1000),
)
def test_an_outcome_comes_back_from_its_file(tmp_path_factory, numbers, curves, seed):
    path = tmp_path_factory.mktemp("runs") / "run.npz"
    rng = np.random.default_rng(seed)
    arrays = {"completed": rng.random((3, 4)).astype(np.float32), "shown": rng.random((3, 4)) < 0.5}
    Outcome(numbers, curves, arrays).write(path)
    found = Outcome.read(path)
    assert (found.numbers, found.curves) == (numbers, curves)
    assert list(found.arrays) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == array.dtype
    assert [entry.name for entry in path.parent.iterdir()] == ["run.npz"]


def test_nan_comes_back_too(tmp_path):
    Outcome({"auroc": float("nan")}).write(tmp_path / "run.npz")
    assert np.isnan(Outcome.read(tmp_path / "run.npz").numbers["auroc"])


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("place", ["numpy.savez_compressed", "os.fsync", "pathlib.Path.replace"])
def test_a_crash_while_writing_leaves_nothing_half(tmp_path, monkeypatch, place, error, older):
    path = tmp_path / "run.npz"
    if older:
        Outcome({"nmae": 1.0}).write(path)

    def crash(*args, **kwargs):
        if place == "numpy.savez_compressed":
            args[0].write(b"half")
        raise error

    monkeypatch.setattr(place, crash)
    with pytest.raises(type(error)):
        Outcome({"nmae": 2.0}).write(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"] * older
    if older:
        assert Outcome.read(path).numbers == {"nmae": 1.0}


@pytest.mark.parametrize("size", [0, 10, 100, -200, -1])
def test_a_truncated_file_is_named(tmp_path, size):
    path = tmp_path / "run.npz"
    Outcome({"nmae": 1.0}, {}, {"completed": np.zeros((20, 20))}).write(path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DataFileError, match=r"run\.npz is not a whole run .*: delete it"):
        Outcome.read(path)


@pytest.mark.parametrize("content", [b"no zip", b"\x93NUMPY"])
def test_a_foreign_file_is_named(tmp_path, content):
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=r"run\.npz is not a whole run"):
        Outcome.read(path)


@pytest.mark.parametrize("arrays", [{"completed": np.zeros(3)}, {"content": np.array("[1]")}])
def test_an_archive_of_something_else_is_named(tmp_path, arrays):
    np.savez(tmp_path / "run.npz", **arrays)
    with pytest.raises(DataFileError, match=r"run\.npz is not a whole run"):
        Outcome.read(tmp_path / "run.npz")
