"""A system sees what it is shown and nothing else, and what a run leaves behind comes back from its file."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reproduction_cases import AIR, GIVEN, M, N, ring, small_case, small_recipe, use_small_cases

from air_recsys import GlobalMean
from air_recsys.exceptions import DataFileError
from air_recsys.graphs import SimilarityGraph
from air_recsys.metrics import nmae
from benchmarks.paper import systems
from benchmarks.paper.cases import observed_entries, validation_entries
from benchmarks.paper.systems import Outcome, entry_errors, recovery, run_system

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
every_system = pytest.mark.parametrize(("chosen", "data"), SYSTEMS.values(), ids=SYSTEMS)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    use_small_cases(monkeypatch)


def run(chosen, data="rank-5", seed=0, mask="random", root=None, **how):
    recipe = small_recipe(data=data, mask=mask, keep=("curves", "graphs"))
    return run_system(recipe, chosen, seed, root=root, device="cpu", **how)


def parts(data, seed=0, mask="random", validation=0.0):
    """What is shown to a system, and what it is asked for."""
    recipe, case = small_recipe(data=data, mask=mask), small_case(data)
    shown = observed_entries(recipe, case, None, seed)
    asked = validation_entries(recipe, shown, validation, seed) if validation else ~shown
    return shown & ~asked, asked


class Constant:
    """A model that keeps what it is trained on, and predicts a constant."""

    def fit(self, data, callbacks):
        self.seen, self.callbacks = data, callbacks
        return self

    def predict(self, rows, columns):
        return np.full(rows.size, 0.25)


@pytest.mark.parametrize("validation", [0.0, 0.3])
@pytest.mark.parametrize(
    ("data", "mask"), [("barbara", "random"), ("barbara", "patch"), ("barbara", "texture"), ("ic", "random")]
)
def test_a_training_sees_what_is_shown_alone_and_the_error_is_that_of_what_is_asked(
    data, mask, validation, monkeypatch
):
    monkeypatch.setattr("benchmarks.paper.cases._SHIFT", (4, 4))
    shown, asked = parts(data, mask=mask, validation=validation)
    model, truth = Constant(), small_case(data).truth
    monkeypatch.setattr(systems, "make_model", lambda *_: model)
    found = run({"model": "KNN"}, data, mask=mask, validation=validation)
    np.testing.assert_array_equal(model.seen.to_dense(), np.where(shown, truth, np.nan))
    assert model.callbacks == []  # of a model without records
    expected = nmae(truth[asked], np.full(asked.sum(), 0.25), value_range=float(np.ptp(truth)))
    assert found.numbers["nmae"] == pytest.approx(expected)


@pytest.mark.parametrize("data", ["barbara", "ic", "syn-netflix"])
def test_in_validation_no_figure_depends_on_hidden_entries(data, monkeypatch):
    hidden = ~parts(data)[0]
    honest, case = run(AIR, data, validation=0.3), small_case(data)
    truth = case.truth.copy()
    truth[hidden] = truth[hidden][::-1]  # its range stays
    monkeypatch.setattr(systems, "load_case", lambda name, root: dataclasses.replace(case, truth=truth))
    garbage = run(AIR, data, validation=0.3)
    for outcome in (honest, garbage):
        outcome.numbers.pop("seconds")
    assert (honest.numbers, honest.curves) == (garbage.numbers, garbage.curves)


@every_system
def test_every_kind_of_data_has_its_figures(chosen, data):
    outcome = run(chosen, data)
    assert outcome.numbers["seconds"] > 0
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
    st.dictionaries(st.text(max_size=5), st.floats(), max_size=4),
    st.dictionaries(st.text(max_size=5), st.lists(st.floats(allow_nan=False), max_size=4), max_size=3),
    st.integers(0, 1000),
)
def test_an_outcome_comes_back_from_its_file(tmp_path_factory, numbers, curves, seed):
    path = tmp_path_factory.mktemp("runs") / "run.npz"
    rng = np.random.default_rng(seed)
    arrays = {"graph": rng.random((3, 4)).astype(np.float32), "flags": rng.random((3, 4)) < 0.5}
    Outcome(numbers, curves, arrays).write(path)
    found = Outcome.read(path)
    assert found.curves == curves
    assert repr(found.numbers) == repr(numbers)  # NaN too
    assert list(found.arrays) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == array.dtype
    assert [entry.name for entry in path.parent.iterdir()] == ["run.npz"]


def test_a_crash_while_writing_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    Outcome({"nmae": 1.0}).write(path)

    def crash(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.savez_compressed", crash)
    with pytest.raises(OSError, match="No space"):
        Outcome({"nmae": 2.0}).write(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]
    assert Outcome.read(path).numbers == {"nmae": 1.0}


def test_a_file_that_is_no_whole_run_is_named(tmp_path):
    path = tmp_path / "run.npz"
    Outcome({"nmae": 1.0}, {}, {"graph": np.zeros((20, 20))}).write(path)
    whole, others = path.read_bytes(), []
    for arrays in ({"graph": np.zeros(3)}, {"content": np.array("[1]")}):
        np.savez(path, **arrays)
        others.append(path.read_bytes())
    for content in (*(whole[:size] for size in (0, 10, 100, -200, -1)), b"no zip", b"\x93NUMPY", *others):
        path.write_bytes(content)
        with pytest.raises(DataFileError, match=r"run\.npz is not a whole run .*: delete it"):
            Outcome.read(path)


def test_errors_are_of_the_entries_asked_for_and_0_1_truth_is_ranked_too():
    rng = np.random.default_rng(0)
    truth, asked = rng.uniform(1, 5, (20, 15)), rng.random((20, 15)) < 0.4
    assert entry_errors(truth, asked, truth[asked] + 0.1) == {"nmae": pytest.approx(0.1 / np.ptp(truth))}
    binary = (truth < 2).astype(float)
    assert entry_errors(binary, asked, binary[asked]) == {"nmae": 0, "average_precision": 1, "auroc": 1}
    assert entry_errors(binary, asked, 1 - binary[asked])["auroc"] == 0


def test_recovery_of_the_true_graphs_is_complete_and_of_others_is_not():
    groups, other = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 0, 1])
    graphs = [SimilarityGraph((own[:, None] == own) * 1.0, range(6)) for own in (groups, other)]
    model: Any = SimpleNamespace(user_graph_=graphs[0], item_graph_=graphs[1])
    found = recovery(model, groups, groups)
    assert (found["user_auc"], found["user_nmi"]) == (1, pytest.approx(1))
    assert found["item_auc"] < 0.6
    assert found["item_nmi"] < 0.5
    assert recovery(GlobalMean().fit(np.eye(6) + 1), groups, groups) == {}
