"""Ratings as likes and dislikes: what counts as a like, what lists leave out, and what is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from ranker_cases import SMALL, all_scores, likes

from air_recsys import AIR, Interactions
from air_recsys.exceptions import DataError, DataWarning, ParameterError
from air_recsys.models import GraphRanker
from air_recsys.serving import Service

GIVEN: dict[str, Any] = SMALL | {"settings": {}, "liked": 4}


def graded(low: float = 1.0, high: float = 5.0, seed: int = 0) -> np.ndarray:
    """Ratings of two groups, the best ones in the own group; 0 where there is none."""
    own, rated = likes(own=1.0, other=0.0).toarray() > 0, likes(own=0.4, other=0.2, seed=seed).toarray() > 0
    return np.where(rated, np.where(own, high, low), 0.0)


def table(ratings: np.ndarray) -> pd.DataFrame:
    return Interactions.from_dense(np.where(ratings == 0, np.nan, ratings)).to_frame()


def test_all_doors_take_the_same_ratings_for_likes():
    ratings = graded()
    doors = [ratings, sp.csr_array(ratings), table(ratings), Interactions.from_frame(table(ratings))]
    found = [all_scores(GraphRanker(**GIVEN).fit(each)) for each in doors]
    for each in found[1:]:
        np.testing.assert_array_equal(each, found[0])
    thumbs = GraphRanker(**GIVEN | {"liked": 1}).fit(graded(-1, 1))
    np.testing.assert_array_equal(all_scores(thumbs), found[0])


def test_lists_leave_out_what_is_liked_and_what_is_not():
    model = AIR.for_likes(**SMALL, liked=4).fit(graded())
    lists = model.recommend(3, n=30)
    assert set(lists["item"]) == set(np.flatnonzero(graded()[3] == 0))
    assert model.interactions_.n_ratings == (graded() == 5).sum()
    share = (graded() == 5).sum() / np.count_nonzero(graded())
    assert model.search_line_.startswith(f"like: rating >= 4 ({100 * share:.0f} % of the ratings); ")
    assert f"disliked counts {model.interactions_.kinds.worths['disliked']:g}" in model.search_line_


def test_new_ratings_are_likes_and_dislikes_too(tmp_path):
    ratings = graded()
    model = GraphRanker(**GIVEN).fit(ratings)
    own = model.recommend(7, n=30)
    for new in (sp.csr_array(ratings[[7]]), table(ratings[[7]]), Interactions.from_frame(table(ratings[[7]]))):
        pd.testing.assert_frame_equal(
            model.fold_in(new).recommend(0, n=30).drop(columns="user"), own.drop(columns="user")
        )
    loaded = GraphRanker.load(model.save(tmp_path / "m.air"))
    hated = pd.DataFrame({"user": [7, 99], "item": [own["item"][0], 1], "rating": [1.0, 2.0]})
    loaded.partial_fit(hated)
    assert own["item"][0] not in set(loaded.recommend(7, n=30)["item"])
    assert 1 not in set(loaded.recommend(99, n=30)["item"])
    assert loaded.interactions_.n_ratings == model.interactions_.n_ratings


def test_a_service_takes_likes_of_such_a_model_as_likes():
    service = Service(GraphRanker(**GIVEN).fit(graded()))
    found = service.fold_in({}, [0, 2, 4], 5)["items"]
    assert all(each["item"] % 2 == 0 for each in found)
    service.add("likes", [{"user": 99, "item": each} for each in (0, 2, 4)])
    assert [each["item"] for each in service.recommend(99, 5)["items"]] == [each["item"] for each in found]


def test_a_table_of_ratings_is_told_how_to_say_what_a_like_is():
    with pytest.warns(DataWarning, match=r"each row counts as one like.*liked=5 those from 5 on are likes \(\d+ % of"):
        GraphRanker(**SMALL, settings={}).fit(table(graded()))
    with pytest.warns(DataWarning, match="no dislikes found: all"):
        GraphRanker(**GIVEN).fit(table(graded(5, 5)))
    with pytest.raises(DataError, match=r"expected ratings of 9 or more .liked., found only lower ones"):
        GraphRanker(**GIVEN | {"liked": 9}).fit(graded())
    with pytest.raises(ParameterError, match="found both"):
        GraphRanker(liked=4, target="buy").fit(graded())
    with pytest.raises(ParameterError, match="liked"):
        GraphRanker(liked="many").fit(graded())
