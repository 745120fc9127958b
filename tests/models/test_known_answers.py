"""Toy data with a known answer: hidden groups, withheld entries, exact low rank."""

import numpy as np
import pytest
from model_cases import CPU, by_paper
from sklearn.metrics import adjusted_rand_score

from air_recsys import AIR, DMF, Interactions
from air_recsys.metrics import auroc

USER_GROUPS = np.repeat([0, 1, 2], 6)
ITEM_GROUPS = np.repeat([0, 1, 2, 3], 5)
LEVELS = np.array([[5.0, 1.0, 3.0, 2.0], [1.0, 4.0, 2.0, 5.0], [3.0, 2.0, 5.0, 1.0]])
TRUTH = LEVELS[USER_GROUPS][:, ITEM_GROUPS]
MASK = np.random.default_rng(0).random(TRUTH.shape) < 0.7

FORMS = {
    "dense": {"n_epochs": 3000, "learning_rate": 3e-3, "user_graph_reg": 1e-3, "item_graph_reg": 1e-3},
    "sparse": {"n_epochs": 4000, "graph_neighbors": 4},
    "factor-width-sparse": {"n_epochs": 3000, "n_factors": 6, "learning_rate": 3e-3, "graph_neighbors": 4},
}


@pytest.fixture(scope="module", params=FORMS.values(), ids=list(FORMS))
def model(request):
    """AIR on a matrix of three groups of users and four of items, 30 % withheld, in another order of ids."""
    data = Interactions.from_dense(np.where(MASK, TRUTH, np.nan))
    return by_paper(init_std=0.1, **CPU, **request.param).fit(data)


def test_withheld_entries_are_recovered(model):
    users, items = np.nonzero(~MASK)
    assert users.size > 90
    np.testing.assert_allclose(model.predict(users, items), TRUTH[users, items], atol=0.2)


@pytest.mark.parametrize(("graph", "groups"), [("user_graph_", USER_GROUPS), ("item_graph_", ITEM_GROUPS)])
def test_hidden_groups_are_the_communities_of_the_learned_graphs(model, graph, groups):
    assert adjusted_rand_score(groups, getattr(model, graph).communities()) == 1.0


def test_the_nearest_are_of_the_same_group(model):
    for user in range(18):
        assert set(USER_GROUPS[model.similar_users(user, 3)["user"]]) == {USER_GROUPS[user]}


def test_recommendations_are_the_withheld_items_of_the_highest_level(model):
    for user in range(18):
        found = model.recommend(user, 20)["item"].to_numpy()
        levels = TRUTH[user, found]
        assert (np.diff(levels) <= 0).all()


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
