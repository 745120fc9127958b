"""Similarities that are given to `fit`: how strongly they count, what they tell, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys import AIR, Interactions, SimilarityGraph
from air_recsys.exceptions import CheckpointError, DataError, ParameterError
from air_recsys.models import BiasModel

N_USERS, N_ITEMS, N_GROUPS, N_NEW = 60, 120, 8, 6
SMALL: dict[str, Any] = {"random_state": 0, "device": "cpu", "n_factors": 2, "graph_neighbors": 5}
FIXED: dict[str, Any] = {"user_graph_strength": 0.4, "item_graph_strength": 0.6}
both = pytest.mark.parametrize("solver", ["variational", "langevin"])
GROUP = np.arange(N_ITEMS) % N_GROUPS
ITEMS = [f"i{number:03}" for number in range(N_ITEMS)]
USERS = [f"u{number:02}" for number in range(N_USERS)]


def truth():
    """Each user likes each group of items to some degree."""
    return 3 + np.random.default_rng(1).standard_normal((N_USERS, N_GROUPS))[:, GROUP]


def ratings(density=0.25, seed=2):
    """A few noisy ratings; the last items have none."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero((rng.random(truth().shape) < density) & (np.arange(N_ITEMS) < N_ITEMS - N_NEW))
    values = truth()[users, items] + 0.5 * rng.standard_normal(users.size)
    return pd.DataFrame({"user": np.array(USERS)[users], "item": np.array(ITEMS)[items], "rating": values.clip(0)})


def alike(seed=None):
    """How alike items are: 1 within a group, or with a seed at random."""
    group = GROUP if seed is None else np.random.default_rng(seed).permutation(GROUP)
    return pd.DataFrame((group[:, None] == group).astype(float), index=ITEMS, columns=ITEMS)


def alike_users():
    degrees = truth()[:, :N_GROUPS]
    return pd.DataFrame(np.corrcoef(degrees).clip(0), index=USERS, columns=USERS)


def model(solver="variational", **options):
    sweeps = {"n_sweeps": 40} if solver == "langevin" else {}
    return AIR.for_ratings(solver=solver, **SMALL | sweeps | options)


def error(fitted, items=slice(None)):
    pairs = [np.repeat(USERS, len(ITEMS[items])), np.tile(ITEMS[items], N_USERS)]
    return float(np.sqrt(np.mean((fitted.predict(*pairs).reshape(N_USERS, -1) - truth()[:, items]) ** 2)))


@pytest.fixture(scope="module", params=["variational", "langevin"])
def fitted(request):
    return model(request.param, **FIXED).fit(ratings(), user_similarity=alike_users(), item_similarity=alike())


# -------------------------------------------------------------------- how strongly they count


def test_similarities_that_tell_something_win_on_hidden_ratings():
    told = model().fit(ratings(), item_similarity=alike())
    assert told.item_graph_strength_ > 0
    assert told.user_graph_strength_ == 0
    assert told.settings_["item_graph_strength"] == told.item_graph_strength_
    assert told.search_["form"].tolist() == [f"item_graph_strength={each}" for each in ("0", "0.1", "0.3", "0.7")]
    assert (told.search_["trainings"] == 1).all()
    assert f"item_graph_strength={told.item_graph_strength_:g}, RMSE" in told.search_line_
    known = slice(0, N_ITEMS - N_NEW)
    assert error(told, known) < 0.95 * error(model().fit(ratings()), known)


def test_similarities_that_tell_nothing_do_little_harm():
    told = [model(random_state=seed).fit(ratings(), item_similarity=alike(seed)) for seed in range(4)]
    known = slice(0, N_ITEMS - N_NEW)
    assert max(error(each, known) for each in told) < 1.05 * error(model().fit(ratings()), known)


@both
def test_a_strength_of_0_is_a_model_without(solver):
    plain = model(solver).fit(ratings())
    off = model(solver, item_graph_strength=0).fit(ratings(), item_similarity=alike().iloc[:-N_NEW, :-N_NEW])
    assert off.item_graph_strength_ == 0
    pairs = np.repeat(USERS, 5), np.tile(ITEMS[:5], N_USERS)
    np.testing.assert_array_equal(off.predict(*pairs), plain.predict(*pairs))
    assert off.explain("u03", "i004").user_features.count == 0


def test_more_strength_draws_alike_items_together():
    apart = []
    for strength in (0.05, 0.7):
        found = model(item_graph_strength=strength).fit(ratings(), item_similarity=alike())
        scores = found.predict(np.repeat(USERS, N_ITEMS), ITEMS * N_USERS).reshape(N_USERS, -1)
        means = np.stack([scores[:, group == GROUP].mean(axis=1) for group in range(N_GROUPS)], axis=1)
        apart.append(float((scores - means[:, GROUP]).std() / scores.std()))
    assert apart[0] > 1.1 * apart[1]


def test_both_sides_are_searched_users_first():
    told = model().fit(ratings(), user_similarity=alike_users(), item_similarity=alike())
    searched = told.search_["form"].str.split("=").str[0].tolist()
    assert searched == ["user_graph_strength"] * 4 + ["item_graph_strength"] * 4
    again = model().fit(ratings(), user_similarity=alike_users(), item_similarity=alike())
    np.testing.assert_array_equal(told.item_factors_, again.item_factors_)


def test_few_ratings_are_not_divided():
    few = ratings().iloc[:150]
    told = model().fit(few, item_similarity=alike())
    assert told.item_graph_strength_ == 0.3
    assert told.search_.empty


def test_presets_that_look_at_the_data_search_strengths_too():
    auto = AIR.auto(random_state=0, device="cpu", n_factors=2)
    told = auto.fit(ratings(), item_similarity=alike())
    assert told.item_graph_strength_ > 0


# -------------------------------------------------------------------- what they tell


def test_items_without_a_rating_are_predicted_from_those_alike(fitted):
    new = slice(N_ITEMS - N_NEW, None)
    assert error(fitted, new) < 0.9 * truth().std()
    values, deviations = fitted.predict(np.repeat(USERS, N_NEW), ITEMS[new] * N_USERS, return_std=True)
    noisy = truth()[:, new].ravel() + 0.5 * np.random.default_rng(3).standard_normal(values.size)
    assert 0.7 < (np.abs(noisy - values) < 1.645 * deviations).mean() <= 1


def test_scores_are_explained_with_similarities(fitted):
    rng = np.random.default_rng(0)
    for user, item in zip(rng.choice(USERS, 30), rng.choice(ITEMS, 30), strict=True):
        found = fitted.explain(user, item)
        assert found.total() == pytest.approx(found.score, abs=1e-4)
        assert found.user_features.rows["feature"].tolist() == ["similarity"]
        assert found.item_features.rows["feature"].tolist() == ["similarity"]


def test_they_go_with_features():
    kinds = pd.DataFrame({"odd": np.arange(N_ITEMS) % 2}, index=ITEMS)
    options = {"item_features": kinds, "item_similarity": alike()}
    told = model(item_graph_strength=0.5).fit(ratings(), **options)
    given = model(item_graph_strength=0.5).fit(
        Interactions.from_frame(ratings()).with_features(item=kinds), item_similarity=alike()
    )
    np.testing.assert_array_equal(told.item_factors_, given.item_factors_)
    assert told.feature_effects("item")["feature"].tolist() == ["odd"]
    assert set(told.explain("u01", "i002").item_features.rows["feature"]) == {"odd", "similarity"}
    new = told.fold_in(None, side="item", features=pd.DataFrame({"odd": [0, 1]}))
    assert new.biases[0] != new.biases[1]


@both
def test_forms_of_the_same_similarities_are_the_same(solver):
    data = Interactions.from_frame(ratings())
    given = alike().loc[data.item_ids, data.item_ids]
    forms = given, sp.csr_array(given.to_numpy()), given.to_numpy(), SimilarityGraph(given.to_numpy(), data.item_ids)
    factors = [model(solver, item_graph_strength=0.5).fit(data, item_similarity=form).item_factors_ for form in forms]
    for found in factors[1:]:
        np.testing.assert_array_equal(found, factors[0])


def test_ids_without_similarities_are_like_none():
    half = alike().iloc[: N_ITEMS // 2, : N_ITEMS // 2]
    told = model(item_graph_strength=0.5).fit(ratings(), item_similarity=half)
    places = told.interactions_.item_features.places
    assert places[told.interactions_.items.lookup(ITEMS[:3])].any(axis=1).all()
    assert not places[told.interactions_.items.lookup(ITEMS[-8:-N_NEW])].any()


def test_of_many_neighbours_the_most_alike_count():
    weak = alike() + 0.01
    dense = model(item_graph_strength=0.5).fit(ratings(), item_similarity=weak)
    sparse = model(item_graph_strength=0.5).fit(ratings(), item_similarity=alike())
    known = slice(0, N_ITEMS - N_NEW)
    assert error(dense, known) == pytest.approx(error(sparse, known), rel=0.05)


def test_similarities_go_with_times_and_a_validation_part():
    frame = ratings().assign(timestamp=np.arange(len(ratings())) * 3600.0)
    data = Interactions.from_frame(frame, timestamp="timestamp")
    told = model(time="drift", validation_fraction=0.2, patience=5).fit(data, item_similarity=alike())
    assert told.drift_ is not None
    assert np.isfinite(told.history_["validation_rmse"]).all()


def test_memory_plans_count_them():
    data = Interactions.from_frame(ratings())
    told = model().fit(data, item_similarity=alike())
    assert model().memory_plan(told.interactions_).total > model().memory_plan(data).total


# -------------------------------------------------------------------- files, checkpoints, new rows


def test_they_are_part_of_a_file(fitted, tmp_path):
    loaded = AIR.load(fitted.save(tmp_path / "model.air"))
    pairs = np.repeat(USERS, 4), ITEMS[-4:] * N_USERS
    np.testing.assert_array_equal(loaded.predict(*pairs), fitted.predict(*pairs))
    assert loaded.item_graph_strength_ == fitted.item_graph_strength_ == 0.6
    assert loaded.explain("u01", "i119").to_dict() == fitted.explain("u01", "i119").to_dict()
    new = pd.DataFrame({"user": ["u01", "new"], "item": ["i005", "i006"], "rating": [4.0, 2.0]})
    for each in (loaded, fitted):
        each.partial_fit(new)
    np.testing.assert_array_equal(loaded.user_factors_, fitted.user_factors_)
    assert not loaded.interactions_.user_features.places[-1].any()


@both
def test_a_training_goes_on_with_the_same_similarities_alone(solver, tmp_path):
    file, given = tmp_path / "run.ckpt", {"item_similarity": alike()}
    whole = model(solver).fit(ratings(), **given)
    cut = model(solver).fit(ratings(), checkpoint=file, every=2, callbacks=[lambda record: record.epoch == 9], **given)
    assert cut.stopped_by_ == "callback"
    resumed = model(solver).fit(ratings(), resume_from=file, **given)
    np.testing.assert_array_equal(resumed.item_factors_, whole.item_factors_)
    assert resumed.item_graph_strength_ == whole.item_graph_strength_
    assert resumed.search_.equals(whole.search_)
    with pytest.raises(CheckpointError):
        model(solver).fit(ratings(), resume_from=file, item_similarity=alike(1))


# -------------------------------------------------------------------- what is refused

BAD: dict[str, tuple[Any, str]] = {
    "not symmetric": (lambda s: s.where(np.tril(np.ones(s.shape)) > 0, 0.5 * s), r"symmetric .*\(S \+ S.T\) / 2"),
    "negative": (lambda s: s - 0.5, r"similarities >= 0, found -0.5: .*clip\(min=0\)"),
    "a distance": (lambda s: 1 - s, r"looks like distances .*1 - D / D.max\(\)"),
    "missing": (lambda s: s.where(s > 0), "finite item similarities, found nan"),
    "nobody similar": (lambda s: s * np.eye(N_ITEMS), "no two that are similar"),
    "other columns": (lambda s: s.rename(columns={"i001": "x"}), "each id once as index and once as column"),
    "an id twice": (lambda s: s.rename(columns={"i001": "i002"}, index={"i001": "i002"}), "each id once as index"),
    "text": (lambda s: s.astype(str) + "x", "a table or a matrix of numbers, found"),
    "unknown ids": (
        lambda s: s.set_axis(range(N_ITEMS), axis=0).set_axis(range(N_ITEMS), axis=1),
        "such as 'i000', .*such as 0",
    ),
    "another size": (lambda s: s.to_numpy()[:5, :5], r"of shape \(114, 114\).*found \(5, 5\)"),
    "not a matrix": (lambda s: "similar", "found str"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_similarity_is_refused_with_the_mend(name):
    change, message = BAD[name]
    with pytest.raises(DataError, match=message):
        model().fit(ratings(), item_similarity=change(alike()))


def test_models_that_read_none_say_so():
    with pytest.raises((DataError, ParameterError), match="reads no features and no similarities"):
        model(solver="adam", n_epochs=2).fit(ratings(), item_similarity=alike())
    data = model(**FIXED).fit(ratings(), user_similarity=alike_users(), item_similarity=alike()).interactions_
    with pytest.raises((DataError, ParameterError), match="reads no features and no similarities"):
        BiasModel().fit(data)


def test_a_strength_without_similarities_is_refused():
    with pytest.raises(DataError, match=r"item_graph_strength=0\.3 needs item_similarity"):
        model(item_graph_strength=0.3).fit(ratings())
    for strength in (-0.1, 1.0, "much"):
        with pytest.raises(ParameterError, match="item_graph_strength"):
            model(item_graph_strength=strength).fit(ratings())


def test_features_of_new_rows_are_not_asked_of_similarities(fitted):
    with pytest.raises(DataError, match="trained without"):
        fitted.fold_in(None, side="item", features=pd.DataFrame({"odd": [1]}))
    with pytest.raises(DataError, match="trained without"):
        fitted.feature_effects("item")


@both
def test_items_without_a_rating_and_without_strength_are_the_mean_of_those_rated(solver):
    off = model(solver, item_graph_strength=0).fit(ratings(), item_similarity=alike())
    new = off.predict(np.repeat(USERS, N_NEW), ITEMS[-N_NEW:] * N_USERS).reshape(N_USERS, -1)
    np.testing.assert_allclose(new, new[:, :1].repeat(N_NEW, axis=1), atol=1e-5)
    assert abs(new.mean() - ratings()["rating"].mean()) < 0.3
    found = off.explain(USERS[0], ITEMS[-1])
    assert found.total() == pytest.approx(found.score, abs=1e-4)


def test_what_else_is_wrong_is_said_before_similarities_are_read():
    with pytest.raises(DataError, match="validation must be Interactions, found int"):
        model().fit(ratings(), validation=7, item_similarity="read later")
    with pytest.raises(ParameterError, match="device"):
        model(device="nowhere").fit(ratings(), item_similarity="read later")
