"""Toy data with a known answer, and what docs/graphs.md says of graphs, held against the models."""

from typing import Any

import numpy as np
import pytest
from model_cases import CPU, by_paper
from scipy.ndimage import gaussian_filter
from sklearn.metrics import adjusted_rand_score

from air_recsys import AIR, DMF, Interactions
from air_recsys.metrics import auroc, rmse
from air_recsys.models import RDMF, DirichletDMF

USER_GROUPS = np.repeat([0, 1, 2], 6)
ITEM_GROUPS = np.repeat([0, 1, 2, 3], 5)
LEVELS = np.array([[5.0, 1.0, 3.0, 2.0], [1.0, 4.0, 2.0, 5.0], [3.0, 2.0, 5.0, 1.0]])
TRUTH = LEVELS[USER_GROUPS][:, ITEM_GROUPS]
MASK = np.random.default_rng(0).random(TRUTH.shape) < 0.7

FORMS = {
    "dense": {"n_epochs": 2000, "learning_rate": 3e-3, "user_graph_reg": 1e-3, "item_graph_reg": 1e-3},
    "sparse": {"n_epochs": 4000, "graph_neighbors": 4},
    "factor-width-sparse": {"n_epochs": 2000, "n_factors": 6, "learning_rate": 3e-3, "graph_neighbors": 4},
}


@pytest.fixture(scope="module", params=FORMS.values(), ids=list(FORMS))
def model(request):
    """AIR on a matrix of three groups of users and four of items, 30 % withheld, in another order of ids."""
    data = Interactions.from_dense(np.where(MASK, TRUTH, np.nan))
    return by_paper(init_std=0.1, **CPU, **request.param).fit(data)


def test_withheld_entries_are_recovered_and_hidden_groups_found(model):
    users, items = np.nonzero(~MASK)
    assert users.size > 90
    np.testing.assert_allclose(model.predict(users, items), TRUTH[users, items], atol=0.2)
    for graph, groups in ((model.user_graph_, USER_GROUPS), (model.item_graph_, ITEM_GROUPS)):
        assert adjusted_rand_score(groups, graph.communities()) == 1.0
    for user in range(18):
        assert set(USER_GROUPS[model.similar_users(user, 3)["user"]]) == {USER_GROUPS[user]}
        levels = TRUTH[user, model.recommend(user, 20)["item"].to_numpy()]
        assert (np.diff(levels) <= 0).all()  # withheld items of the highest level first


def test_depth_alone_finds_a_matrix_of_rank_one():
    rng = np.random.default_rng(1)
    truth = np.outer(rng.uniform(0.5, 1, 15), rng.uniform(0.5, 1, 12))
    withheld = rng.random(truth.shape) < 0.4
    model = DMF(n_epochs=1000, init_std=0.01, schedule="cooldown", **CPU).fit(np.where(withheld, np.nan, truth))
    np.testing.assert_allclose(model.predict(*np.nonzero(withheld)), truth[withheld], atol=0.01)


@pytest.mark.parametrize("width", [None, 5])
def test_hidden_pairs_of_positive_only_data_stand_above_the_others(width):
    pairs = (TRUTH >= 4).astype(float)  # which group takes which
    hidden = (pairs > 0) & (np.random.default_rng(2).random(pairs.shape) < 0.2)
    data = Interactions.from_dense(np.where((pairs > 0) & ~hidden, 1.0, np.nan))
    options = CPU | {"n_epochs": 1500, "learning_rate": 3e-3, "init_std": 0.1, "unobserved_weight": 0.1}
    model = AIR.for_interactions(n_factors=width, **options).fit(data)
    users, items = np.nonzero(hidden | (pairs == 0))
    assert auroc(hidden[users, items], model.predict(users, items)) > 0.95


def error_on(model, truth, mask):
    return rmse(truth[mask], model.predict(*np.nonzero(mask)))


LONG: dict[str, Any] = {"n_epochs": 1500, "learning_rate": 3e-3, "init_std": 0.05, **CPU}


def test_the_right_graph_beats_none():
    """Eight groups of three users who rate alike: too many groups for depth alone to find."""
    truth = np.repeat(np.random.default_rng(0).uniform(1, 5, (8, 20)), 3, axis=0)  # (24, 20)
    mask = np.random.default_rng(0).random(truth.shape) < 0.5
    ratings = np.where(mask, np.nan, truth)
    cliques = np.kron(np.eye(8), np.ones((3, 3)) - np.eye(3))
    plain = DMF(**LONG).fit(ratings)
    helped = DirichletDMF(cliques, None, user_graph_reg=1e-3, **LONG).fit(ratings)
    alike = np.repeat(mask.reshape(8, 3, 20).all(axis=1), 3, axis=0)  # hidden from the whole group
    assert error_on(helped, truth, mask & ~alike) < 0.5 * error_on(plain, truth, mask & ~alike)


def test_total_variation_restores_a_smooth_surface():
    surface = gaussian_filter(np.random.default_rng(0).normal(size=(24, 24)), 2.0)
    surface = 1 + (surface - surface.min()) / np.ptp(surface)
    mask = np.random.default_rng(0).random(surface.shape) < 0.5
    ratings = np.where(mask, np.nan, surface)
    plain, smooth = (model.fit(ratings) for model in (DMF(**LONG), RDMF(tv_reg=3e-3, **LONG)))
    assert error_on(smooth, surface, mask) < 0.8 * error_on(plain, surface, mask)


# -------------------------------------------------------------------- what docs/graphs.md says of each preset


def table(binary=False):
    """60 users and 50 items in a few groups with noise, a third of it known."""
    rng = np.random.default_rng(0)
    full = rng.integers(1, 6, (6, 5)).repeat(10, axis=0).repeat(10, axis=1) + 0.5 * rng.standard_normal((60, 50))
    full = (full + rng.standard_normal(full.shape) > 3).astype(float) if binary else full.clip(0, 7)
    return np.where(rng.random(full.shape) < 0.3, full, np.nan)


def scores(model, data):
    return model.fit(data).predict(np.arange(60).repeat(50), np.tile(np.arange(50), 60))


@pytest.mark.parametrize(
    ("preset", "options", "by"),
    [
        ("completion", {"n_epochs": 200, "n_factors": 20}, 0.01),
        ("interactions", {"n_epochs": 400}, 0.01),
        ("ratings", {"solver": "adam"}, 1e-6),
    ],
)
def test_graphs_of_the_objective_move_the_scores(preset, options, by):
    data = table(binary=preset == "interactions")
    tied = scores(AIR.of_preset(preset, **CPU | options), data)
    free = scores(AIR.of_preset(preset, **CPU | options, user_graph_reg=0.0, item_graph_reg=0.0), data)
    assert np.abs(tied - free).max() > by


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_graphs_of_a_posterior_are_a_reading_where_none_carries_residuals(solver):
    data, options = table(), CPU | {"n_sweeps": 8, "n_factors": 3, "solver": solver, "graph_residuals": 0}
    read = AIR.for_ratings(**options)
    expected = scores(read, data)
    assert read.user_graph_ is not None
    assert read.item_graph_ is not None
    for without in (("user_graph_reg",), ("item_graph_reg",), ("user_graph_reg", "item_graph_reg")):
        model = AIR.for_ratings(**options, **dict.fromkeys(without, 0))
        np.testing.assert_array_equal(scores(model, data), expected)
        assert (model.user_graph_ is None) == ("user_graph_reg" in without)
    assert (read.explain(3, 4).items["by_graph"] == 0).all()
