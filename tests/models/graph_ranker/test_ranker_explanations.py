"""Explanations of a `GraphRanker`: contributions that sum to the score, term by term, of trained and of new users."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.exceptions import ParameterError, UnknownIdError
from air_recsys.models import GraphRanker
from air_recsys.models.graph_ranker import regression

ALL = {"factor_weight": 0.8, "regression_weight": 1.0}


def likes(seed: int = 0) -> Interactions:
    rng = np.random.default_rng(seed)
    same = np.arange(60)[:, None] % 2 == np.arange(30) % 2
    pattern = rng.random((60, 30)) < np.where(same, 0.4, 0.05)
    pattern[:, 0] = True
    return Interactions.from_csr(
        sp.csr_array(pattern.astype(float)), [f"u{row}" for row in range(60)], [f"i{column}" for column in range(30)]
    )


def fitted(**settings: Any) -> GraphRanker:
    return GraphRanker(n_factors=5, n_steps=30, device="cpu", settings=ALL | settings).fit(likes())


@pytest.mark.parametrize("settings", [{}, {"factor_weight": 0.0}, {"regression_weight": 0.0}])
def test_contributions_sum_to_the_score(settings: dict[str, Any]) -> None:
    model = fitted(**settings)
    for user, item in (("u0", "i2"), ("u0", "i1"), ("u7", "i7"), ("u3", "i0")):
        found = model.explain(user, item, n=100)
        assert found.score == pytest.approx(float(model.predict(user, item)[0]), rel=1e-6)
        assert found.total() == pytest.approx(found.score, rel=1e-4, abs=1e-6)
        terms = [name for name in found.items if name not in ("item", "label", "contribution")]
        np.testing.assert_allclose(found.items[terms].sum(axis=1), found.items["contribution"])
        for name in terms:
            assert found.parts[name] == pytest.approx(found.items[name].sum(), abs=1e-9)
        assert found.items["contribution"].is_monotonic_decreasing
        assert found.n_items == len(found.items)


def test_terms_are_told_under_their_names() -> None:
    assert set(fitted().explain("u0", "i2").parts) == {"regression", "factors", "no_items"}


def test_the_part_of_the_regression_is_its_formula() -> None:
    model = fitted()
    state, settings = model._fitted(), model.settings_
    pattern = sp.csr_array(state.statistics.seen, dtype=np.float64)
    degrees = regression.item_degrees(pattern, settings)
    weights = np.asarray(state.item_weights)
    rows = (pattern.toarray() / degrees**settings.regression_source) @ weights / degrees**settings.regression_target
    found = model.explain("u4", "i6", n=100).items.set_index("item")["regression"]
    own = pattern[[4]].indices
    expected = degrees[own] ** -settings.regression_source * weights[own, 6] / degrees[6] ** settings.regression_target
    np.testing.assert_allclose(
        found[[f"i{each}" for each in own]], expected / np.linalg.norm(rows[4]), rtol=1e-4, atol=1e-7
    )


def test_items_of_the_own_taste_add_most() -> None:
    model = fitted()
    first = [model.explain(f"u{user}", f"i{2 + user % 2}", n=1).items["item"][0] for user in range(20)]
    assert np.mean([int(item[1:]) % 2 == user % 2 for user, item in enumerate(first)]) > 0.8


def test_new_users_are_told_what_trained_ones_are() -> None:
    model = fitted()
    folded = model.fold_in(likes())
    one, other = model.explain("u5", "i3"), folded.explain("u5", "i3")
    assert one.items["item"].tolist() == other.items["item"].tolist()
    np.testing.assert_allclose(one.items["contribution"], other.items["contribution"], rtol=1e-4, atol=1e-6)
    empty = model.fold_in(sp.csr_array((1, 30))).explain(0, "i3")
    assert (empty.n_items, len(empty.items), empty.score) == (0, 0, 0.0)
    assert empty.total() == 0


def test_it_reads_as_text_and_as_json() -> None:
    found = fitted().explain("u0", "i2", n=3, labels={"i2": "Alien", "i20": "Brazil"})
    text = str(found)
    assert text.startswith("user u0, item i2 (Alien): score ")
    assert "the first 3" in text
    assert "Brazil" in text
    assert "label" not in str(fitted().explain("u0", "i2", n=3))
    again = json.loads(json.dumps(found.to_dict()))
    assert again["parts"].keys() == found.parts.keys()
    assert [row["item"] for row in again["items"]] == found.items["item"].tolist()


def test_strangers_and_no_rows_are_refused() -> None:
    model = fitted()
    with pytest.raises(UnknownIdError, match="user id"):
        model.explain("nobody", "i2")
    with pytest.raises(UnknownIdError, match="item id"):
        model.explain("u0", "nothing")
    with pytest.raises(UnknownIdError, match="user id"):
        model.fold_in(likes()).explain("nobody", "i2")
    with pytest.raises(ParameterError, match="n must be an integer >= 1"):
        model.explain("u0", "i2", n=0)
    with pytest.raises(ParameterError, match="labels must be a mapping"):
        model.explain("u0", "i2", labels=["Alien"])  # type: ignore[arg-type]
