"""Users of a `GraphRanker`: new ones get the lists of their group, and what each item adds to a score is told."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from ranker_cases import all_scores, likes, named

from air_recsys import Interactions
from air_recsys.exceptions import DataError, DataWarning, NotFittedError, ParameterError, UnknownIdError
from air_recsys.metrics.checks import Csr
from air_recsys.models import GraphRanker
from air_recsys.models.graph_ranker import regression

SETTINGS: dict[str, Any] = {"regression_source": 0.4, "factor_weight": 0.8}
N_ITEMS = 60


def thirds(seed: int = 0) -> Csr:
    """Three groups of users and of items, and an item that all have."""
    pattern = likes(60, N_ITEMS, own=0.5, other=0.03, n_groups=3, seed=seed).toarray()
    pattern[:, 0] = 1
    return sp.csr_array(pattern)


def trained(data: Any, **settings: Any) -> GraphRanker:
    return GraphRanker(n_factors=5, n_steps=30, device="cpu", settings=SETTINGS | settings).fit(data)


@pytest.fixture(scope="module")
def data() -> Interactions:
    return named(thirds())


@pytest.fixture(scope="module")
def model(data: Interactions) -> GraphRanker:
    return trained(data)


def lists(model: GraphRanker, n: int, **how: Any) -> pd.DataFrame:
    return model.recommend(model.interactions_.user_ids, n, **how)


@pytest.mark.order
def test_a_trained_user_folds_in_as_itself_and_the_model_stays(model: GraphRanker, data: Interactions) -> None:
    before = model.recommend(data.user_ids, 5)
    found = model.fold_in(data)
    np.testing.assert_allclose(all_scores(found), all_scores(model), rtol=1e-4, atol=1e-6)
    assert found.recommend(data.user_ids, 5)["item"].equals(before["item"])
    pd.testing.assert_frame_equal(model.recommend(data.user_ids, 5), before)


def test_strangers_get_items_of_their_group_that_they_do_not_have(model: GraphRanker) -> None:
    strangers = thirds(1)
    found = lists(model.fold_in(named(strangers, "new")), 5)
    rows, items = found["user"].str.removeprefix("new").astype(int).to_numpy(), found["item"].to_numpy()
    assert np.mean(items % 3 == rows % 3) > 0.9
    assert not strangers.toarray()[rows, items].any()
    assert set(found["source"]) == {"model"}
    assert found["rank"].tolist() == [1, 2, 3, 4, 5] * 60
    assert len(lists(model.fold_in(strangers), N_ITEMS, exclude_seen=False)) == 60 * N_ITEMS
    assert len(lists(model.fold_in(strangers), N_ITEMS)) == 60 * N_ITEMS - strangers.nnz


def test_tables_interactions_and_matrices_fold_in_alike_and_values_do_not_count_alone(model: GraphRanker) -> None:
    strangers = thirds(2)[:4]
    users, items = strangers.nonzero()
    table = pd.DataFrame({"user": users + 1000, "item": items, "rating": np.resize([0.5, 5, 2], users.size)})
    with pytest.warns(DataWarning, match="as much as its rating, found 0.5..5"):
        of_table = model.fold_in(table)
    found = [of_table, *(model.fold_in(each) for each in (named(strangers, "new"), sp.coo_array(7 * strangers)))]
    assert [each.interactions_.user_ids.tolist() for each in found] == [
        [1000, 1001, 1002, 1003],
        ["new00", "new01", "new02", "new03"],
        [0, 1, 2, 3],
    ]
    for each in found[1:]:
        np.testing.assert_array_equal(all_scores(each), all_scores(found[0]))


@pytest.mark.order
def test_lists_hold_what_is_allowed_and_no_more_than_there_is(model: GraphRanker) -> None:
    folded = model.fold_in(sp.csr_array(np.vstack([thirds().toarray()[:2], np.zeros(N_ITEMS)])))
    whole, some = lists(folded, 1000), set(range(0, N_ITEMS, 3))
    found = lists(folded, 1000, items=some, exclude=0)
    expected = whole[whole["item"].isin(some - {0})].reset_index(drop=True)
    pd.testing.assert_frame_equal(found.drop(columns="rank"), expected.drop(columns="rank"))
    assert whole["source"][-1:].tolist() == ["popular"]
    assert lists(folded, 5, items=[]).empty
    assert lists(model.fold_in(sp.csr_array((0, N_ITEMS))), 3).empty
    with pytest.raises(ParameterError, match="n must be an integer >= 1, found 0"):
        folded.recommend(0, 0)


@pytest.mark.parametrize(
    ("interactions", "error", "message"),
    [
        (np.zeros((1, 60)), DataError, "expected .* found ndarray"),
        (
            pd.DataFrame({"user": ["n"], "item": [99], "rating": [1]}),
            UnknownIdError,
            "99; partial_fit",
        ),
        (pd.DataFrame({"user": ["n"], "rating": [1]}), DataError, "expected the column"),
    ],
)
def test_what_does_not_fit_the_model_is_told(model, interactions, error, message) -> None:
    with pytest.raises(error, match=message):
        model.fold_in(interactions)
    with pytest.raises(NotFittedError):
        GraphRanker().fold_in(sp.csr_array((1, 3)))


# -------------------------------------------------------------------- explanations


@pytest.mark.parametrize("settings", [{}, {"factor_weight": 0.0}, {"regression_weight": 0.0}])
def test_contributions_sum_to_the_score_term_by_term(data: Interactions, settings: dict[str, Any]) -> None:
    model = trained(data, **settings)
    for user, item in (("u00", 2), ("u00", 1), ("u07", 7), ("u03", 0)):
        found = model.explain(user, item, n=100)
        assert found.score == pytest.approx(float(model.predict(user, item)[0]), rel=1e-6)
        assert found.total() == pytest.approx(found.score, rel=1e-4, abs=1e-6)
        terms = [name for name in found.items if name not in ("item", "label", "contribution")]
        np.testing.assert_allclose(found.items[terms].sum(axis=1), found.items["contribution"])
        for name in terms:
            assert found.parts[name] == pytest.approx(found.items[name].sum(), abs=1e-9)
        assert found.items["contribution"].is_monotonic_decreasing
        assert found.n_items == len(found.items)
    assert settings or set(found.parts) == {"regression", "factors", "no_items"}


def test_the_part_of_the_regression_is_its_formula(model: GraphRanker, data: Interactions) -> None:
    pattern, settings = sp.csr_array(data.to_csr()), model.settings_
    degrees, weights = regression.item_degrees(pattern, 0.5, 1.0), regression.item_weights(pattern, settings)
    rows = (pattern.toarray() / degrees**settings.regression_source) @ weights / degrees**settings.regression_target
    found = model.explain("u04", 6, n=100).items.set_index("item")["regression"]
    own = pattern[[4]].indices
    expected = degrees[own] ** -settings.regression_source * weights[own, 6] / degrees[6] ** settings.regression_target
    np.testing.assert_allclose(found[own], expected / np.linalg.norm(rows[4]), rtol=1e-4, atol=1e-7)


def test_items_of_the_own_taste_add_most(model: GraphRanker) -> None:
    first = [model.explain(f"u{user:02}", 3 + user % 3, n=1).items["item"][0] for user in range(21)]
    assert np.mean([item % 3 == user % 3 for user, item in enumerate(first)]) > 0.8


def test_new_users_are_told_what_trained_ones_are(model: GraphRanker, data: Interactions) -> None:
    one, other = model.explain("u05", 3), model.fold_in(data).explain("u05", 3)
    assert one.items["item"].tolist() == other.items["item"].tolist()
    np.testing.assert_allclose(one.items["contribution"], other.items["contribution"], rtol=1e-4, atol=1e-6)
    empty = model.fold_in(sp.csr_array((1, N_ITEMS))).explain(0, 3)
    assert (empty.n_items, len(empty.items), empty.score, empty.total()) == (0, 0, 0.0, 0)


def test_it_reads_as_text_and_as_json(model: GraphRanker) -> None:
    found = model.explain("u00", 3, n=3, labels=dict.fromkeys(range(1, N_ITEMS), "Brazil") | {3: "Alien"})
    assert str(found).startswith("user u00, item 3 (Alien): score ")
    assert "the first 3" in str(found)
    assert "Brazil" in str(found)
    assert "label" not in str(model.explain("u00", 3, n=3))
    again = json.loads(json.dumps(found.to_dict()))
    assert again["parts"].keys() == found.parts.keys()
    assert [row["item"] for row in again["items"]] == found.items["item"].tolist()


@pytest.mark.parametrize(
    ("asked", "options", "error", "message"),
    [
        (("nobody", 2), {}, UnknownIdError, "user id"),
        (("u00", "nothing"), {}, UnknownIdError, "item id"),
        (("u00", 2), {"n": 0}, ParameterError, "n must be an integer >= 1"),
        (("u00", 2), {"labels": ["Alien"]}, ParameterError, "labels must be a mapping"),
    ],
)
def test_strangers_and_no_rows_are_refused(model, data, asked, options, error, message) -> None:
    for users in (model, model.fold_in(data)):
        with pytest.raises(error, match=message):
            users.explain(*asked, **options)
