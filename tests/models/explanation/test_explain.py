"""Explanations: what speaks for a score, in parts that add up to it, of every kind of model and through its life."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from model_cases import of_preset

from air_recsys import AIR, DMF, Interactions
from air_recsys.exceptions import DataError, NotFittedError, ParameterError, UnknownIdError
from air_recsys.models.engines.objective_contributions import equation_of, equations
from air_recsys.models.engines.scaling import energy_weight, graph_strength
from air_recsys.models.rows import Edges, LeastSquaresRows, Ties

CPU = {"device": "cpu", "random_state": 0}
N_USERS, N_ITEMS = 40, 30
USERS = [f"u{user:02}" for user in range(N_USERS)]
ALL = 10**6


def planted(density: float = 0.6, seed: int = 0) -> np.ndarray:
    """Two groups of users and two of items; each group of users loves one and dislikes the other, with noise."""
    rng = np.random.default_rng(seed)
    alike = np.equal.outer(np.arange(N_USERS) % 2, np.arange(N_ITEMS) % 2)
    ratings = np.where(alike, 4.5, 1.5) + 0.3 * rng.normal(size=alike.shape)
    return np.where(rng.random(alike.shape) < density, ratings.clip(1, 5), np.nan)


def data(**options: Any) -> Interactions:
    """The same with ids."""
    return Interactions.from_dense(planted(**options), USERS, range(N_ITEMS))


def binary() -> Interactions:
    """1 where a group loves an item, else 0."""
    ones = np.where(np.isnan(planted(density=1.0)), 0.0, planted(density=1.0) > 3)
    return Interactions.from_dense(np.where(np.isnan(planted(seed=1)), np.nan, ones), USERS, range(N_ITEMS))


def ratings_model(**overrides: Any) -> AIR:
    """A small model for ratings."""
    options = {
        "n_factors": 3,
        "weight_decay": 2.0,
        "graph_neighbors": 5,
        "n_epochs": 1500,
        "n_batches": 1,
        "clip": False,
        "scale": False,  # the decay is one for the unit of these ratings
        "solver": "adam",
    }
    return AIR.for_ratings(**CPU | options | overrides)


MODELS = {
    "ratings": lambda: ratings_model(user_graph_reg=1e-3, item_graph_reg=1e-3).fit(data()),
    "interactions": lambda: AIR.for_interactions(n_epochs=1500, **CPU).fit(binary()),
    "completion": lambda: AIR.for_completion(n_epochs=2000, init_std=0.05, **CPU).fit(data()),
}


@cache
def trained(name: str) -> AIR:
    """A trained model of a preset; not to be changed."""
    return MODELS[name]()


def random_pairs(model: AIR, n_pairs: int, seed: int = 0) -> Iterator[tuple[Any, Any]]:
    """Pairs of a known user and a known item, rated or not."""
    rng, known = np.random.default_rng(seed), model.interactions_
    return zip(rng.choice(known.user_ids, n_pairs), rng.choice(known.item_ids, n_pairs), strict=True)


def figures(model: AIR, n_pairs: int) -> tuple[float, float, float]:
    """The largest error of the sum, and the mean size of remainder and of personal score."""
    found = [(model.predict(*pair)[0], model.explain(*pair)) for pair in random_pairs(model, n_pairs)]
    personal = [known.rated_items.total + known.similar_users.total + known.remainder for _, known in found]
    assert all(known.score == score for score, known in found)
    error = max(abs(known.total() - score) for score, known in found)
    return error, float(np.mean([abs(known.remainder) for _, known in found])), float(np.mean(np.abs(personal)))


def by_id(table: pd.DataFrame, column: str = "contribution") -> pd.Series:
    """A column of a table by the ids of its rows."""
    return table.set_index(table.columns[0])[column].sort_index()


def fails(error, message):
    return pytest.raises(error, match=re.escape(message))


@pytest.fixture(params=MODELS, ids=MODELS)
def model(request):
    return trained(request.param)


def test_contributions_add_up_to_the_score(model):
    error, remainder, personal = figures(model, 100)
    assert error < 1e-5
    assert remainder < 0.02 * personal
    assert personal > 0.1


def test_tables_add_up_to_the_totals_and_fewer_rows_are_the_largest_and_the_others(model):
    for pair in random_pairs(model, 5):
        found, short = model.explain(*pair, n=ALL), model.explain(*pair, n=3)
        for name in ("rated_items", "similar_users", "graph_edges"):
            table, few = getattr(found, name), getattr(short, name)
            contributions = table.rows["contribution"]
            assert len(contributions) == table.count
            assert contributions.sum() == pytest.approx(table.total, abs=1e-9)
            assert contributions.abs().is_monotonic_decreasing
            pd.testing.assert_frame_equal(few.rows, table.rows.head(3))
            assert few.others == pytest.approx(contributions[3:].sum(), abs=1e-9)
        assert short.total() == found.total()
        passed = found.items["by_graph"].sum() + found.users["by_graph"].sum()
        if not found.own_rating:  # of which a part passes edges too
            assert passed == pytest.approx(found.graph_edges.total, abs=1e-8)
        assert found.graph_edges.count == model.item_adjacency_.nnz


# -------------------------------------------------------------------- what a contribution is


def variant(name):
    """Models at depth 2 with weight decay, whose penalty is that of fold-in."""
    known, plain = data(), {"biases": False, "center": False}
    if name == "weighted":
        weights = np.random.default_rng(1).uniform(0.2, 3, known.n_ratings)
        known = Interactions.from_frame(known.to_frame().assign(weight=weights), weight="weight")
    options = {"plain": plain, "unobserved": plain | {"unobserved_weight": 0.2}}.get(name, {})
    return ratings_model(user_graph_reg=1e-3, item_graph_reg=1e-3, n_epochs=300, **options).fit(known)


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
    model, user, item = trained("ratings"), 3, 8
    state, terms = model._state, model.solver
    weights = [energy_weight(strength, state.data) for strength in (terms.user_graph_reg, terms.item_graph_reg)]
    edges = Edges(state.user_graph.to_scipy(), weights[0]), Edges(state.item_graph.to_scipy(), weights[1])
    shared = equations(state, model.row_solver(), *edges, decays=terms.weight_decay > 0)
    row = equation_of(state, shared, user)
    adjacency, strength = shared.item_edges
    scores = shared.items @ row.solution

    def solved(adjacency):
        heard = strength * (shared.items.T @ (adjacency @ scores))
        return shared.items[item] @ np.linalg.solve(row.matrix + shared.pull, row.summands.sum(axis=1) + heard)

    score = solved(adjacency)
    found = model.explain(USERS[user], item)
    assert score == pytest.approx(found.own_rating + found.rated_items.total + found.similar_users.total, abs=1e-9)
    for edge in found.edges.itertuples():
        less = adjacency.tolil()
        less[edge.item, edge.neighbor] = 0
        assert edge.contribution == pytest.approx(score - solved(less.tocsr()), abs=1e-9)


def test_the_columns_say_what_is_known_of_the_sources(model):
    known, user, item = model.interactions_, USERS[4], 8
    found = model.explain(user, item, n=ALL)
    frame = known.to_frame()
    mine = frame[frame["user"] == user].set_index("item")["rating"]
    of_item = frame[frame["item"] == item].set_index("user")["rating"]
    others = mine.drop(item).sort_index()
    pd.testing.assert_series_equal(by_id(found.items, "rating"), others)
    column = known.items.lookup(by_id(found.items).index)
    expected = others.to_numpy() - found.mean - found.user_bias - model.item_biases_[column]
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


# -------------------------------------------------------------------- models of other kinds


def graphs(users: float, items: float) -> AIR:
    return ratings_model(user_graph_reg=users, item_graph_reg=items, n_epochs=300)


@pytest.mark.parametrize(
    ("model", "by_users", "by_items"),
    [
        (graphs(0.0, 0.0), False, False),
        (DMF(n_epochs=300, **CPU), False, False),
        (graphs(0.0, 1e-3), False, True),
        (graphs(1e-3, 0.0), True, False),
    ],
    ids=["no graph", "DMF", "item graph", "user graph"],
)
def test_a_graph_that_is_not_there_adds_nothing(model, by_users, by_items):
    found = model.fit(data()).explain(USERS[0], 3)
    for table, there in ((found.similar_users, by_users), (found.graph_edges, by_items)):
        assert (table.count > 0) == (abs(table.total) > 0) == there
    assert found.users.empty == (not by_users)
    assert found.items["by_graph"].any() == found.items["weight"].any() == by_items
    assert found.total() == pytest.approx(found.score, abs=1e-5)


def test_scores_are_explained_as_they_are_predicted_where_they_are_limited():
    rng = np.random.default_rng(0)
    scores = 3 + 1.5 * rng.normal(size=(N_USERS, 2)) @ rng.normal(size=(2, N_ITEMS))
    scores[rng.random(scores.shape) < 0.5] = np.nan
    limited = ratings_model(clip=True, n_epochs=500).fit(
        Interactions.from_dense(scores.clip(1, 5), USERS, range(N_ITEMS))
    )
    limits = limited.interactions_.ratings.min(), limited.interactions_.ratings.max()
    found = [limited.explain(user, item) for user in USERS[:8] for item in range(N_ITEMS)]
    assert any(known.clipping for known in found)
    for known in found:
        assert known.total() == pytest.approx(known.score, abs=1e-5)
        assert known.clipping == 0 or known.score in limits


@pytest.mark.parametrize("preset", MODELS)
def test_users_and_items_without_ratings(preset):
    array = planted() if preset != "interactions" else binary().to_dense()
    array[3], array[:, 4] = np.nan, np.nan
    model = of_preset(preset, 100).fit(array)
    for pair in ((3, 5), (5, 4), (3, 4)):
        assert model.explain(*pair).total() == pytest.approx(model.predict(*pair)[0], abs=1e-5)
    assert model.explain(3, 5).rated_items.count == len(model.explain(3, 5).items) == 0


@pytest.mark.parametrize(("preset", "shape"), [("ratings", (1, 6)), ("completion", (6, 1)), ("ratings", (2, 2))])
def test_small_data(preset, shape):
    model = of_preset(preset, 100).fit(1.0 + np.arange(np.prod(shape)).reshape(shape) % 5)
    assert model.explain(0, 0).total() == pytest.approx(model.predict(0, 0)[0], abs=1e-5)


# -------------------------------------------------------------------- life of a model


@pytest.mark.parametrize("preset", MODELS)
def test_new_users_and_items_after_partial_fit(preset):
    model = copy.deepcopy(trained(preset))
    before = model.explain(USERS[1], 3)
    like = 1.0 if preset == "interactions" else 4.5
    new = pd.DataFrame({"user": "eve", "item": [1, 3, 5, 99], "rating": like})
    with pytest.raises(UnknownIdError):
        model.explain("eve", 3)
    model.partial_fit(new)
    for item in (7, 8, 99):
        found = model.explain("eve", item)
        assert found.total() == pytest.approx(model.predict("eve", item)[0], abs=1e-5)
        assert set(found.items["item"]) == {1, 3, 5, 99} - {item}
        assert found.similar_users.count == 0
    personal = model.explain("eve", 7)
    assert abs(personal.remainder) < 0.02 * abs(personal.rated_items.total)
    assert model.explain(USERS[1], 3).rated_items.total == pytest.approx(before.rated_items.total, rel=0.05)


def test_a_second_fit_and_a_file_are_explained_by_their_own_equations(tmp_path):
    model = ratings_model(n_epochs=50).fit(data())
    model.explain(USERS[0], 3)
    again = model.fit(data(seed=1)).explain(USERS[0], 3)
    fresh = ratings_model(n_epochs=50).fit(data(seed=1))
    loaded = AIR.load(fresh.save(tmp_path / "model.air"))
    for other in (fresh, loaded, copy.deepcopy(model)):
        assert other.explain(USERS[0], 3).to_dict() == again.to_dict()


# -------------------------------------------------------------------- shown and written


def test_an_explanation_reads_as_text_and_a_dictionary_holds_everything_for_json(model):
    found = model.explain(USERS[2], 4, n=2, labels={4: "Fargo <1996>", 6: "Heat"})
    text = str(found)
    assert text.startswith(f"user u02, item 4 (Fargo <1996>): score {found.score:.4g}")
    assert f"rated items ({found.rated_items.count})" in text
    assert f"... and {found.rated_items.count - 2} others: {found.rated_items.others:+.4g}" in text
    assert ("mean" in text) == (found.mean != 0)
    assert "edges of the item graph" in text
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert written["score"] == pytest.approx(sum(written["parts"].values()), abs=1e-5)
    table = written["tables"]["items"]
    assert sum(row["contribution"] for row in table["rows"]) + table["others"] == pytest.approx(table["total"])
    assert table["total"] == written["parts"]["rated_items"]
    assert [row["item"] for row in table["rows"]] == found.items["item"].tolist()


def test_labels_name_the_items_and_ids_stand_in_for_them(model):
    names = {item: f"film {item}" for item in range(0, N_ITEMS, 2)} | {3: None}
    for labels in (names, pd.Series(names), pd.Series([*names.values()] * 2, index=[*names] * 2)):
        found = model.explain(USERS[2], 3, n=ALL, labels=labels)
        assert found.label == "3"
        expected = [f"film {item}" if item % 2 == 0 else str(item) for item in found.items["item"]]
        assert found.items["label"].tolist() == expected
        assert set(found.edges["neighbor_label"]) >= {"film 0", "1"}
    plain = model.explain(USERS[2], 3)
    assert plain.label is None
    assert "label" not in plain.items
    with pytest.raises(DataError, match="titles of the model's items, found those of none of them, such as '3'"):
        model.explain(USERS[2], 3, labels={"3": "Three"})


@pytest.mark.parametrize(
    ("asked", "options", "error", "message"),
    [
        (("nobody", 0), {}, UnknownIdError, "1 user id(s) were not in the training data: 'nobody'"),
        ((USERS[0], "nothing"), {}, UnknownIdError, "1 item id(s) were not in the training data: 'nothing'"),
        ((USERS[0], 0), {"n": 0}, ParameterError, "n must be an integer >= 1, found 0"),
        ((USERS[0], 0), {"labels": ["Heat"]}, ParameterError, "labels must be a mapping or a Series of item id to"),
        (
            (USERS[0], 0),
            {"labels": pd.DataFrame({"a": ["Heat"]})},
            ParameterError,
            "labels must be a mapping or a Ser",
        ),
    ],
)
def test_errors_come_before_any_work(asked, options, error, message):
    with fails(error, message):
        trained("ratings").explain(*asked, **options)
    with fails(NotFittedError, "this AIR is not fitted yet: call fit first"):
        AIR().explain(*asked, **options)


@pytest.mark.parametrize("extra", [{"transforms": (("columns", 1e-4, 2),)}, {"tv_reg": 1e-3}])
def test_models_that_tie_a_user_to_all_others_are_refused(extra):
    model = AIR.for_completion(n_epochs=5, **CPU, **extra).fit(planted())
    with fails(ParameterError, "fold-in and explanations know no transforms and no total variation"):
        model.explain(0, 0)
