"""What of the fold-in goes into the explorer's file: by size, and not of models that fold nobody in."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest

from air_recsys import AIR, Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.models import GraphRanker
from air_recsys.report import explorer_of, fold_in
from air_recsys.report.fold_in import as_text, fold_in_content


@pytest.fixture(scope="module")
def ratings() -> Interactions:
    """Two groups."""
    return Interactions.from_dense(np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((6, 5))))


@pytest.fixture(scope="module")
def model(ratings) -> AIR:
    """The preset for ratings."""
    return AIR.for_ratings(n_sweeps=3, random_state=0, device="cpu").fit(ratings)


def in_page(path: Path) -> dict | None:
    page = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    content = json.loads(found[1]).get("fold_in")
    assert ("class FoldIn" in page) == ("class Picks" in page) == ("#recommended" in page) == (content is not None)
    return content


@pytest.mark.parametrize("type", ["f2", "f4", "f8"])
def test_arrays_come_back(type):
    values = np.random.default_rng(0).normal(size=(3, 4))
    text = as_text(values, type)
    back = np.frombuffer(base64.b64decode(text["base64"]), f"<{text['type']}").reshape(text["shape"])
    np.testing.assert_allclose(back, values, rtol={"f2": 1e-3, "f4": 1e-6, "f8": 0}[type])


def test_numbers_too_large_for_half_precision_are_kept():
    assert as_text(np.array([1e6]), "f2")["type"] == "f4"


def test_a_page_recommends_by_default_where_it_is_small(model, tmp_path, monkeypatch):
    found = in_page(explorer_of(model, tmp_path / "m.html"))
    assert found is not None
    assert (found["kind"], found["range"], found["values"]) == ("posterior", [1, 5], [1, 2, 4, 5])
    size = sum(len(value["base64"]) for value in found.values() if isinstance(value, dict))
    assert size > 2 * 4 * model.item_factors_.size
    monkeypatch.setattr(fold_in, "MOST_BY_DEFAULT", size - 1)
    assert in_page(explorer_of(model, tmp_path / "m.html")) is None
    assert in_page(explorer_of(model, tmp_path / "m.html", recommend=True)) is not None
    monkeypatch.setattr(fold_in, "MOST_BY_DEFAULT", size)
    assert in_page(explorer_of(model, tmp_path / "m.html")) is not None
    assert in_page(explorer_of(model, tmp_path / "m.html", recommend=False)) is None


@pytest.mark.parametrize("most", [10, 2000])
def test_more_than_a_page_may_hold_is_refused(model, tmp_path, monkeypatch, most):
    monkeypatch.setattr(fold_in, "MOST_BYTES", most)
    with pytest.raises(ParameterError, match=r"a fold-in of at most \S+ MB in a page, found 0.0 MB for 10 items"):
        explorer_of(model, tmp_path / "m.html", recommend=True)
    assert not (tmp_path / "m.html").exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AIR.for_ratings(item_graph_reg=0, n_sweeps=2, device="cpu"), "a graph of the items to pick from"),
        (lambda: AIR.for_completion(tv_reg=1.0, n_epochs=3, device="cpu"), "no total variation"),
    ],
)
def test_models_that_a_page_cannot_solve_for(ratings, tmp_path, make, message):
    fitted = make().fit(ratings)
    with pytest.raises(ParameterError, match=message):
        explorer_of(fitted, tmp_path / "m.html", recommend=True)
    assert in_page(explorer_of(fitted, tmp_path / "m.html")) is None


def test_a_regression_of_neighbours_is_refused(ratings, monkeypatch):
    monkeypatch.setattr("air_recsys.models.graph_ranker.regression.MOST_EXACT", 9)
    fitted = GraphRanker(settings={}, device="cpu").fit(ratings)
    with pytest.raises(
        ParameterError, match="a regression of all pairs of items, found one of neighbours of 10 items"
    ):
        fold_in_content(fitted, True)


def test_equations_that_are_singular_without_ratings_are_refused(ratings):
    weak = {"weight_decay": 1e-30, "item_graph_reg": 1e-30}
    fitted = AIR.for_ratings(solver="adam", n_factors=4, n_epochs=3, device="cpu", **weak).fit(ratings)
    with pytest.raises(ParameterError, match="singular without ratings"):
        fold_in_content(fitted, True)
