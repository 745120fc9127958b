"""partial_fit: new ratings, users and items without training."""

import copy

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, Interactions
from air_recsys.exceptions import DataError, NotFittedError

SMALL = {"device": "cpu", "random_state": 0, "n_factors": 4}


def ratings(seed=0, n_users=30, n_items=20, density=0.6):
    """Two groups of users, two of items, a rating of 4.5 within and of 1.5 across, on a scale of 1 to 5."""
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(rng.random((n_users, n_items)) < density)
    alike = rows % 2 == columns % 2
    values = (np.where(alike, 4.5, 1.5) + rng.normal(size=rows.size) * 0.2).clip(1, 5)
    values[[alike.argmax(), alike.argmin()]] = 5, 1  # both ends are there
    return pd.DataFrame({"user": [f"u{i}" for i in rows], "item": [f"i{j}" for j in columns], "rating": values})


def of(user, items, values):
    return pd.DataFrame({"user": user, "item": items, "rating": values})


@pytest.fixture(scope="module")
def trained():
    return AIR.for_ratings(**SMALL).fit(ratings())


@pytest.fixture
def model(trained):
    return copy.deepcopy(trained)


def test_a_new_user_gets_the_scores_of_its_fold_in(model):
    new = of("eve", ["i0", "i2", "i1"], [5.0, 4.5, 1.0])
    folded = model.fold_in(new)
    model.partial_fit(new)
    expected = folded.factors @ model.item_factors_.T + folded.biases[:, None] + model.item_biases_
    found = model.predict("eve", model.interactions_.item_ids)
    limits = model.interactions_.ratings.min(), model.interactions_.ratings.max()
    np.testing.assert_allclose(found, (expected[0] + model.global_mean_).clip(*limits), rtol=1e-5)
    assert (
        found[model.interactions_.items.lookup(["i4"])[0]] > 3.5 > found[model.interactions_.items.lookup(["i5"])[0]]
    )


def test_known_users_and_items_keep_their_factors(model, trained):
    model.partial_fit(of("eve", ["i0", "new item"], [5.0, 4.0]))
    np.testing.assert_array_equal(model.user_factors_[:30], trained.user_factors_)
    np.testing.assert_array_equal(model.item_factors_[:20], trained.item_factors_)
    assert model.interactions_.user_ids.tolist() == [*trained.interactions_.user_ids, "eve"]
    assert model.interactions_.item_ids.tolist() == [*trained.interactions_.item_ids, "new item"]


def test_new_ratings_move_a_known_user(model):
    before = model.predict("u1", ["i0", "i2", "i4"])
    items = [f"i{j}" for j in range(20)]
    model.partial_fit(of("u1", items, [4.5 if j % 2 == 0 else 1.5 for j in range(20)]))  # u1 changes sides
    assert (model.predict("u1", ["i0", "i2", "i4"]) > before + 0.8).all()  # its old neighbours hold it back
    assert model.interactions_.n_ratings == len(ratings()) + 20 - (ratings().user == "u1").sum()


def test_a_pair_that_was_rated_gets_its_new_rating(model):
    pair = ratings().iloc[0]
    model.partial_fit(of([pair.user], [pair["item"]], [2.25]))
    frame = model.interactions_.to_frame()
    found = frame[(frame.user == pair.user) & (frame["item"] == pair["item"])]
    assert found.rating.tolist() == [2.25]


def test_ratings_that_are_known_change_little():
    options = SMALL | {"n_epochs": 300, "dtype": "float64", "solver": "adam"}
    converged = AIR.for_ratings(**options, weight_decay=1.0).fit(ratings())
    again = copy.deepcopy(converged).partial_fit(ratings())
    np.testing.assert_allclose(again.user_factors_, converged.user_factors_, atol=0.01)
    np.testing.assert_array_equal(again.item_factors_, converged.item_factors_)


def test_a_new_item_is_scored_by_taste(model):
    fans = [f"u{i}" for i in range(0, 12, 2)]
    others = [f"u{i}" for i in range(1, 13, 2)]
    model.partial_fit(of(fans + others, "new item", [5.0] * 6 + [1.0] * 6))
    assert model.predict("u20", "new item")[0] > model.predict("u21", "new item")[0] + 1


def test_users_and_items_that_are_both_new_meet(model):
    fans = [f"n{i}" for i in range(5)]
    table = pd.concat([of(name, ["i0", "i2", "i1", "new item"], [5.0, 5.0, 1.0, 5.0]) for name in fans])
    model.partial_fit(table)
    assert model.predict("u20", "new item")[0] > 3.5


def test_statistics_and_recommendations_know_the_new_ratings(model):
    model.recommend("u0")  # fills the caches
    model.partial_fit(of("eve", ["i0", "i2"], [5.0, 5.0]))
    shown = model.recommend("eve", n=20)
    assert (shown.source == "model").all()
    assert not set(shown["item"]) & {"i0", "i2"}
    assert len(shown) == 18


def test_graphs_keep_their_edges_and_gain_lone_nodes(model, trained):
    model.partial_fit(of("eve", ["i0", "new item"], [5.0, 4.0]))
    assert len(model.user_graph_) == 31
    assert len(model.item_graph_) == 21
    assert model.user_adjacency_[[30]].nnz == 0
    np.testing.assert_array_equal(model.user_adjacency_.toarray()[:30, :30], trained.user_adjacency_.toarray())


def test_new_users_are_alike_by_the_pattern_of_their_ratings(model):
    before = model.similar_users("u0", 31).set_index("user")["weight"]
    model.partial_fit(of("eve", ["i0", "i2", "i4"], [5.0, 4.0, 5.0]))
    found = model.similar_users("eve")
    assert len(found) == 10
    assert "eve" in set(model.similar_users(found["user"][0], 31)["user"])
    after = model.similar_users("u0", 31).set_index("user")["weight"]
    pd.testing.assert_series_equal(after.drop("eve", errors="ignore"), before)
    plain = AIR.for_ratings(**SMALL, pattern_graphs=False).fit(ratings())
    assert plain.partial_fit(of("eve", ["i0"], [5.0])).similar_users("eve").empty


def test_a_saved_model_takes_more_ratings(model, tmp_path):
    first, second = of("eve", ["i0", "i1"], [5.0, 1.0]), of("eve", ["i2", "i3"], [5.0, 1.0])
    loaded = AIR.load(model.partial_fit(first).save(tmp_path / "model.safetensors")).partial_fit(second)
    np.testing.assert_allclose(
        loaded.predict("eve", model.interactions_.item_ids),
        model.partial_fit(second).predict("eve", model.interactions_.item_ids),
        rtol=1e-6,
    )


def test_one_call_is_as_good_as_many(model):
    parts = [of(f"n{i}", ["i0", "i1", "i2"], [5.0, 1.0 + i, 4.0]) for i in range(4)]
    once = copy.deepcopy(model).partial_fit(pd.concat(parts))
    for part in parts:
        model.partial_fit(part)
    np.testing.assert_allclose(model.user_factors_, once.user_factors_, atol=0.01)  # graph_reg="auto" counts ratings


def test_weights_are_kept(model):
    table = of("eve", ["i0", "i1"], [5.0, 1.0]).assign(weight=[3.0, 0.5])
    model.partial_fit(Interactions.from_frame(table, weight="weight"))
    assert model.interactions_.weights[-2:].tolist() == [3.0, 0.5]
    assert set(model.interactions_.weights[:-2]) == {1.0}


@pytest.mark.parametrize(
    "bad", [of("eve", ["i0", "i0"], [1.0, 2.0]), of("eve", ["i0"], [np.nan]), pd.DataFrame({"user": [1]}), "text"]
)
def test_bad_data_changes_nothing(model, bad):
    before = copy.deepcopy(model)
    with pytest.raises(DataError):
        model.partial_fit(bad)
    assert model.interactions_.n_ratings == before.interactions_.n_ratings
    np.testing.assert_array_equal(model.user_factors_, before.user_factors_)


def test_an_unfitted_model_says_so():
    with pytest.raises(NotFittedError):
        AIR().partial_fit(ratings())
