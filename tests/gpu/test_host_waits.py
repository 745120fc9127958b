"""How often the host waits for the device: each wait empties the queue of kernels. Counted on the emulated device."""

from collections import Counter

import emulation
import pytest
from gpu_cases import model, needs_emulation, needs_gpu, ratings

from air_recsys import AIR
from air_recsys.models.engines import posterior
from air_recsys.nn.posterior import equations

pytestmark = [*needs_gpu, needs_emulation]


def waits_a_step(fit, first=4, more=4):
    """Waits of each of `more` steps beyond the first ones."""
    counts = []
    for n_steps in (first, first + more):
        with emulation.watched() as seen:
            fit(n_steps)
        counts.append(seen.waits)
    extra = Counter(counts[1])
    extra.subtract(counts[0])
    return sum(extra.values()) / more, {key: count / more for key, count in extra.items() if count}


@pytest.mark.parametrize("neighbors", [4, None])
@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_a_sweep_waits_once_for_its_flags(solver, neighbors):
    options = {"graph_neighbors": None} if neighbors is None else {"graph_refresh": 100}
    waits, where = waits_a_step(lambda n: model("cuda", solver, n_sweeps=n, **options).fit(ratings()))
    assert waits == 1, where


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_a_sweep_in_blocks_waits_once(solver, monkeypatch):
    monkeypatch.setattr(posterior, "SUMS", 400)
    monkeypatch.setattr(equations, "MOST_FACTORED", 3)
    options = {"graph_refresh": 100, "user_graph_reg": 0, "item_graph_reg": 0}
    waits, where = waits_a_step(lambda n: model("cuda", solver, n_sweeps=n, **options).fit(ratings()))
    assert waits == 1, where


def test_a_validation_error_is_found_on_the_device_and_waited_for_once():
    options = {"graph_refresh": 100, "validation_fraction": 0.2}
    waits, where = waits_a_step(lambda n: model("cuda", n_sweeps=n, **options).fit(ratings()))
    assert waits == 2, where


def completed(n_epochs, **options):
    settings = {
        "settings": "fixed",
        "graph_neighbors": None,
        "learning_rate": 1e-3,
        "random_state": 0,
        "device": "cuda",
    }
    AIR.for_completion(n_epochs=n_epochs, **settings | options).fit(ratings())


def test_a_step_of_graphs_of_all_pairs_does_not_wait():
    assert waits_a_step(lambda n: completed(n, evaluate_every=100), first=6)[0] == 0


@pytest.mark.parametrize("options", [{"evaluate_every": 1}, {"evaluate_every": 100, "stopping_delta": 1e-12}])
def test_a_watched_step_waits_for_its_figures_alone(options):
    waits, where = waits_a_step(lambda n: completed(n, **options), first=6)
    assert waits <= 2, where  # the objective, and whether the logits are finite


@pytest.mark.parametrize("solver", ["adam", "adam in parts"])
def test_an_epoch_of_sparse_graphs_does_not_wait(solver):
    waits, where = waits_a_step(
        lambda n: model("cuda", solver, n_epochs=n, evaluate_every=100, graph_refresh=100).fit(ratings())
    )
    assert waits == 0, where
