"""New likes of a fitted ranker: of its users, of new users and of new items."""

import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from ranker_cases import likes

from air_recsys.exceptions import DataError, ParameterError, UnknownIdError
from air_recsys.models import GraphRanker
from air_recsys.models.graph_ranker import regression
from air_recsys.models.graph_ranker.inputs import interaction_pattern

HOW = {"n_factors": 4, "n_steps": 5, "settings": {}, "device": "cpu"}


def table(pattern: sp.csr_array, users: int = 0) -> pd.DataFrame:
    rows, columns = pattern.nonzero()
    return pd.DataFrame({"user": rows + users, "item": columns})


@pytest.fixture
def model() -> GraphRanker:
    return GraphRanker(**HOW).fit(table(likes()))


def answers(model: GraphRanker, users: list[int]) -> pd.DataFrame:
    return model.recommend(users, 8, exclude_seen=False)


def test_pairs_that_are_there_change_nothing(model):
    before = answers(model, [0, 1, 5])
    model.partial_fit(model.interactions_.to_frame()[["user", "item"]].head(20))
    pd.testing.assert_frame_equal(answers(model, [0, 1, 5]), before)


def test_a_like_counts_in_the_next_list_and_a_new_user_is_as_one_with_the_same_items(model):
    liked = model.recommend(3, 1)["item"].item()
    own = model.interactions_.to_frame().query("user == 3")["item"].tolist()
    model.partial_fit(pd.DataFrame({"user": [3, *[900] * (len(own) + 1)], "item": [liked, *own, liked]}))
    assert liked not in model.recommend(3, 30)["item"].tolist()
    lists = [model.recommend(user, 30)[["item", "score"]] for user in (3, 900)]
    pd.testing.assert_frame_equal(*lists)
    assert model.interactions_.n_users == 61


@pytest.mark.parametrize("dense", [True, False])
def test_a_new_item_has_the_regression_of_one_that_was_there(monkeypatch, dense):
    pattern = likes(n_items=20, own=0.7, other=0.5)  # all pairs of items share a user
    monkeypatch.setattr(regression, "MOST_EXACT", 4096 if dense else 1)
    whole = table(pattern)
    model = GraphRanker(**HOW).fit(whole.query("item != 19"))
    known = model._fitted().item_weights
    model.partial_fit(whole.query("item == 19"))
    state = model._fitted()
    full = regression.item_weights(interaction_pattern(state.data), model.settings_)
    matrices = full, state.item_weights, known
    full, found, known = (each if isinstance(each, np.ndarray) else each.toarray() for each in matrices)
    np.testing.assert_allclose(found[:, 19], full[:, 19], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(found[19, :19], found[:19, 19])
    np.testing.assert_array_equal(found[:19, :19], known)


def test_a_new_item_is_listed_for_those_alike_and_speaks_for_items(model, tmp_path):
    even = list(range(0, 40, 2))
    model.partial_fit(pd.DataFrame({"user": even, "item": 77}))
    ranks = model.recommend(list(range(40, 60)), 31, exclude_seen=False).query("item == 77").set_index("user")["rank"]
    assert ranks[ranks.index % 2 == 0].mean() < ranks[ranks.index % 2 == 1].mean()
    model.partial_fit(pd.DataFrame({"user": [500], "item": [77]}))
    assert (model.recommend(500, 5)["item"] % 2 == 0).all()
    again = GraphRanker.load(model.save(tmp_path / "grown.air"))
    pd.testing.assert_frame_equal(answers(again, [0, 41, 500]), answers(model, [0, 41, 500]))
    assert len(model.item_graph_) == 31


def test_a_refused_update_changes_nothing(model):
    before = answers(model, [0, 1])
    for new, kind, message in (
        (pd.DataFrame({"user": ["eve"], "item": [1]}), UnknownIdError, "its ids are integers"),
        (pd.DataFrame({"user": [1], "item": [1], "rating": [-1.0]}), DataError, ">= 0"),
        (sp.csr_array(np.eye(2, 30)), DataError, "a matrix that begins with the 60 users of the model, found 2"),
    ):
        with pytest.raises(kind, match=message):
            model.partial_fit(new)
    timed = GraphRanker(**HOW | {"settings": {"user_half_life": 2.0}})
    timed.fit(table(likes()).assign(timestamp=np.arange(likes().nnz)))
    with pytest.raises(DataError, match="expected new likes with timestamps"):
        timed.partial_fit(pd.DataFrame({"user": [1], "item": [1]}))
    pd.testing.assert_frame_equal(answers(model, [0, 1]), before)


NEW_ITEMS = pd.DataFrame({"user": [0, 2, 4, 6, 1, 3, 3], "item": [77, 77, 77, 77, 78, 78, 79]})


@pytest.mark.parametrize(
    "how",
    [
        {"settings": {}},
        {"settings": {"user_half_life": 2.0, "item_trend": 0.5}},
        {"settings": {"factor_weight": 0.0}},
        {"settings": {"regression_weight": 0.0}},
        {"settings": None, "n_validation": 40},
    ],
)
@pytest.mark.parametrize("dense", [True, False])
def test_new_items_alone_are_as_after_partial_fit(monkeypatch, how, dense):
    monkeypatch.setattr(regression, "MOST_EXACT", 4096 if dense else 1)
    known, times = table(likes()), np.arange(likes().nnz) * 1.0
    model = GraphRanker(**HOW | how).fit(known.assign(timestamp=times))
    new, users = NEW_ITEMS.assign(timestamp=times[-1] + 1.0), list(range(60))
    before, alone = answers(model, users), model.fold_in(new, side="item")
    pd.testing.assert_frame_equal(answers(model, users), before)
    grown = model.partial_fit(new)
    for item in (77, 78, 79):
        np.testing.assert_allclose(alone.predict(users, item), grown.predict(users, item), rtol=1e-6)
        if grown._fitted().calibration is not None:
            np.testing.assert_allclose(alone.predict_proba(users, item), grown.predict_proba(users, item), rtol=1e-6)
        reasons = [each.explain(6, item, 50, labels={77: "new"}) for each in (alone, grown)]
        pd.testing.assert_frame_equal(*(each.items for each in reasons))
        assert reasons[0].parts == pytest.approx(reasons[1].parts)
    for seen in (True, False):
        asked = {"exclude_seen": seen, "items": [77, 78, 79], "exclude": {5: [78]}}
        lists = [each.recommend(users, 3, **asked) for each in (alone, grown)]
        pd.testing.assert_frame_equal(*lists)
    np.testing.assert_array_equal(alone.item_factors_, grown.item_factors_[-3:])
    np.testing.assert_array_equal(alone.user_factors_, grown.user_factors_)
    test = pd.DataFrame({"user": [8, 9, 10], "item": [77, 78, 77]})
    assert 0 < alone.score(test) <= 1


def test_new_items_of_any_form_answer_and_take_nothing_further_in(model):
    found = model.fold_in(NEW_ITEMS, side="item")
    pairs = sp.csr_array((np.ones(7), (NEW_ITEMS["item"] - 77, NEW_ITEMS["user"])), shape=(3, 60))
    of_matrix = model.fold_in(pairs, side="item")
    np.testing.assert_array_equal(found.predict(3, [77, 78, 79]), of_matrix.predict(3, [0, 1, 2]))
    of_known = model.fold_in(NEW_ITEMS.replace({"item": {77: 5}}), side="item")  # an id is no known item's
    np.testing.assert_array_equal(found.predict(9, [77, 78, 79]), of_known.predict(9, [5, 78, 79]))
    assert found.similar_items(78)["item"].tolist() == [79]
    pd.testing.assert_frame_equal(found.similar_users(3), model.similar_users(3))
    pd.testing.assert_frame_equal(copy.deepcopy(found).recommend([0, 1], 2), found.recommend([0, 1], 2))
    assert len(found.recommend(900, 5)) == 3
    assert model.fold_in(sp.csr_array((0, 60)), side="item").recommend(0).empty
    for ask in (found.fold_in, found.partial_fit):
        with pytest.raises(ParameterError, match="new items alone"):
            ask(NEW_ITEMS.assign(item=77))
    with pytest.raises(UnknownIdError, match="900; partial_fit"):
        model.fold_in(pd.DataFrame({"user": [900], "item": [77]}), side="item")
    with pytest.raises(ParameterError, match="side must be"):
        model.fold_in(NEW_ITEMS, side="both")


@pytest.mark.parametrize("settings", [{}, {"user_half_life": 2.0}])
def test_many_updates_are_as_one(settings):
    whole = table(likes()).assign(timestamp=np.arange(likes().nnz) * 1.0)
    first, rest = whole.head(len(whole) - 8), whole.tail(8)
    one, many = (GraphRanker(**HOW | {"settings": settings}).fit(first) for _ in range(2))
    one.partial_fit(rest)
    for place in [*range(8), 3]:  # one of them again
        many.partial_fit(rest.iloc[[place]])
    pd.testing.assert_frame_equal(answers(many, list(range(60))), answers(one, list(range(60))))
    np.testing.assert_array_equal(many.user_factors_, one.user_factors_)
