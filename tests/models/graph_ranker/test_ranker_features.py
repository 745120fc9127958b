"""Features of users and items beside likes: those without likes enter lists, all others stay as they are."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from ranker_cases import likes

from air_recsys import Interactions
from air_recsys.exceptions import DataError, NotFittedError
from air_recsys.models import GraphRanker, Recommender, content
from air_recsys.models.content import Content
from air_recsys.models.graph_ranker import regression
from air_recsys.models.graph_ranker.users import ready_state

HOW = {"n_factors": 4, "n_steps": 5, "settings": {}, "device": "cpu"}
N_USERS, N_ITEMS = 60, 30
COLD_ITEMS, COLD_USERS = [24, 26, 28, 25, 27, 29], [57, 58, 59]
FILMS = pd.DataFrame({"genre": ["war" if item % 2 else "love" for item in range(N_ITEMS)]}, index=range(N_ITEMS))
PEOPLE = pd.DataFrame({"age": [20.0 + user % 2 for user in range(N_USERS)]}, index=pd.Index(list(range(N_USERS))))
FILMS.index = pd.Index(list(FILMS.index))


def table(cold: bool = True) -> pd.DataFrame:
    """Likes, by default without those of the cold users and items."""
    users, items = likes(own=0.6).nonzero()
    rows = pd.DataFrame({"user": users, "item": items})
    return rows[~(rows["user"].isin(COLD_USERS) | rows["item"].isin(COLD_ITEMS))] if cold else rows


def fitted(**how: object) -> GraphRanker:
    return GraphRanker(**HOW | how).fit(table(), user_features=PEOPLE, item_features=FILMS)


@pytest.fixture(scope="module")
def fitted_model() -> GraphRanker:
    return fitted()


@pytest.fixture
def model(fitted_model) -> GraphRanker:
    return fitted().take_state(fitted_model._fitted())


def scores_of(model: GraphRanker, users: list[int], items: list[int]) -> np.ndarray:
    return model.predict(np.repeat(users, len(items)), np.tile(items, len(users))).reshape(len(users), len(items))


WARM_USERS = [user for user in range(N_USERS) if user not in COLD_USERS]
WARM_ITEMS = [item for item in range(N_ITEMS) if item not in COLD_ITEMS]


@pytest.mark.parametrize("settings", [{}, {"factor_weight": 0.0}, {"regression_weight": 0.0}, None])
@pytest.mark.parametrize("dense", [True, False])
def test_scores_of_those_with_likes_keep_their_bits(monkeypatch, settings, dense):
    monkeypatch.setattr(regression, "MOST_EXACT", 4096 if dense else 1)
    without = GraphRanker(**HOW | {"settings": settings}).fit(table())
    found = fitted(settings=settings)
    expected = scores_of(without, WARM_USERS, WARM_ITEMS)
    assert np.array_equal(scores_of(found, WARM_USERS, WARM_ITEMS), expected)
    lists = [each.recommend(WARM_USERS, 8, items=WARM_ITEMS) for each in (without, found)]
    pd.testing.assert_frame_equal(*lists)


def test_a_cold_item_has_a_ridge_of_the_scores_of_others(model):
    state, everyone = model._fitted(), np.arange(model.interactions_.n_users)
    ranker, index = ready_state(state), model.interactions_.items
    found = Content.of_values("item", state.chosen.values)
    warm, cold = index.lookup(np.array(WARM_ITEMS)), index.lookup(np.array(COLD_ITEMS))
    values = state.data.item_features.values.astype(float)

    def kernel(a, b):
        return np.exp(-((a[:, None] - b) ** 2).sum(axis=2) / found.width) + 1

    weights = np.linalg.solve(
        kernel(values[warm], values[warm]) + found.noise * np.eye(warm.size), kernel(values[warm], values[cold])
    )
    scores = ranker.scorers.scores(everyone)
    np.testing.assert_allclose(scores[:, cold], found.reach * scores[:, warm] @ weights, atol=1e-12)
    assert 0.5 <= found.reach <= 1


def test_cold_items_of_a_users_own_genre_come_first_and_lists_are_in_the_order_of_scores(model):
    listed = model.recommend(WARM_USERS, 3, items=COLD_ITEMS)
    assert np.mean(listed["item"] % 2 == listed["user"] % 2) > 0.8
    whole = model.recommend(WARM_USERS, N_ITEMS, exclude_seen=False)
    assert set(whole["item"]) == set(range(N_ITEMS))
    np.testing.assert_allclose(whole["score"], model.predict(whole["user"], whole["item"]), atol=1e-9)
    assert (whole.groupby("user")["score"].diff().dropna() <= 0).all()


def test_cold_users_have_the_shares_of_users_alike(model):
    lists = model.recommend(COLD_USERS, 5)
    assert (lists["source"] == "model").all()
    assert (lists["item"] % 2 == lists["user"] % 2).all()
    new = model.fold_in(None, features=PEOPLE.loc[COLD_USERS])
    pd.testing.assert_frame_equal(new.recommend(COLD_USERS, 5), lists)
    np.testing.assert_array_equal(scores_of(new, [58], WARM_ITEMS), scores_of(model, [58], WARM_ITEMS))
    assert 0 < scores_of(model, [57], [29])[0, 0] < 1  # of a cold item


def test_new_items_by_features_have_the_scores_of_cold_ones_alike(model):
    new = model.fold_in(None, features=pd.DataFrame({"genre": ["war", "love"]}, index=[100, 101]), side="item")
    expected = scores_of(model, WARM_USERS, [25, 24])
    np.testing.assert_allclose(scores_of(new, WARM_USERS, [100, 101]), expected, atol=1e-9)
    assert new.recommend(1, 1)["item"].item() == 100


def test_files_and_explanations_know_cold_items(model, tmp_path):
    loaded = Recommender.load(model.save(tmp_path / "model.air"))
    pd.testing.assert_frame_equal(loaded.recommend([0, 57], 10), model.recommend([0, 57], 10))
    for item in (24, 0):
        found = model.explain(1, item)
        assert found.total() == pytest.approx(found.score, abs=1e-9)
        assert found.score == pytest.approx(model.predict(1, item).item(), abs=1e-9)
        assert set(found.items["item"]) <= set(table().query("user == 1")["item"])
    values = model._fitted().chosen.values
    with pytest.raises(ValueError, match="and a reach"):
        Content.of_values("item", values | {"item_reach": 2.0})


def test_probabilities_are_of_cold_items_and_users_too():
    model = fitted(settings=None)
    near, far, of_user = model.predict_proba([1, 1, 57], [25, 24, 1])
    assert 0 <= far < near < 1
    assert of_user == pytest.approx(model.predict(57, 1).item())
    with pytest.raises(NotFittedError):
        fitted().predict_proba(1, 25)


def test_a_cold_item_that_is_liked_becomes_a_new_item():
    known = table().query("item < 24")
    new = pd.DataFrame({"user": [0, 2, 4, 6], "item": 24})
    without = GraphRanker(**HOW).fit(known).partial_fit(new)
    model = GraphRanker(**HOW).fit(known, item_features=FILMS.loc[:24]).partial_fit(new)
    items = [*range(25)]
    np.testing.assert_array_equal(scores_of(model, WARM_USERS, items), scores_of(without, WARM_USERS, items))
    before = fitted().recommend(8, 1, items=[24, 26])["score"].item()
    liked = fitted().partial_fit(new)
    assert liked.recommend(8, 1, items=[24, 26])["score"].item() != before
    whole = liked.recommend(WARM_USERS, N_ITEMS, exclude_seen=False)
    assert set(whole["item"]) == set(range(N_ITEMS))


def test_features_of_new_rows_come_with_new_likes_and_what_is_forgotten_leaves(model):
    model.partial_fit(
        pd.DataFrame({"user": [1], "item": [25]}),
        user_features=pd.DataFrame({"age": [21.0]}, index=[90]),
        item_features=pd.DataFrame({"genre": ["war"]}, index=[91]),
    )
    assert (model.interactions_.n_users, model.interactions_.n_items) == (61, 31)
    assert (model.recommend(90, 5)["source"] == "model").all()
    assert model.predict(1, 91) == pytest.approx(model.predict(1, 29).item())
    model.forget(items=[91, 29], users=[58, 90], pairs=[(1, 25)])
    assert (model.interactions_.n_users, model.interactions_.n_items) == (59, 29)
    assert not set(model.recommend([1, 59], 30)["item"]) & {91, 29}


def test_resumed_fits_and_matrices_come_to_the_same(tmp_path):
    whole = fitted()
    given = Interactions.from_frame(table(), rating=None).with_features(user=PEOPLE, item=FILMS)
    kept = GraphRanker(**HOW).fit(given, checkpoint=tmp_path / "run.ckpt")
    again = GraphRanker(**HOW).fit(given, resume_from=tmp_path / "run.ckpt")
    expected = whole.recommend([0, 58], 10)
    for each in (kept, again):
        pd.testing.assert_frame_equal(each.recommend([0, 58], 10), expected)


def test_features_that_tell_nothing_of_users_leave_what_is_popular():
    noise = np.random.default_rng(2).standard_normal((N_USERS, 2))
    people = pd.DataFrame(noise, index=PEOPLE.index, columns=["a", "b"])
    model = GraphRanker(**HOW).fit(table(), user_features=people)
    assert Content.of_values("user", model._fitted().chosen.values) is None
    lists = model.recommend(COLD_USERS, 5)
    assert (lists["source"] == "popular").all()


@pytest.mark.parametrize(
    ("features", "told"),
    [
        (np.ones((4, 3)), "expected item features with 24 rows, one a item, found shape"),
        (sp.random_array((24, 1_000_000), density=1e-6, format="csr"), "at most 10000 columns of item features"),
        (pd.DataFrame({"genre": ["war"] * 3}, index=["x", "y", "z"]), "features"),
        (np.full((24, 2), np.nan), "tell items apart"),
        (np.where(np.eye(24) > 0, np.inf, 1.0), "finite numbers"),
    ],
)
def test_features_that_cannot_be_read_are_errors_before_any_work(features, told, monkeypatch):
    monkeypatch.setattr(GraphRanker, "train_by", None)
    with pytest.raises(DataError, match=told):
        GraphRanker(**HOW).fit(table(), item_features=features)


def test_missing_features_count_as_the_average():
    embedding = np.random.default_rng(0).standard_normal((len(WARM_ITEMS), 3))
    embedding[:, 0] += 3 * (np.array(WARM_ITEMS) % 2)
    embedding[3] = np.nan
    model = GraphRanker(**HOW).fit(table(), item_features=embedding)
    assert not model.interactions_.item_features.values[3].any()
    given = Interactions.from_frame(table(), rating=None)
    given.item_features = replace(model.interactions_.item_features, places=np.ones((given.n_items, 1), np.float32))
    with pytest.raises(DataError, match="no given similarities"):
        GraphRanker(**HOW).fit(given)


def test_a_row_left_out_is_as_one_that_is_not_there(monkeypatch):
    rng = np.random.default_rng(0)
    known, values = rng.standard_normal((12, 2)), rng.standard_normal((12, 3))
    found = Content(2.0, 0.5, 0.0)
    others = np.arange(12) != 4
    expected = found.solver(known[others])(known[[4]]).T @ values[others]
    np.testing.assert_allclose(found.left_out(known, values)[[4]], expected)
    monkeypatch.setattr(content, "MOST", 5)
    data = Interactions.from_frame(table(), rating=None)
    counts = np.bincount(data.item_index)
    assert content.most_liked_items(data).size == 5
    assert counts[content.most_liked_items(data)].min() >= np.sort(counts)[-5]
    assert (np.abs(scores_of(fitted(), WARM_USERS, COLD_ITEMS)) > 0).any()


def test_width_and_noise_are_those_of_the_smallest_errors_of_rows_left_out():
    rng = np.random.default_rng(1)
    known = rng.standard_normal((80, 1))
    smooth = np.hstack([np.sin(known), known]) + 0.1 * rng.standard_normal((80, 2))
    found = Content.of(known, smooth)
    assert found.gain > 0.9
    best = np.square(smooth - found.left_out(known, smooth)).sum()
    for other in (found._replace(noise=30.0), found._replace(width=found.width * 8)):
        assert best <= np.square(smooth - other.left_out(known, smooth)).sum()
    assert Content.of(known, rng.standard_normal((80, 2))).gain < 0.1
    assert Content.of(np.ones((5, 2)), smooth[:5]) is None
