"""The memory plans against the memory that tensors really take."""

import dataclasses
import itertools
import tracemalloc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from nn_references import random_observations
from torch.utils._python_dispatch import TorchDispatchMode

from air_recsys.graphs.agreement import FEW_CANDIDATES, agreement_graphs
from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.nn.memory import (
    MemoryPlan,
    Sizes,
    holds_covariances,
    memory_plan,
    posterior_bytes,
    posterior_plan,
    readable,
    smaller,
)
from air_recsys.nn.objective import Penalties
from air_recsys.nn.posterior.estimate import LangevinEstimate, VariationalEstimate
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.posterior import Posterior
from air_recsys.training import GradientDescent, Plan, PosteriorSweeps, train

NONE = (0.0, 0.0)


class Peak(TorchDispatchMode):
    """The largest number of bytes that live tensors hold at once, and that one of them holds."""

    def __init__(self):
        super().__init__()
        self.live, self.now, self.peak, self.largest = {}, 0, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else [result]:
            if isinstance(value, torch.Tensor) and value.layout == torch.strided:
                self._note(value.untyped_storage())
        return result

    def _note(self, storage):
        key = storage._cdata
        if key in self.live:
            return
        self.live[key] = storage.nbytes()
        self.now += storage.nbytes()
        self.peak = max(self.peak, self.now)
        self.largest = max(self.largest, storage.nbytes())
        weakref.finalize(storage, self._forget, key)

    def _forget(self, key):
        self.now -= self.live.pop(key)


def built(sizes, settings):
    """Entries at random places, and their objective."""
    rng = np.random.default_rng(0)
    pairs = np.sort(rng.choice(sizes.n_rows * sizes.n_columns, size=sizes.n_ratings, replace=False))
    ratings = sp.csr_array((rng.random(pairs.size), np.divmod(pairs, sizes.n_columns)), shape=sizes[:2])
    dtype = torch.float64 if sizes.itemsize == 8 else torch.float32
    observed = observations(ratings, lambda it: it, dtype, torch.device("cpu"), ratings if sizes.weighted else None)
    return build_objective(observed, settings, rng)


RATINGS = {"width": 20, "depth": 2, "biases": True, "n_neighbors": 30}
CASES = {
    "batches": (Sizes(2000, 1000, 100_000), Settings(**RATINGS, n_batches=8)),
    "one batch": (Sizes(2000, 1000, 100_000), Settings(**RATINGS)),
    "many ratings, no graphs": (Sizes(1000, 500, 300_000), Settings(width=5, strengths=NONE, n_batches=4)),
    "dense graphs": (Sizes(800, 400, 20_000), Settings(width=20)),
    "full width": (Sizes(400, 500, 20_000), Settings()),
    "full width, sparse graphs": (Sizes(400, 500, 20_000), Settings(n_neighbors=5)),
}


@pytest.mark.parametrize(("sizes", "settings"), CASES.values(), ids=CASES)
def test_the_plan_is_a_little_above_the_peak(sizes, settings):
    with Peak() as peak:
        plan = Plan(n_epochs=3, learning_rate=0.01, graph_refresh=2, evaluate_every=2)
        train(GradientDescent(built(sizes, settings), plan))
    planned = memory_plan(sizes, settings).total
    block = 16 * 2**20 if settings.n_neighbors and any(settings.strengths) else 0  # of the search, at any size
    assert 0.9 * peak.peak < planned < 1.6 * peak.peak + block  # the arrays before the tensors are planned only


def held(*objects):
    """The bytes of the tensors that objects have as attributes, or in lists and tuples of them."""
    total = 0
    for it in objects:
        if isinstance(it, torch.Tensor):
            total += it.nbytes
        elif isinstance(it, tuple | list):
            total += held(*it)
        elif hasattr(it, "__dict__"):
            total += held(*vars(it).values())
    return total


HELD = {
    "weighted": (Sizes(60, 50, 2500, weighted=True), Settings(width=5, depth=4, biases=True, n_neighbors=20)),
    "double": (Sizes(40, 70, 2500, 8, True), Settings(width=5, n_neighbors=20, n_batches=3)),
    "dense graphs": (Sizes(40, 70, 2500), Settings(width=30, depth=5, biases=True)),
    "one dense graph": (Sizes(30, 70, 2000, 8), Settings(width=7, strengths=(0.1, 0.0), n_neighbors=None)),
    "more neighbors than rows": (Sizes(40, 70, 2500), Settings(width=3, n_neighbors=60)),
    "wider than full": (Sizes(60, 50, 1500, 8, True), Settings(width=60, biases=True)),
    "full width in batches": (Sizes(60, 50, 2500), Settings(n_batches=2)),
    "one entry": (Sizes(60, 50, 1), Settings(strengths=NONE, n_batches=3)),
    "one row": (Sizes(1, 900, 800), Settings(strengths=NONE, n_batches=3)),
    "one column": (Sizes(900, 1, 800), Settings(strengths=NONE, n_batches=3)),
}


@pytest.mark.parametrize(("sizes", "settings"), HELD.values(), ids=HELD)
def test_each_part_is_what_its_tensors_hold(sizes, settings):
    plan, objective = memory_plan(sizes, settings), built(sizes, settings)
    objective.evaluate()
    copies = 6  # value, gradient, two moments, the last good state and the best
    assert plan.factors == copies * held(objective.model_parameters())
    graphs = [graph.laplacian for graph in objective.graphs]
    neighbors = [graph.neighbors for graph in graphs if settings.n_neighbors]
    patterns = [graph._patterns for graph in graphs if settings.n_neighbors]
    counted = copies * held([graph.logits for graph in graphs]) + 3 * held(neighbors) + held(patterns)
    assert counted <= plan.graphs * 1.005
    assert plan.graphs <= 1.02 * counted
    starts = 4 * (sizes.n_rows + sizes.n_columns + 2) * len(objective.batches)  # not planned
    entries = held(list(objective.batches), vars(objective).get("dense", ()))
    assert plan.ratings == entries - starts
    assert all(isinstance(part, int) for part in plan)


@pytest.mark.parametrize("options", [{"biases": True}, {"penalties": Penalties(0.7, unobserved_weight=0.1)}])
def test_factor_width_holds_nothing_larger_than_its_data(options):
    sizes = Sizes(300, 400, 6000, 8)
    objective = built(sizes, Settings(width=3, n_neighbors=4, **options))
    objective.evaluate()
    with Peak() as peak:
        objective.evaluate()
        objective.predict_pairs(objective.batches[0].pattern)
    assert peak.largest <= 8 * sizes.n_ratings < 8 * 300 * 400 / 10


def test_smaller_settings_end_at_the_smallest():
    sizes, settings = Sizes(100_000, 50_000, 1_000_000), Settings(width=200, n_neighbors=None)
    totals = [memory_plan(sizes, changed).total for _, changed in smaller(settings, sizes)]
    assert totals[-1] == min(totals) < memory_plan(sizes, settings).total / 100
    names = [name for name, _ in smaller(settings, sizes)]
    assert names[0] == "graph_neighbors=50"
    assert names[-1] == "n_batches=32, graph_neighbors=10, n_factors=10"


@pytest.mark.parametrize(
    ("sizes", "width", "n_neighbors"),
    [
        (Sizes(1000, 800, 5000), None, None),
        (Sizes(40, 700, 5000), None, 15),
        (Sizes(1000, 800, 5000), 30, 15),
        (Sizes(40, 700, 5000), 200, 300),
    ],
)
def test_smaller_settings_are_nowhere_larger(sizes, n_neighbors, width):
    settings, least = Settings(width=width, n_neighbors=n_neighbors, n_batches=2), min(sizes[:2])
    for name, changed in smaller(settings, sizes):
        assert 1 <= changed.n_neighbors <= (n_neighbors or sum(sizes[:2]))
        assert 1 <= (changed.width or least) <= (width or least)
        assert changed.n_batches in (2, 32)
        assert ("n_factors" in name) == (changed.width != width)


def test_a_plan_reads_as_its_parts_in_sizes_for_people():
    plan = MemoryPlan(1000, 2_000_000, 3, 0)
    assert str(plan) == "2.0 MB: graphs 1.0 kB, ratings 2.0 MB, factors 3 B, work 0 B"
    sizes = (999, 99_900, 100_000, 1.5e6, 2.5e9, 423e9, 7e15)
    texts = ["999 B", "99.9 kB", "100 kB", "1.5 MB", "2.5 GB", "423 GB", "7000 TB"]
    assert [readable(size) for size in sizes] == texts


# -------------------------------------------------------------------- sweeps

SWEEPS = {  # what each is mostly of
    "matrices": (Sizes(300, 300, 3000), 30, 0, False),
    "matrices of one side": (Sizes(600, 20, 3000), 30, 0, False),
    "double": (Sizes(300, 200, 3000, 8), 30, 0, False),
    "entries": (Sizes(300, 300, 60_000), 2, 0, False),
    "features": (Sizes(1000, 800, 3000), 1, 150, False),
    "draws": (Sizes(1000, 600, 3000), 2, 0, True),
    "wide draws": (Sizes(400, 600, 3000), 12, 0, True),
    "draws from covariances": (Sizes(400, 600, 3000), 40, 0, True),
}


@pytest.mark.parametrize(("sizes", "width", "n_features", "sample"), SWEEPS.values(), ids=SWEEPS)
def test_the_estimate_of_sweeps_is_a_little_above_the_peak(sizes, width, n_features, sample):
    rng, dtype = np.random.default_rng(0), torch.float64 if sizes.itemsize == 8 else torch.float32
    n_variational, n_sweeps = 3 if width == 40 else 0, 20 if sample else 4
    errors = itertools.count(1)  # that grow: the best state is an early one and stays beside the last good one
    with Peak() as peak:
        density = sizes.n_ratings / (sizes.n_rows * sizes.n_columns)
        entries = random_observations(*sizes[:2], density=density, dtype=dtype)
        features = tuple(torch.rand(size, n_features + 2) for size in sizes[:2])
        state = Posterior(OwnEntries.of(entries), features, width, rng, sample=sample, n_variational=n_variational)
        estimate = LangevinEstimate(state, n_sweeps) if sample else VariationalEstimate(state, n_sweeps)
        sweeps = PosteriorSweeps(state, estimate, rng, n_sweeps, validation_error=lambda: float(next(errors)))
        train(sweeps)
        estimate.uncertainty()
    planned = posterior_bytes(sizes, width, n_features, sample=sample, from_covariances=width == 40)
    assert isinstance(planned, int)
    assert 0.95 * peak.peak < planned < 1.75 * peak.peak


@pytest.mark.parametrize(("shape", "n_ratings"), [((9000, 1500), 200_000), ((400, 6000), 900_000)])
def test_graphs_after_the_sweeps_are_planned(shape, n_ratings):
    rng = np.random.default_rng(0)
    settings = Settings(width=20, depth=2, strengths=(1.0, 1.0), n_neighbors=20, biases=True)
    plan = posterior_plan(Sizes(*shape, n_ratings), settings, 0, sample=False)
    without = posterior_plan(Sizes(*shape, n_ratings), dataclasses.replace(settings, strengths=NONE), 0, sample=False)
    pairs = rng.integers(0, shape, (n_ratings, 2))
    rows, factors = sp.csr_array((rng.normal(size=n_ratings), tuple(pairs.T)), shape=shape), rng.random(sum(shape))
    points = np.column_stack([factors] * 20).astype(np.float32)
    tracemalloc.start()
    found = [
        agreement_graphs(points[: shape[0]], rows, 20, FEW_CANDIDATES),
        agreement_graphs(points[shape[0] :], sp.csr_array(rows.T)),
    ]
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 2
    assert held < plan.graphs
    assert plan.graphs + plan.work > peak
    assert plan.total > without.total


def test_the_covariances_of_many_rows_are_not_held():
    settings = Settings(width=40, depth=2, strengths=NONE, n_neighbors=10, biases=True)
    few, many = Sizes(1000, 1000, 50_000), Sizes(1_000_000, 1000, 50_000)
    assert holds_covariances(few, settings)
    assert not holds_covariances(many, settings)
    plans = [posterior_plan(many, settings, 0, sample=True, from_covariances=it).total for it in (None, False, True)]
    assert plans[0] == plans[1] < plans[2]
