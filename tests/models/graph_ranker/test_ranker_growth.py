"""New likes of a fitted ranker: of its users, of new users and of new items."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from ranker_cases import likes

from air_recsys import AIR, Interactions
from air_recsys.exceptions import DataError, UnknownIdError
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
        (Interactions([0], [0], [1.0], [1], [1], weights=[2.0]), DataError, "knows no weights"),
        (sp.csr_array(np.eye(2, 30)), DataError, "a matrix that begins with the 60 users of the model, found 2"),
    ):
        with pytest.raises(kind, match=message):
            model.partial_fit(new)
    timed = GraphRanker(**HOW | {"settings": {"user_half_life": 2.0}})
    timed.fit(table(likes()).assign(timestamp=np.arange(likes().nnz)))
    with pytest.raises(DataError, match="expected new likes with timestamps"):
        timed.partial_fit(pd.DataFrame({"user": [1], "item": [1]}))
    pd.testing.assert_frame_equal(answers(model, [0, 1]), before)


def test_ids_of_another_type_are_refused_by_ratings_too():
    data = Interactions.from_csr(likes().astype(float))
    model = AIR.for_ratings(n_factors=2, n_sweeps=2, random_state=0, device="cpu").fit(
        data.to_frame().assign(rating=lambda t: 1 + t["item"] % 5)
    )
    with pytest.raises(UnknownIdError, match="its ids are integers"):
        model.partial_fit(pd.DataFrame({"user": ["eve"], "item": [1], "rating": [3.0]}))
