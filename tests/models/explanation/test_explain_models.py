"""Explanations of models of every kind, through their life, as text and as JSON; and what is refused."""

import copy
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from explain_cases import (
    ALL,
    CPU,
    MODELS,
    N_ITEMS,
    N_USERS,
    USERS,
    binary,
    by_id,
    data,
    figures,
    planted,
    random_pairs,
    ratings_model,
)
from model_cases import of_preset

from air_recsys import AIR, DMF, Interactions, SimilarityGraph
from air_recsys.exceptions import NotFittedError, ParameterError, UnknownIdError
from air_recsys.models.learned import Factors


@pytest.fixture(scope="module", params=MODELS, ids=MODELS)
def model(request):
    """A trained model of each preset; not to be changed."""
    return MODELS[request.param]()


@pytest.fixture(scope="module")
def ratings():
    return MODELS["ratings"]()


# -------------------------------------------------------------------- models of other kinds


def test_without_graphs_there_are_rated_items_only():
    for model in (
        ratings_model(user_graph_reg=0.0, item_graph_reg=0.0).fit(data()),
        DMF(n_epochs=500, **CPU).fit(data()),
    ):
        found = model.explain(USERS[0], 3)
        assert (found.similar_users.count, found.graph_edges.count) == (0, 0)
        assert found.users.empty
        assert not found.items[["by_graph", "weight"]].to_numpy().any()
        assert found.total() == pytest.approx(found.score, abs=1e-5)


def test_an_item_graph_alone_and_a_user_graph_alone():
    by_items = ratings_model(user_graph_reg=0.0, item_graph_reg=1e-3).fit(data()).explain(USERS[0], 3)
    assert by_items.similar_users.count == 0
    assert abs(by_items.graph_edges.total) > 0
    by_users = ratings_model(user_graph_reg=1e-3, item_graph_reg=0.0).fit(data()).explain(USERS[0], 3)
    assert by_users.graph_edges.count == 0
    assert abs(by_users.similar_users.total) > 0


def test_a_training_that_has_not_settled_shows_in_the_remainder():
    shares = []
    for n_epochs in (10, 100, 1000):
        error, remainder, personal = figures(ratings_model(n_epochs=n_epochs).fit(data()), 50)
        assert error < 1e-5
        shares.append(remainder / personal)
    assert shares[0] > 10 * shares[1] > 10 * shares[2]


def test_scores_are_explained_as_they_are_predicted_where_they_are_limited():
    rng = np.random.default_rng(0)
    scores = 3 + 1.5 * rng.normal(size=(N_USERS, 2)) @ rng.normal(size=(2, N_ITEMS))
    scores[rng.random(scores.shape) < 0.5] = np.nan
    limited = ratings_model(clip=True).fit(Interactions.from_dense(scores.clip(1, 5), USERS, range(N_ITEMS)))
    limits = limited.interactions_.ratings.min(), limited.interactions_.ratings.max()
    found = [limited.explain(user, item) for user in USERS[:8] for item in range(N_ITEMS)]
    assert any(known.clipping for known in found)
    for known in found:
        assert known.total() == pytest.approx(known.score, abs=1e-5)
        assert known.clipping == 0 or known.score in limits


@pytest.mark.parametrize("preset", ["ratings", "completion", "interactions"])
def test_users_and_items_without_ratings(preset):
    array = planted() if preset != "interactions" else binary().to_dense()
    array[3], array[:, 4] = np.nan, np.nan
    model = of_preset(preset, 100).fit(array)
    for pair in ((3, 5), (5, 4), (3, 4)):
        found = model.explain(*pair)
        assert found.total() == pytest.approx(model.predict(*pair)[0], abs=1e-5)
    assert model.explain(3, 5).rated_items.count == 0
    assert model.explain(3, 5).items.empty


@pytest.mark.parametrize("shape", [(1, 6), (6, 1), (2, 2)])
@pytest.mark.parametrize("preset", ["ratings", "completion"])
def test_small_data(preset, shape):
    array = np.random.default_rng(0).integers(1, 6, shape).astype(float)
    array[0, 0], array[-1, -1] = 1, 5
    model = of_preset(preset, 100).fit(array)
    assert model.explain(0, 0).total() == pytest.approx(model.predict(0, 0)[0], abs=1e-5)


def test_the_order_of_users_and_items_does_not_matter(ratings):
    rng = np.random.default_rng(0)
    users, items = rng.permutation(N_USERS), rng.permutation(N_ITEMS)
    moved, known, state = copy.copy(ratings), ratings.interactions_, ratings._state
    p, q, b, c, mean = state.factors
    user_graph, item_graph = (
        SimilarityGraph(graph.to_scipy()[order][:, order], graph.ids[order], graph.kind)
        for graph, order in ((state.user_graph, users), (state.item_graph, items))
    )
    moved._state = replace(
        state,
        data=Interactions.from_dense(known.to_dense()[np.ix_(users, items)], known.user_ids[users], items),
        factors=Factors(p[users], q[items], b[users], c[items], mean),
        user_graph=user_graph,
        item_graph=item_graph,
    )
    for pair in random_pairs(ratings, 10):
        first, second = ratings.explain(*pair, n=ALL), moved.explain(*pair, n=ALL)
        for name in ("items", "users"):
            tables = (getattr(known, name) for known in (first, second))
            np.testing.assert_allclose(*(by_id(table) for table in tables), atol=1e-6)
        assert second.remainder == pytest.approx(first.remainder, abs=1e-6)


# -------------------------------------------------------------------- life of a model


@pytest.mark.parametrize("preset", MODELS)
def test_new_users_and_items_after_partial_fit(preset):
    model = MODELS[preset]()
    before = model.explain(USERS[1], 3)
    like = 1.0 if preset == "interactions" else 4.5
    new = pd.DataFrame({"user": "eve", "item": [1, 3, 5, 99], "rating": like})
    with pytest.raises(UnknownIdError):
        model.explain("eve", 3)
    model.partial_fit(new)
    for item in (7, 8, 99):
        found = model.explain("eve", item)
        assert found.total() == pytest.approx(model.predict("eve", item)[0], abs=1e-5)
        assert set(found.items["item"]) == {1, 3, 5, 99}
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


def test_an_explanation_reads_as_text(model):
    found = model.explain(USERS[2], 4, n=2, labels={4: "Fargo <1996>", 6: "Heat"})
    text = str(found)
    assert text.startswith(f"user u02, item 4 (Fargo <1996>): score {found.score:.4g}")
    assert f"rated items ({found.rated_items.count})" in text
    assert f"... and {found.rated_items.count - 2} others: {found.rated_items.others:+.4g}" in text
    assert ("mean" in text) == (found.mean != 0)
    assert "edges of the item graph" in text


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


def test_a_dictionary_holds_everything_for_json(model):
    found = model.explain(USERS[2], 3, n=4)
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert written["score"] == pytest.approx(sum(written["parts"].values()), abs=1e-5)
    table = written["tables"]["items"]
    assert sum(row["contribution"] for row in table["rows"]) + table["others"] == pytest.approx(table["total"])
    assert table["total"] == written["parts"]["rated_items"]
    assert [row["item"] for row in table["rows"]] == found.items["item"].tolist()


# -------------------------------------------------------------------- errors


def fails(error, message):
    return pytest.raises(error, match=re.escape(message))


def test_errors_come_before_any_work(ratings):
    with fails(NotFittedError, "this AIR is not fitted yet: call fit first"):
        AIR().explain(0, 0)
    with fails(UnknownIdError, "1 user id(s) were not in the training data: 'nobody'"):
        ratings.explain("nobody", 0)
    with fails(UnknownIdError, "1 item id(s) were not in the training data: 'nothing'"):
        ratings.explain(USERS[0], "nothing")
    for n in (0, 2.5, True):
        with fails(ParameterError, f"n must be an integer >= 1, found {n!r}"):
            ratings.explain(USERS[0], 0, n=n)
    for labels in (["Heat"], pd.DataFrame({"title": ["Heat"]})):
        with fails(ParameterError, "labels must be a mapping or a Series of item id to name, found"):
            ratings.explain(USERS[0], 0, labels=labels)


@pytest.mark.parametrize("extra", [{"transforms": (("columns", 1e-4, 2),)}, {"tv_reg": 1e-3}])
def test_models_that_tie_a_user_to_all_others_are_refused(extra):
    model = AIR.for_completion(n_epochs=5, **CPU, **extra).fit(planted())
    with fails(ParameterError, "fold-in and explanations know no transforms and no total variation"):
        model.explain(0, 0)
