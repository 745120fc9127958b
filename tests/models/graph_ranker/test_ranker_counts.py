"""Likes with counts: how much each counts, by the formulas, in every term and question."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from ranker_cases import SMALL, all_scores, assert_scores_of_the_formula, likes
from scipy.stats import rankdata

import air_recsys
from air_recsys import AIR, Interactions
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.metrics import ndcg_at_k
from air_recsys.metrics.at_k import graded_ndcg
from air_recsys.models import GraphRanker
from air_recsys.models.graph_ranker.hidden import gains_of
from air_recsys.models.graph_ranker.inputs import STRENGTHS, RankerSettings, strengths

GIVEN: dict[str, Any] = SMALL | {"settings": {"strength": 3}}


def counts(seed: int = 0) -> sp.csr_array:
    """Likes of two groups, and how often: those of the own group more often."""
    pattern = likes(own=0.5, other=0.2)
    rows = np.repeat(np.arange(60), np.diff(pattern.indptr))
    usual = np.where(rows % 2 == pattern.indices % 2, 3.0, 0.0)
    pattern.data = np.ceil(np.exp(usual + np.random.default_rng(seed).normal(size=pattern.nnz))).astype(np.float32)
    return pattern


def table(values: sp.csr_array, name: str = "weight") -> pd.DataFrame:
    return Interactions.from_csr(values.astype(float)).to_frame().rename(columns={"rating": name})


def test_strengths_are_those_of_the_formulas():
    row = np.array([4.0, 1.0, 1.0, 10.0])
    t = row / 4
    formulas = (np.ones(4), t, np.sqrt(t), 1 + np.log1p(t), 0.5 + rankdata(row) / 4, t / (1.2 + t))
    values = sp.csr_array(np.vstack([row, [0, 0, 7, 0], 1e9 * row]))
    values.data[4] = 0  # which stays stored, alone in its row
    for number, formula in enumerate(formulas):
        found = strengths(values, number).toarray()
        np.testing.assert_allclose(found[0], formula / formula.mean(), rtol=1e-6)
        np.testing.assert_allclose(found[1:], [[0, 0, 1, 0], found[0]], rtol=1e-6)
    assert len(formulas) == len(STRENGTHS)


@pytest.mark.parametrize("strength", range(1, len(STRENGTHS)))
def test_scores_explanations_and_new_rows_are_of_what_counts(strength):
    data = Interactions.from_csr(counts())
    model = GraphRanker(**SMALL, settings={"strength": strength}).fit(data)
    assert_scores_of_the_formula(model, data)
    found = model.explain(3, 8)
    assert found.total() == pytest.approx(found.score)
    assert found.score == pytest.approx(model.predict(3, 8).item())
    again = model.fold_in(counts())
    np.testing.assert_allclose(all_scores(again), all_scores(model), rtol=1e-6)


def test_values_have_no_unit_and_stand_in_ratings_or_weights_alike():
    of_ratings = GraphRanker(**GIVEN).fit(counts())
    others = [64 * counts(), table(counts()), table(counts()).sample(frac=1, random_state=0)]
    for each in others:
        np.testing.assert_allclose(all_scores(GraphRanker(**GIVEN).fit(each)), all_scores(of_ratings), rtol=1e-5)
    named = GraphRanker(**GIVEN).fit(table(counts(), "plays"))
    np.testing.assert_array_equal(all_scores(named), all_scores(of_ratings))


def test_equal_values_are_none_to_the_bit():
    ones, sevens = likes(), 7 * likes()
    first, other = (GraphRanker(**SMALL).fit(each) for each in (ones, table(sevens)))
    np.testing.assert_array_equal(all_scores(first), all_scores(other))
    pd.testing.assert_frame_equal(first.history_, other.history_)
    assert first.settings_.strength == 0
    assert "values" not in first.search_line_


def test_the_search_finds_values_that_tell_and_says_so(tmp_path):
    model = GraphRanker(**SMALL).fit(counts())
    tried = model.history_
    assert sorted(tried["strength"].unique()) == list(range(len(STRENGTHS)))
    assert model.settings_.strength > 0
    assert f"which count {STRENGTHS[int(model.settings_.strength)]}" in model.search_line_
    loaded = air_recsys.load(model.save(tmp_path / "lists.air"))
    np.testing.assert_array_equal(all_scores(loaded), all_scores(model))
    noise = counts()
    noise.data = np.random.default_rng(1).permutation(noise.data)
    of_noise = GraphRanker(**SMALL).fit(noise)
    best = of_noise.history_[of_noise.history_["strength"] == of_noise.settings_.strength]["ndcg"].max()
    assert best == of_noise.history_["ndcg"].max()


def test_new_likes_have_values_too():
    values = counts()
    first, rest = values.copy(), values.copy()
    late = np.random.default_rng(2).random(values.nnz) < 0.05
    late[[0, -1]] = False  # all users and items are known
    first.data[late], rest.data[~late] = 0, 0
    model = GraphRanker(**SMALL, settings={"strength": 2, "factor_weight": 0.0}).fit(table(values)[~late])
    for new in (table(values)[late], Interactions.from_frame(table(values, "rating")[late], rating_scale=(1, 1000))):
        grown = GraphRanker(**SMALL, settings=model.settings).fit(table(values)[~late]).partial_fit(new)
        data = grown.interactions_
        assert data.weights_to_csr().sum() == values.sum()
        order = np.argsort(data.pair_index)
        np.testing.assert_array_equal(data.weights[order], values.data)
    column = sp.csr_array(values[:, [3]].T)
    folded = model.fold_in(column, side="item")
    assert np.isfinite(all_scores(folded)).all()
    left = model.forget(users=5)
    assert left.interactions_.n_users == 59


def test_ndcg_by_gains_is_that_of_the_formula():
    lists = np.array([[0, 2, 1], [3, 0, 2], [1, 0, 2]])
    gains = sp.csr_array([[0.0, 3.0, 1.0, 2.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    discount = 1 / np.log2([2, 3, 4])
    expected = [(discount @ [0, 1, 3]) / (discount @ [3, 2, 1]), discount[1]]
    assert graded_ndcg(lists, gains) == pytest.approx(expected)
    ones = (gains > 0).astype(float)
    assert graded_ndcg(lists, ones).mean() == ndcg_at_k(lists, ones, 3)
    worth = gains_of(sp.csr_array([[4.0, 0.0, 12.0]]), sp.csr_array([[4.0, 1.0, 9.0]]))
    np.testing.assert_allclose(worth.data, np.log([2, 4]))


def test_values_that_are_none_are_refused_and_large_ones_are_not():
    frame = table(counts())
    for bad in (np.nan, -1.0, np.inf):
        with pytest.raises(DataError, match="weights must be finite"):
            AIR.for_likes(**SMALL).fit(frame.assign(weight=bad))
    with pytest.raises(ParameterError, match="strength"):
        GraphRanker(settings={"strength": 1.5}).check_parameters()
    hours = frame.assign(weight=np.where(np.arange(len(frame)) % 3, frame["weight"] * 1e9, 0))
    model = GraphRanker(**SMALL).fit(hours)
    assert np.isfinite(all_scores(model)).all()
    unseen = model.recommend(range(60), 30).merge(hours, on=["user", "item"])
    assert unseen.empty  # what has a value of 0 is not listed either


def test_settings_of_older_files_count_all_alike():
    values = {name: value for name, value in RankerSettings()._asdict().items() if name != "strength"}
    assert RankerSettings.of_values(values) == RankerSettings()
