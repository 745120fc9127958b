"""`partial_fit` and `fold_in` obey the rules of `fit`, and keep to the scale of the training data."""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from model_cases import CPU
from safetensors.numpy import load_file

from air_recsys import AIR, Interactions
from air_recsys.exceptions import DataError
from air_recsys.models import GraphRanker

N_ITEMS = 8
SOLVERS: dict[str, dict[str, Any]] = {
    "variational": {"n_sweeps": 3},
    "langevin": {"solver": "langevin", "n_sweeps": 10},
    "adam": {"solver": "adam", "n_epochs": 20},
}


def fails(message: str) -> Any:
    return pytest.raises(DataError, match=re.escape(message))


def table(values: tuple[float, ...] = (1, 2, 3, 4, 5)) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    users, items = np.divmod(np.arange(10 * N_ITEMS), N_ITEMS)
    shown = np.resize(values, users.size)
    rng.shuffle(shown)
    names = [f"u{user}" for user in users], [f"i{item}" for item in items]
    return pd.DataFrame({"user": names[0], "item": names[1], "rating": shown})


def of(rating: float, user: str = "eve", item: str = "i0") -> pd.DataFrame:
    return pd.DataFrame({"user": [user], "item": [item], "rating": [rating]})


@pytest.fixture(scope="module", params=SOLVERS)
def trained(request) -> AIR:
    return AIR.for_ratings(**CPU, n_factors=2, **SOLVERS[request.param]).fit(table())


@pytest.fixture
def model(trained: AIR) -> AIR:
    return copy.copy(trained)


def in_every_form(rating: float) -> list[Any]:
    row = sp.csr_array(([rating], ([0], [0])), shape=(1, N_ITEMS))
    return [of(rating), Interactions.from_frame(of(rating), allow_negative=True), row]


@pytest.mark.parametrize("rating", [100, 5.1, 0.5, 0, -1, 1e20, 1e39])
def test_a_rating_off_the_scale_is_refused_and_changes_nothing(model: AIR, rating: float):
    before = model._fitted()
    message = f"expected ratings in 1..5 (the scale of the training data), found {rating:g}"
    for ratings in in_every_form(rating):
        with fails(message):
            model.fold_in(ratings)
    for ratings in in_every_form(rating)[:2]:
        with fails(message):
            model.partial_fit(ratings)
    assert model._fitted() is before


@pytest.mark.parametrize("rating", [1, 5, 2.5, 5 * (1 + 1e-7)])
def test_ratings_on_the_scale_are_taken(model: AIR, rating: float):
    for ratings in in_every_form(rating):
        assert np.isfinite(model.fold_in(ratings).factors).all()
    assert model.partial_fit(of(rating)).interactions_.n_users == 11


@pytest.mark.parametrize("rating", [np.nan, np.inf, -np.inf])
def test_ratings_that_are_not_finite_are_refused(model: AIR, rating: float):
    with fails("ratings must be finite"):
        model.fold_in(of(rating))
    with fails("ratings must be finite"):
        model.fold_in(sp.csr_array(([rating], ([0], [0])), shape=(1, N_ITEMS)))
    with fails("ratings must be finite"):
        model.partial_fit(of(rating))


@pytest.mark.parametrize("weight", [np.nan, np.inf, -1.0])
def test_weights_are_those_of_fit(model: AIR, weight: float):
    row = sp.csr_array(([5.0, 4.0], ([0, 0], [0, 1])), shape=(1, N_ITEMS))
    with fails("weights must be finite and >= 0"):
        model.fold_in(row, weights=np.array([1.0, weight]))


def test_clipping_stays_that_of_fit(model: AIR):
    """A rating of 100 once let every score rise, and new ratings once let the range shrink."""
    items = [f"i{item}" for item in range(N_ITEMS)]
    pairs = np.repeat([f"u{user}" for user in range(10)], N_ITEMS), np.tile(items, 10)
    assert model._fitted().rating_scale == (1, 5)
    lower = table().assign(rating=table()["rating"].clip(upper=4))
    model.partial_fit(lower).partial_fit(of(5.0))
    assert model._fitted().rating_scale == (1, 5)
    assert model.interactions_.ratings.max() == 5
    scores = model.predict(*pairs)
    assert 1 <= scores.min() <= scores.max() <= 5


def test_the_scale_is_kept_in_a_file(model: AIR, tmp_path):
    model.partial_fit(table().assign(rating=3.0))
    assert model.interactions_.ratings.max() == 3
    loaded = AIR.load(model.save(tmp_path / "model.air"))
    assert loaded.rating_scale_ == (1, 5)
    loaded.partial_fit(of(5.0))
    with fails("expected ratings in 1..5"):
        loaded.partial_fit(of(6.0))


def test_without_clip_the_scale_counts_too():
    model = AIR.for_completion(n_epochs=20, **CPU).fit(table())
    assert not model.clip
    with fails("expected ratings in 1..5"):
        model.fold_in(of(6.0))


def test_negative_ratings_are_refused_where_the_training_data_have_none_and_taken_where_they_do():
    positive = AIR.for_interactions(n_epochs=20, unobserved_weight=0.1, **CPU).fit(table((1.0,)))
    for ratings in (of(-1.0), Interactions.from_frame(of(-1.0), allow_negative=True)):
        for act in (positive.fold_in, positive.partial_fit):
            with fails("ratings must be >= 0, as those of the training data are, found -1"):
                act(ratings)
    both = Interactions.from_frame(table((-2.0, 0.0, 3.0)), allow_negative=True)
    model = AIR.for_ratings(**CPU, n_factors=2, n_sweeps=3).fit(both)
    assert model.partial_fit(of(-2.0)).interactions_.n_users == 11
    with fails("expected ratings in -2..3"):
        model.partial_fit(of(-3.0))


def test_ratings_that_are_all_equal_have_no_scale():
    model = AIR.for_interactions(n_epochs=20, unobserved_weight=0.1, **CPU).fit(table((1.0,)))
    model.partial_fit(of(2.0)).partial_fit(of(0.0, "joe"))
    assert model.interactions_.n_users == 12


def test_what_leads_out_of_the_finite_numbers_is_refused_there(tmp_path):
    model = AIR.for_interactions(n_epochs=20, unobserved_weight=0.1, **CPU).fit(table((1.0,)))
    before = model._fitted()
    for act in (model.fold_in, model.partial_fit):
        with np.errstate(all="ignore"), pytest.raises(DataError, match="near those of the training data"):
            act(of(1e300))
    assert model._fitted() is before
    assert "ratings" in load_file(model.save(tmp_path / "model.air"))


def test_a_ranker_takes_any_values_but_negative_ones():
    model = GraphRanker(settings={}, n_factors=2).fit(table((1.0, 2.0)))
    assert len(model.fold_in(of(7.0)).recommend(2)) == 2
    with fails("ratings must be >= 0"):
        model.fold_in(of(-1.0))
    with fails("ratings must be finite"):
        model.fold_in(of(np.nan))


def test_one_rating_of_100_once_widened_the_clipping_of_everybody(model: AIR):
    with fails("found 100"):
        model.partial_fit(of(100.0))
    assert model.predict("u0", [f"i{item}" for item in range(N_ITEMS)]).max() <= 5
