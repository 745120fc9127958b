"""A system sees what it is shown and nothing else, and what a run leaves behind comes back from its file."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from reproduction_cases import AIR, GIVEN, small_case, small_recipe, use_small_cases

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
    recipe = small_recipe(data=data, mask=mask)
    return run_system(recipe, chosen, seed, root=root, device="cpu", **how)


def parts(data, seed=0, mask="random", validation=0.0):
    """What is shown to a system, and what it is asked for."""
    recipe, case = small_recipe(data=data, mask=mask), small_case(data)
    shown = observed_entries(recipe, case, None, seed)
    asked = validation_entries(recipe, shown, validation, seed) if validation else ~shown
    return shown & ~asked, asked


class Constant:
    """A model that keeps what it is trained on, and predicts a constant."""

    def fit(self, data):
        self.seen = data
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
    assert honest.numbers == garbage.numbers


@every_system
def test_every_kind_of_data_has_its_figures(chosen, data):
    outcome = run(chosen, data)
    assert outcome.numbers["seconds"] > 0
    assert all(np.isfinite(value) for value in outcome.numbers.values())
    names = set(outcome.numbers) - {"nmae", "seconds"}
    graphs = {"user_auc", "item_auc", "user_nmi", "item_nmi"}
    kinds = {"barbara": {"psnr", "ssim"}, "ic": {"auroc", "average_precision"}, "syn-netflix": graphs}
    assert names == kinds.get("ic" if data == "gpcr" else data, set())


def test_side_graphs_are_given():
    case = small_case("gpcr")
    assert case.side is not None
    model = systems.make_model(GIVEN | {"side": True}, case, 0)
    assert model.get_params()["user_graph"] is case.side[0]
    assert systems.make_model(GIVEN, case, 0).get_params()["user_graph"] == "neighbors"


# ---------------------------------------------------------------- files


def test_a_run_comes_back_from_its_file_and_what_is_no_whole_one_is_named(tmp_path):
    path = tmp_path / "run.json"
    Outcome({"nmae": 1.0, "psnr": np.nan}).write(path)
    assert repr(Outcome.read(path).numbers) == repr({"nmae": 1.0, "psnr": np.nan})
    whole = path.read_bytes()
    for content in (*(whole[:size] for size in (0, 10, -3)), b"no json", b"[1]", b'{"numbers": {"nmae": "a"}}'):
        path.write_bytes(content)
        with pytest.raises(DataFileError, match=r"run\.json is not a whole run .*: delete it"):
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
