"""Similarities that are given to `fit`: how strongly they count, what they tell, and what is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys import AIR, Interactions, SimilarityGraph
from air_recsys.exceptions import DataError, ParameterError

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


@cache
def plain(solver="variational"):
    return model(solver).fit(ratings())


@cache
def told(strength="auto", solver="variational"):
    """A model that was told how alike items are; not to be changed."""
    return model(solver, item_graph_strength=strength).fit(ratings(), item_similarity=alike())


KNOWN, NEW = slice(0, N_ITEMS - N_NEW), slice(N_ITEMS - N_NEW, None)


# -------------------------------------------------------------------- how strongly they count


def test_similarities_that_tell_something_win_on_hidden_ratings():
    found = told()
    assert found.item_graph_strength_ > 0
    assert found.user_graph_strength_ == 0
    assert found.settings_["item_graph_strength"] == found.item_graph_strength_
    assert found.search_["form"].tolist() == [f"item_graph_strength={each}" for each in ("0", "0.1", "0.3", "0.7")]
    assert (found.search_["trainings"] == 1).all()
    assert f"item_graph_strength={found.item_graph_strength_:g}, RMSE" in found.search_line_
    assert error(found, KNOWN) < 0.95 * error(plain(), KNOWN)
    assert model().memory_plan(found.interactions_).total > model().memory_plan(plain().interactions_).total
    auto = AIR.auto(random_state=0, device="cpu", n_factors=2, search_budget=0.4).fit(
        ratings(), item_similarity=alike()
    )
    assert auto.item_graph_strength_ > 0


def test_similarities_that_tell_nothing_do_little_harm():
    found = [model(random_state=seed).fit(ratings(), item_similarity=alike(seed)) for seed in range(2)]
    assert max(error(each, KNOWN) for each in found) < 1.05 * error(plain(), KNOWN)


@both
def test_a_strength_of_0_is_a_model_without_whose_new_items_are_the_mean_of_those_rated(solver):
    off = model(solver, item_graph_strength=0).fit(ratings(), item_similarity=alike().iloc[:-N_NEW, :-N_NEW])
    assert off.item_graph_strength_ == 0
    pairs = np.repeat(USERS, 5), np.tile(ITEMS[:5], N_USERS)
    np.testing.assert_array_equal(off.predict(*pairs), plain(solver).predict(*pairs))
    assert off.explain("u03", "i004").user_features.count == 0
    off = told(0, solver)
    new = off.predict(np.repeat(USERS, N_NEW), ITEMS[NEW] * N_USERS).reshape(N_USERS, -1)
    np.testing.assert_allclose(new, new[:, :1].repeat(N_NEW, axis=1), atol=1e-5)
    assert abs(new.mean() - ratings()["rating"].mean()) < 0.3
    found = off.explain(USERS[0], ITEMS[-1])
    assert found.total() == pytest.approx(found.score, abs=1e-4)


def test_both_sides_are_searched_users_first_and_few_ratings_are_not_divided():
    found = model().fit(ratings(), user_similarity=alike_users(), item_similarity=alike())
    searched = found.search_["form"].str.split("=").str[0].tolist()
    assert searched == ["user_graph_strength"] * 4 + ["item_graph_strength"] * 4
    few = model().fit(ratings().iloc[:150], item_similarity=alike())
    assert few.item_graph_strength_ == 0.3
    assert few.search_.empty


# -------------------------------------------------------------------- what they tell


def test_items_without_a_rating_are_predicted_from_those_alike(fitted):
    assert error(fitted, NEW) < 0.9 * truth().std()
    values, deviations = fitted.predict(np.repeat(USERS, N_NEW), ITEMS[NEW] * N_USERS, return_std=True)
    noisy = truth()[:, NEW].ravel() + 0.5 * np.random.default_rng(3).standard_normal(values.size)
    assert 0.7 < (np.abs(noisy - values) < 1.645 * deviations).mean() <= 1


def test_forms_of_the_same_similarities_are_the_same():
    data = Interactions.from_frame(ratings())
    given = alike().loc[data.item_ids, data.item_ids]
    forms = given, sp.csr_array(given.to_numpy()), given.to_numpy(), SimilarityGraph(given.to_numpy(), data.item_ids)
    factors = [model(item_graph_strength=0.5).fit(data, item_similarity=form).item_factors_ for form in forms]
    for found in factors[1:]:
        np.testing.assert_array_equal(found, factors[0])


def test_ids_without_similarities_are_like_none_and_of_many_neighbours_the_most_alike_count():
    half = alike().iloc[: N_ITEMS // 2, : N_ITEMS // 2]
    data = model(item_graph_strength=0.5).fit(ratings(), item_similarity=half).interactions_
    places = data.item_features.places
    assert places[data.items.lookup(ITEMS[:3])].any(axis=1).all()
    assert not places[data.items.lookup(ITEMS[-8:-N_NEW])].any()
    weak = model(item_graph_strength=0.5).fit(ratings(), item_similarity=alike() + 0.01)
    assert error(weak, KNOWN) == pytest.approx(error(told(0.5), KNOWN), rel=0.05)


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
    "the distances of pdist": (lambda s: np.arange(10.0), r"found ndarray: 1 dimension\(s\): .*squareform"),
    "a graph of networkx": (lambda s: nx.path_graph(9), r"found Graph: .*networkx\.to_pandas_adjacency\(graph\)"),
    "not a matrix": (lambda s: "similar", "found str"),
    "complex": (lambda s: s + 0j, "a matrix of numbers, found"),
    "masked": (lambda s: np.ma.masked_less(s.to_numpy()[:114, :114], 0.1), "finite item similarities, found nan"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_similarity_is_refused_with_the_mend(name):
    change, message = BAD[name]
    with pytest.raises(DataError, match=message):
        model().fit(ratings(), item_similarity=change(alike()))


def test_a_strength_without_similarities_and_features_that_they_are_not_are_refused(fitted):
    with pytest.raises(DataError, match=r"item_graph_strength=0\.3 needs item_similarity"):
        model(item_graph_strength=0.3).fit(ratings())
    for strength in (-0.1, 1.0, "much"):
        with pytest.raises(ParameterError, match="item_graph_strength"):
            model(item_graph_strength=strength).fit(ratings())
    for ask in (
        lambda: fitted.fold_in(None, side="item", features=pd.DataFrame({"odd": [1]})),
        lambda: fitted.feature_effects("item"),
    ):
        with pytest.raises(DataError, match="trained without"):
            ask()
