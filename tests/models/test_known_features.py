"""Models that are told of users and items more than their ratings: features, and with them similarities."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from model_cases import CPU, assert_same_predictions
from sealing import parts_of, rewrite

from air_recsys import AIR, Interactions
from air_recsys.exceptions import CheckpointError, DataError, ModelFileError, NotFittedError, ParameterError
from air_recsys.models import DMF, BiasModel, Recommender

N_USERS, N_ITEMS, N_NEW = 120, 90, 10
SMALL: dict[str, Any] = {**CPU, "n_factors": 3, "graph_neighbors": 5}
both = pytest.mark.parametrize("solver", ["variational", "langevin"])


@cache
def tables():
    """Features of users and items; not to be changed."""
    rng = np.random.default_rng(1)
    kinds = rng.choice(["drama", "war"], N_ITEMS + N_NEW)
    items = pd.DataFrame(
        {"kind": kinds, "year": rng.integers(1950, 2000, N_ITEMS + N_NEW)}, index=item_ids(N_ITEMS + N_NEW)
    )
    users = pd.DataFrame({"age": rng.integers(15, 60, N_USERS), "sex": rng.choice(["F", "M"], N_USERS)})
    users.index = pd.Index([f"u{number:03}" for number in range(N_USERS)])
    return users, items


def item_ids(n):
    return pd.Index([f"i{number:03}" for number in range(n)])


def scores():
    """Expected ratings: war is worse by 2 for all, and by another 2 for F; new films are worse by 0.5 a deviation."""
    users, items = tables()
    year = (items["year"] - items["year"].mean()) / items["year"].std(ddof=0)
    war, women = (items["kind"] == "war").to_numpy(float), (users["sex"] == "F").to_numpy(float)
    return 6 - 0.5 * year.to_numpy() - 2 * war - 2 * np.outer(women, war)


def ratings(density=0.3):
    rng = np.random.default_rng(2)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < density)
    values = scores()[users, items] + 0.5 * rng.standard_normal(users.size)
    return pd.DataFrame({"user": tables()[0].index[users], "item": item_ids(N_ITEMS)[items], "rating": values.clip(0)})


def model(solver="variational", **options):
    sweeps = {"n_sweeps": 60} if solver == "langevin" else {}
    return AIR.for_ratings(solver=solver, **SMALL | sweeps | options)


@cache
def all_that_is_known():
    """Features of both sides, and how alike the years of items are."""
    users, items = tables()
    years = items["year"].to_numpy()
    near = (1 - np.abs(years[:, None] - years) / 5).clip(0)
    similar = pd.DataFrame(near, index=items.index, columns=items.index)
    return {"user_features": users, "item_features": items, "item_similarity": similar}


@pytest.fixture(scope="module", params=["variational", "langevin"])
def fitted(request):
    users, items = tables()
    return model(request.param).fit(ratings(), user_features=users, item_features=items)


@pytest.fixture(scope="module", params=["variational", "langevin"])
def told(request):
    """A model that knows similarities too."""
    return model(request.param, item_graph_strength=0.4).fit(ratings(), **all_that_is_known())


@cache
def of_items():
    """A model with features of items alone; not to be changed."""
    return model().fit(ratings(), item_features=tables()[1])


def test_items_without_a_rating_are_predicted_from_their_features(fitted):
    new = item_ids(N_ITEMS + N_NEW)[N_ITEMS:].tolist()
    truth = scores()[:, N_ITEMS:]
    found, deviations = (
        np.array(each).reshape(truth.shape)
        for each in fitted.predict(np.repeat(tables()[0].index, N_NEW), new * N_USERS, return_std=True)
    )
    without = truth.std()
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.4 * without
    noisy = truth + 0.5 * np.random.default_rng(3).standard_normal(truth.shape)
    assert 0.82 < (np.abs(noisy - found) < 1.645 * deviations).mean() <= 1


def test_they_are_recommended_and_who_has_no_features_is_average(fitted):
    best = fitted.recommend("u000", n=N_ITEMS, exclude_seen=True)
    assert (best["source"] == "model").all()
    assert set(item_ids(N_ITEMS + N_NEW)[N_ITEMS:]) & set(best["item"])
    items = tables()[1]
    found = model().fit(ratings(), item_features=items.iloc[: N_ITEMS // 2])
    assert found.interactions_.n_items == N_ITEMS
    assert np.isfinite(found.predict("u000", items.index[:N_ITEMS])).all()


def test_effects_are_those_of_the_ratings(fitted):
    effects = fitted.feature_effects("item").set_index("feature")
    gap = effects.loc["kind=drama"] - effects.loc["kind=war"]
    women = (tables()[0]["sex"] == "F").mean()
    assert gap["effect"] == pytest.approx(2 + 2 * women, abs=0.6)
    assert effects.loc["year", "effect"] == pytest.approx(-0.5, abs=0.2)
    assert effects.loc["kind=war", "spread"] > 2 * effects.loc["year", "spread"]
    assert fitted.feature_effects("user")["feature"].tolist() != []
    assert fitted.feature_effects()["effect"].is_monotonic_decreasing


def test_scores_are_explained_with_what_is_known(told):
    rng, (users, items) = np.random.default_rng(0), tables()
    for user, item in zip(rng.choice(users.index, 40), rng.choice(items.index, 40), strict=True):
        found = told.explain(user, item)
        assert found.total() == pytest.approx(found.score, abs=1e-4)
        assert set(found.user_features.rows["feature"]) == {"age", "sex=F", "sex=M"}
        assert set(found.item_features.rows["feature"]) == {"kind=drama", "kind=war", "year", "similarity"}
        assert abs(found.remainder) < 0.5
    text, new = str(found), told.explain("u000", "i095")
    assert "features of the user (3)" in text
    assert "features of the item (another view of the parts above)" in text
    assert new.to_dict()["tables"]["item_features"]["count"] == 4
    # Without a rating the features are all that the item's equations hold, beside the constant and the other's.
    assert abs(new.item_features.total) > 0.3


def test_what_is_known_is_part_of_a_file(told, tmp_path):
    loaded: Any = Recommender.load(told.save(tmp_path / "model.air"))
    users, items = tables()
    assert_same_predictions(loaded, told, "u003", items.index)
    assert loaded.item_graph_strength_ == told.item_graph_strength_ == 0.4
    assert set(told.feature_effects("item")["feature"]) == {"kind=drama", "kind=war", "year"}
    pd.testing.assert_frame_equal(loaded.feature_effects("item"), told.feature_effects("item"))
    assert loaded.explain("u003", "i004").to_dict() == told.explain("u003", "i004").to_dict()
    new = pd.DataFrame({"user": ["u001", "u001"], "item": ["i005", "new"], "rating": [4.0, 2.0]})
    one, other = (each.fold_in(None, features=users.iloc[:4]) for each in (told, loaded))
    np.testing.assert_array_equal(one.user_factors_, other.user_factors_)
    for each in (told, loaded):
        each.partial_fit(new)
    np.testing.assert_array_equal(told.item_factors_, loaded.item_factors_)
    assert not loaded.interactions_.item_features.places[-1].any()


def test_new_rows_follow_from_their_features(fitted):
    women, men = (pd.DataFrame({"age": [30, 50], "sex": [sex] * 2}, index=["n1", "n2"]) for sex in "FM")
    folded = [fitted.fold_in(None, features=table) for table in (women, men)]
    items = tables()[1]
    war = (items["kind"] == "war").to_numpy()
    gaps = []
    for rows in folded:
        found = rows.user_biases_[:, None] + rows.user_factors_ @ fitted.item_factors_.T + fitted.item_biases_
        gaps.append(found[:, ~war].mean() - found[:, war].mean())
    assert gaps[0] - gaps[1] == pytest.approx(2, abs=0.8)
    new = pd.DataFrame({"user": ["n1", "n2"], "item": ["i000", "i001"], "rating": [5.0, 4.0]})
    beside = fitted.fold_in(new, features=women.iloc[::-1])
    matrix = sp.csr_array((new["rating"], (range(2), [0, 1])), shape=(2, N_ITEMS + N_NEW))
    by_place = fitted.fold_in(matrix, features=women)
    np.testing.assert_allclose(by_place.user_factors_, beside.user_factors_, atol=1e-6)
    assert (folded[0].interactions_.user_ids.tolist(), by_place.interactions_.user_ids.tolist()) == (
        ["n1", "n2"],
        [0, 1],
    )


def test_new_users_and_items_come_in_with_features():
    users, items = tables()
    grown = model().fit(ratings(), user_features=users, item_features=items)
    new = pd.DataFrame({"user": ["n1"], "item": ["i000"], "rating": [5.0]})
    more_users = pd.DataFrame({"age": [30, 30], "sex": ["F", "M"]}, index=["n1", "n2"])
    more_items = pd.DataFrame({"kind": ["war", "drama"], "year": [1970, 1970]}, index=["x1", "x2"])
    before = grown.predict("u000", "i001")
    grown.partial_fit(new, user_features=more_users, item_features=more_items)
    assert grown.interactions_.user_ids[-2:].tolist() == ["n1", "n2"]
    assert grown.interactions_.n_features == (3, 3)
    gap = grown.predict(["n2", "n1"], "x2") - grown.predict(["n2", "n1"], "x1")
    assert gap[1] > gap[0] + 0.7  # F
    np.testing.assert_allclose(grown.predict("u000", "i001"), before, atol=1e-6)
    plain = pd.DataFrame({"user": ["n3"], "item": ["i000"], "rating": [5.0]})
    assert np.isfinite(grown.partial_fit(plain).predict("n3", "x1")).all()


def test_a_training_goes_on_with_the_same_features_and_similarities_alone(tmp_path):
    known, file = all_that_is_known(), tmp_path / "run.ckpt"
    users, similar = known["user_features"], known["item_similarity"]
    whole = model().fit(ratings(), **known)
    cut = model().fit(ratings(), **known, checkpoint=file, every=4, callbacks=[lambda record: record.epoch == 9])
    assert cut.stopped_by_ == "callback"
    resumed = model().fit(ratings(), **known, resume_from=file)
    np.testing.assert_array_equal(whole.item_factors_, resumed.item_factors_)
    assert resumed.item_graph_strength_ == whole.item_graph_strength_
    assert resumed.search_.equals(whole.search_)
    for other in ({"user_features": users.assign(age=30 + users["age"] % 7)}, {"item_similarity": similar**2}):
        with pytest.raises(CheckpointError, match="other data"):
            model().fit(ratings(), **known | other, resume_from=file)
    with pytest.raises(CheckpointError, match="other data"):
        model().fit(ratings(), resume_from=file)


def test_features_given_to_the_data_are_those_given_to_fit_and_go_with_a_validation_part():
    users, items = tables()
    data = Interactions.from_frame(ratings()).with_features(item=items)
    np.testing.assert_array_equal(model().fit(data).user_factors_, of_items().user_factors_)
    whole = Interactions.from_frame(ratings())
    part = np.random.default_rng(0).random(whole.n_ratings) < 0.8
    shown, held_out = whole.select(part), whole.select(~part)
    found = model().fit(shown, validation=held_out, user_features=users, item_features=items)
    assert found.history_["validation_rmse"].iloc[-1] < 1
    assert model(validation_fraction=0.2).fit(whole, item_features=items).history_["validation_rmse"].notna().all()


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        ("variational", {"pattern_features": 0}),
        ("langevin", {"pattern_features": 0}),
        ("variational", {"n_factors": 1}),
        ("langevin", {"pattern_features": "degrees"}),
    ],
)
def test_features_go_with_any_others(solver, options):
    users, items = tables()
    found = model(solver, **options).fit(ratings(), user_features=users, item_features=items)
    new = scores()[:, N_ITEMS:]
    guess = found.predict(np.repeat(users.index, N_NEW), item_ids(N_ITEMS + N_NEW)[N_ITEMS:].tolist() * N_USERS)
    assert np.corrcoef(guess, new.ravel())[0, 1] > 0.8
    assert found.explain("u001", "i002").total() == pytest.approx(found.explain("u001", "i002").score, abs=1e-4)


@both
def test_ratings_too_few_for_factors_go_with_features(solver):
    _users, items = tables()
    few = ratings().sample(300, random_state=0)
    found = model(solver, n_factors="auto").fit(few, item_features=items)
    assert found.user_factors_.shape[1] == 0
    assert found.explain("u001", few["item"].iloc[0]).user_features.count == 0
    effects = found.feature_effects().set_index("feature")["effect"]
    assert effects["kind=drama"] - effects["kind=war"] > 1


def test_models_that_read_no_features_say_so():
    for who in (BiasModel(), DMF()):
        with pytest.raises((DataError, ParameterError), match="reads no features and no similarities"):
            who.fit(of_items().interactions_)


def test_what_a_model_does_not_know_is_refused(fitted):
    users, items = tables()
    plain = model().fit(ratings())
    new = pd.DataFrame({"user": ["n1"], "item": ["i000"], "rating": [5.0]})
    beside = Interactions.from_frame(new).with_features(user=pd.DataFrame({"age": [1, 2]}, index=["n1", "n2"]))
    nobody = users.set_axis(range(N_USERS))
    for message, ask in {
        "expected no user features, as the model was trained without": lambda: plain.fold_in(new, features=users),
        "expected no item features, as": lambda: plain.partial_fit(new, item_features=items),
        "trained without": lambda: plain.feature_effects(),
        "ratings of new rows, their features or similarities, found none": lambda: fitted.fold_in(None),
        "features of 2 rows, as many as ratings, found 3": lambda: fitted.fold_in(
            sp.csr_array((2, N_ITEMS + N_NEW)), features=users.iloc[:3]
        ),
        r"expected the user features \['sex'\]": lambda: fitted.fold_in(None, features=users[["age"]]),
        "as tables beside the new ratings": lambda: fitted.partial_fit(beside),
        "found none": lambda: model().fit(ratings(), user_features=nobody),
    }.items():
        with pytest.raises(DataError, match=message):
            ask()
    with pytest.raises(NotFittedError):
        model().feature_effects()


def test_a_file_with_other_features_than_its_posterior_is_refused(tmp_path):
    path = of_items().save(tmp_path / "model.air")
    attributes = json.loads(parts_of(path)[0]["attributes"]) | {"features": {}}
    rewrite(path, {"attributes": json.dumps(attributes)}, drop=["item_features"])
    with pytest.raises(ModelFileError, match=r"expected item_basis of shape \(\d+, \d+\), found"):
        AIR.load(path)
