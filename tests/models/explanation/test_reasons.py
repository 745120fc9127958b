"""The words of reasons agree with the figures, and with the scale of the person."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys import AIR, Interactions
from air_recsys.datasets import load_movielens
from air_recsys.models import GraphRanker
from air_recsys.models.reasons import DISLIKED, HIGHER, LIKED, LOWER, listed, tastes

N = 50  # explanations of a data set


def wide() -> Interactions:
    """Ratings of -10..10 of people who use parts of the scale."""
    rng = np.random.default_rng(0)
    taste = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 40)) * 4 + rng.normal(size=(60, 1)) * 4
    ratings = np.where(rng.random(taste.shape) < 0.5, taste.round().clip(-10, 10), np.nan)
    return Interactions.from_dense(ratings, rating_scale=(-10, 10))


DATA: dict[str, Any] = {
    "movielens": lambda root: load_movielens(root, "100k"),
    "wide": lambda root: wide(),
}


@cache
def model(name: str, root: Any) -> AIR:
    """A small model of a data set."""
    return AIR.for_ratings(n_factors=5, n_sweeps=3, random_state=0, device="cpu").fit(DATA[name](root))


@pytest.mark.parametrize("name", list(DATA))
def test_no_explanation_contradicts_the_ratings(name, data_root):
    fitted, rng = model(name, None if name == "wide" else data_root), np.random.default_rng(1)
    data = fitted.interactions_
    low, high = data.rating_scale or (data.ratings.min(), data.ratings.max())
    for place in rng.choice(data.n_ratings, N, replace=False):
        user, item = data.user_ids[data.user_index[place]], rng.choice(data.item_ids)
        if place % 2:
            item = data.item_ids[data.item_index[place]]  # a rated one
        found = fitted.explain(user, item, n=8)
        of_user = data.user_index == data.user_index[place]
        own, rated = data.ratings[of_user], item in data.item_ids[data.item_index[of_user]]
        assert found.total() == pytest.approx(found.score, abs=1e-3 * (high - low))
        assert item not in found.items["item"].tolist()
        assert item not in found.near_items.rows["item"].tolist()
        assert rated or found.own_rating == 0
        assert (found.likes["rating"] >= (low + high) / 2).all()
        assert (found.dislikes["rating"] < min((low + high) / 2, np.median(own))).all()
        told = found.items[found.items["taste"].isin([LIKED, HIGHER])]
        assert (told["deviation"] > 0).all()
        parts = found.items.groupby("taste")["contribution"].sum().tolist()
        assert np.abs([*parts, found.near_items.total, found.own_rating]).max() < high - low
        assert "nan" not in found.prose()


def test_words_go_by_the_scale_and_by_the_person():
    ratings, deviations = np.array([9, 8, 5.5, 4, 4, 2]), np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
    of_kind = tastes(ratings, deviations, usual=8, scale=(1, 10), binary=False)
    assert of_kind.tolist() == [LIKED, LOWER, HIGHER, HIGHER, DISLIKED, DISLIKED]
    of_harsh = tastes(ratings, deviations, usual=2, scale=(1, 10), binary=False)
    assert of_harsh.tolist() == [LIKED, LOWER, LIKED, HIGHER, LOWER, LOWER]
    assert tastes(np.array([1, 0]), np.array([-0.1, 0.1]), 1, (0, 1), True).tolist() == ["chose", "did not choose"]


def test_what_everybody_thinks_is_said_where_it_is_most_of_the_score():
    rng = np.random.default_rng(0)
    ratings = np.where(np.arange(30) < 15, 5.0, 2.0) + 0.1 * rng.normal(size=(40, 30))
    fitted = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings.clip(1, 5))
    assert "mostly because everybody rates it well" in " ".join(fitted.explain(0, 3).prose().split())
    assert "mostly because everybody rates it low" in " ".join(fitted.explain(0, 20).prose().split())


def test_reasons_of_lists_are_shares_of_the_score():
    alike = np.equal.outer(np.arange(60) % 2, np.arange(30) % 2)
    taken = np.random.default_rng(0).random(alike.shape) < np.where(alike, 0.4, 0.05)
    data = Interactions.from_csr(sp.csr_array(taken.astype(float)))
    fitted = GraphRanker(n_factors=4, n_steps=5, device="cpu", settings={}).fit(data)
    for user in range(N):
        item = fitted.recommend(user, n=1)["item"].iloc[0]
        found = fitted.explain(user, item)
        told = " ".join(found.prose().split())
        assert told.startswith(f"User {user} is given item {item} ")
        first = found.items.iloc[0]
        assert f"{first['item']} ({100 * first['contribution'] / found.score:.0f} %)" in told
        assert found.prose() in str(found)


def test_a_list_of_words():
    assert listed([]) == ""
    assert listed(["a", "b"]) == "a and b"
