"""Explanations: what speaks for a score, in parts that add up to it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from explain_cases import ALL, CPU, MODELS, N_ITEMS, N_USERS, USERS, by_id, data, figures, random_pairs, ratings_model

from air_recsys import AIR, Interactions
from air_recsys.datasets import load_movielens, load_yamanishi, make_syn_netflix
from air_recsys.models.engines.objective_contributions import Contributing, equation_of, equations
from air_recsys.models.engines.scaling import energy_weight, graph_strength
from air_recsys.models.rows import LeastSquaresRows, Ties
from air_recsys.splits import random_holdout


@pytest.fixture(scope="module", params=MODELS, ids=MODELS)
def model(request):
    """A trained model of each preset; not to be changed."""
    return MODELS[request.param]()


# -------------------------------------------------------------------- sums


def test_contributions_add_up_to_the_score(model):
    error, remainder, personal = figures(model, 100)
    assert error < 1e-5
    assert remainder < 0.02 * personal
    assert personal > 0.1


def test_tables_add_up_to_the_totals(model):
    for pair in random_pairs(model, 10):
        found = model.explain(*pair, n=ALL)
        for table in (found.rated_items, found.similar_users, found.graph_edges):
            assert len(table.rows) == table.count
            assert table.rows["contribution"].sum() == pytest.approx(table.total, abs=1e-9)
        passed = found.items["by_graph"].sum() + found.users["by_graph"].sum()
        assert passed == pytest.approx(found.graph_edges.total, abs=1e-8)
        assert found.graph_edges.count == model.item_adjacency_.nnz


def test_fewer_rows_are_the_largest_and_the_others_make_up_for_them(model):
    for pair in random_pairs(model, 5):
        whole, short = model.explain(*pair, n=ALL), model.explain(*pair, n=3)
        for name in ("rated_items", "similar_users", "graph_edges"):
            table, rows = getattr(short, name), getattr(whole, name).rows
            pd.testing.assert_frame_equal(table.rows, rows.head(3))
            sizes = rows["contribution"].abs()
            assert (sizes.diff().dropna() <= 0).all()
            assert table.others == pytest.approx(rows["contribution"][3:].sum(), abs=1e-9)
        assert short.total() == whole.total()


@pytest.mark.data
def test_a_thousand_pairs_of_movielens(data_root):
    model = AIR.for_ratings(solver="adam", **CPU).fit(load_movielens(data_root, "100k"))
    error, remainder, personal = figures(model, 1000)
    assert error < 1e-4
    assert remainder < 0.02 * personal


@pytest.mark.data
def test_a_thousand_pairs_of_ion_channels(data_root):
    known = load_yamanishi(data_root, "ic").interactions
    model = AIR.for_interactions(n_epochs=200, **CPU).fit(
        known.select(random_holdout(known, 0.2, random_state=0).train)
    )
    error, remainder, personal = figures(model, 1000)
    assert error < 1e-4
    assert remainder < 0.03 * personal


def test_a_thousand_pairs_of_syn_netflix():
    truth = make_syn_netflix(n_users=60, n_items=50, n_user_groups=5, n_item_groups=4).matrix
    seen = np.random.default_rng(0).random(truth.shape) < 0.4
    model = AIR.for_completion(n_epochs=500, **CPU).fit(np.where(seen, truth, np.nan))
    error, remainder, personal = figures(model, 1000)
    assert error < 1e-4
    assert remainder < 0.02 * personal


# -------------------------------------------------------------------- what a contribution is


def variant(name):
    """Models at depth 2 with weight decay, whose penalty is that of fold-in."""
    options = {"user_graph_reg": 1e-3, "item_graph_reg": 1e-3, "n_epochs": 300}
    plain = {"biases": False, "center": False}
    if name == "weighted":
        known = data()
        weights = np.random.default_rng(1).uniform(0.2, 3, known.n_ratings)
        frame = known.to_frame().assign(weight=weights)
        return ratings_model(**options).fit(Interactions.from_frame(frame, weight="weight"))
    options |= {"biased": {}, "plain": plain, "unobserved": plain | {"unobserved_weight": 0.2}}[name]
    return ratings_model(**options).fit(data())


class SolvedScore:
    """The score that fold-in's solve gives one user, with the bias held fixed; `deaf` items hear no neighbours."""

    def __init__(self, model, user, item, deaf=False):
        known, solver, graph = model.interactions_, model.row_solver(), model.item_adjacency_
        items, pairs = solver.others.astype(float), known.n_users * known.n_items
        pull = pairs * graph_strength(model.solver.item_graph_reg, known) * (items.T @ graph @ items)
        penalty = solver.penalty + pull if deaf else solver.penalty
        offsets = solver.offsets + model.user_biases_[user]
        self.solver = LeastSquaresRows(items, offsets, penalty, None, solver.unobserved_weight)
        self.ratings = known.to_csr()[[user]]
        self.weights = None if known.weights is None else known.weights_to_csr()[[user]].data
        self.edges = model.user_adjacency_[[user]]
        self.strength = pairs * graph_strength(model.solver.user_graph_reg, known)
        self.users, self.item = model.user_factors_, items[item]

    def __call__(self, ratings=None, users=None):
        pulls = self.edges @ (self.users if users is None else users)
        ties = Ties(self.strength, self.edges.sum(axis=1), pulls)
        ratings = self.ratings if ratings is None else ratings
        return float(self.solver.solve(ratings, weights=self.weights, ties=ties).factors[0] @ self.item)

    def lost_ratings(self):
        """What each rating takes with it when it becomes what the biases say."""
        for place, rated in enumerate(self.ratings.indices):
            less = self.ratings.copy()
            less.data[place] = self.solver.offsets[rated]
            yield rated, self() - self(ratings=less)

    def lost_users(self):
        """What each neighbour takes with it when its factors become zero."""
        for other in self.edges.indices:
            silent = self.users.copy()
            silent[other] = 0
            yield other, self() - self(users=silent)


@pytest.mark.parametrize("name", ["biased", "plain", "unobserved", "weighted"])
def test_a_contribution_is_what_the_solved_score_loses_without_its_source(name):
    model, user, item = variant(name), 5, 7
    solved, deaf = SolvedScore(model, user, item), SolvedScore(model, user, item, deaf=True)
    known = model.interactions_
    found = model.explain(known.user_ids[user], known.item_ids[item], n=ALL)
    assert found.rated_items.total + found.similar_users.total == pytest.approx(solved(), abs=1e-6)
    for table, ids, lost, direct in (
        (found.items, known.item_ids, solved.lost_ratings(), deaf.lost_ratings()),
        (found.users, known.user_ids, solved.lost_users(), deaf.lost_users()),
    ):
        losses = np.array([(*whole, straight) for whole, (_, straight) in zip(lost, direct, strict=True)])
        rows = table.set_index(table.columns[0]).loc[ids[losses[:, 0].astype(int)]]
        np.testing.assert_allclose(rows["contribution"], losses[:, 1], atol=1e-6)
        np.testing.assert_allclose(rows["by_graph"], losses[:, 1] - losses[:, 2], atol=1e-6)
        assert np.abs(losses[:, 1]).max() > 1e-4


def test_an_edge_passes_the_score_of_its_neighbor():
    """With the neighbours' scores as given, deaf items hear of them over the edges only: one less, so much less."""
    model = MODELS["ratings"]()
    user, item, state, terms = 3, 8, model._state, model.solver
    weights = [energy_weight(strength, state.data) for strength in (terms.user_graph_reg, terms.item_graph_reg)]
    shared = equations(state, Contributing(model.row_solver(), (weights[0], weights[1]), terms.weight_decay > 0))
    row = equation_of(state, shared, user)
    adjacency, strength = shared.item_edges
    scores = shared.items @ row.solution

    def solved(adjacency):
        heard = strength * (shared.items.T @ (adjacency @ scores))
        return shared.items[item] @ np.linalg.solve(row.matrix + shared.pull, row.summands.sum(axis=1) + heard)

    score = solved(adjacency)
    found = model.explain(USERS[user], item)
    assert score == pytest.approx(found.rated_items.total + found.similar_users.total, abs=1e-9)
    for edge in found.edges.itertuples():
        less = adjacency.tolil()
        less[edge.item, edge.neighbor] = 0
        assert edge.contribution == pytest.approx(score - solved(less.tocsr()), abs=1e-9)


def changes_without_the_strongest_reason(model, n_pairs):
    """By how much a score moves when a user is folded in again without that rating, and its contribution."""
    known, rows = model.interactions_, model.interactions_.to_csr()
    for user, item in random_pairs(model, n_pairs):
        best = model.explain(user, item).items.iloc[0]
        whole = rows[known.users.lookup(user)]
        kept = whole.indices != best["item"]  # ids of items are their indices
        less = sp.csr_array((whole.data[kept], whole.indices[kept], [0, kept.sum()]), whole.shape)
        before, after = (model.fold_in(row) for row in (whole, less))
        personal = (after.factors - before.factors)[0] @ model.item_factors_[item]
        yield personal + (after.biases - before.biases)[0], best["contribution"]


@pytest.mark.parametrize(("biases", "least"), [(False, 0.95), (True, 0.8)])
def test_without_its_strongest_reason_a_score_moves_the_other_way(biases, least):
    """A trained bias moves too, which contributions leave aside: they hold it fixed."""
    model = ratings_model(user_graph_reg=0.0, n_epochs=500, biases=biases).fit(data())
    opposed = [change * contribution < 0 for change, contribution in changes_without_the_strongest_reason(model, 100)]
    assert np.mean(opposed) >= least


def test_reasons_come_from_the_own_group(model):
    """What a user loves speaks for films of the same group, and so do the users of the same group."""
    for user in range(0, N_USERS, 5):
        found = model.explain(USERS[user], user % 2 + 2 * (user % 7), n=ALL)  # an item that the user loves
        alike = found.items["item"] % 2 == user % 2
        own, other = (found.items["contribution"][chosen].sum() for chosen in (alike, ~alike))
        assert own > 0.2
        if model.solver.biases:  # dislikes speak too, as far as they lie below what the biases say
            assert other > 0.2
        else:
            assert abs(other) < 0.1 * own
        friends = found.users["user"].map(USERS.index) % 2 == user % 2
        pulls = found.users["contribution"].abs()
        assert pulls[~friends].sum() <= 0.1 * pulls[friends].sum()


def test_the_columns_say_what_is_known_of_the_sources(model):
    known, user, item = model.interactions_, USERS[4], 8
    found = model.explain(user, item, n=ALL)
    frame = known.to_frame()
    mine = frame[frame["user"] == user].set_index("item")["rating"]
    of_item = frame[frame["item"] == item].set_index("user")["rating"]
    pd.testing.assert_series_equal(by_id(found.items, "rating"), mine.sort_index())
    column = known.items.lookup(by_id(found.items).index)
    expected = mine.sort_index().to_numpy() - found.mean - found.user_bias - model.item_biases_[column]
    np.testing.assert_allclose(by_id(found.items, "deviation"), expected, atol=1e-6)
    np.testing.assert_array_equal(found.users["rating"], of_item.reindex(found.users["user"]))
    np.testing.assert_array_equal(found.users["score"], model.predict(found.users["user"], item))
    near = model.item_graph_.neighbors(item, N_ITEMS).set_index("item")["weight"]
    np.testing.assert_array_equal(found.items["weight"], near.reindex(found.items["item"], fill_value=0))
    near = model.user_graph_.neighbors(user, N_USERS).set_index("user")["weight"]
    np.testing.assert_array_equal(found.users["weight"], near.reindex(found.users["user"], fill_value=0))
    assert model.user_adjacency_[[USERS.index(user)]].nnz == found.similar_users.count
    np.testing.assert_array_equal(found.edges["rating"], mine.reindex(found.edges["neighbor"]))
    matrix = model.item_graph_.to_scipy().toarray()
    np.testing.assert_array_equal(found.edges["weight"], matrix[found.edges["item"], found.edges["neighbor"]])
