"""The figure shows what was given, what was completed and both graphs, and needs no display."""

import io
import sys

import numpy as np
import pytest
from matplotlib.colors import Normalize

from air_recsys import AIR, DMF, BiasModel
from air_recsys.exceptions import DataError
from air_recsys.report.plots import plot_completion


@pytest.fixture(scope="module")
def model():
    ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((4, 6)))
    ratings[np.random.default_rng(0).random(ratings.shape) < 0.2] = np.nan
    return AIR.for_completion(n_epochs=500, init_std=0.1, random_state=0, device="cpu").fit(ratings)


def panels(figure):
    return [axes for axes in figure.axes if axes.get_title()]


def values(axes):
    return np.ma.filled(axes.images[0].get_array().astype(float), np.nan)


def test_four_panels_with_titles_labels_and_colour_bars(model):
    figure = plot_completion(model)
    titles = [axes.get_title() for axes in panels(figure)]
    assert len(figure.axes) == 8
    share = f"{model.interactions_.density:.0%}"
    assert titles[:2] == [f"Given: {share} of the ratings", "Completed"]
    assert [title.partition(":")[0] for title in titles[2:]] == ["Learned user graph", "Learned item graph"]
    labels = [(axes.get_xlabel(), axes.get_ylabel()) for axes in panels(figure)]
    assert labels == [("items", "users"), ("items", "users"), ("users", "users"), ("items", "items")]


def test_the_panels_show_the_model_sorted_by_community(model):
    given, completed, users, items = map(values, panels(plot_completion(model)))
    rows, columns = (
        np.argsort(graph.communities().to_numpy(), kind="stable") for graph in (model.user_graph_, model.item_graph_)
    )
    np.testing.assert_array_equal(given, model.interactions_.to_dense()[np.ix_(rows, columns)])
    data = model.interactions_
    pairs = np.repeat(data.user_ids, data.n_items), np.tile(data.item_ids, data.n_users)
    np.testing.assert_allclose(completed, model.predict(*pairs).reshape(given.shape)[np.ix_(rows, columns)])
    np.testing.assert_array_equal(users, model.user_graph_.to_scipy().toarray()[np.ix_(rows, rows)])
    np.testing.assert_array_equal(items, model.item_graph_.to_scipy().toarray()[np.ix_(columns, columns)])


def test_given_and_completed_share_one_scale(model):
    first, second = (axes.images[0].norm for axes in panels(plot_completion(model))[:2])
    assert isinstance(first, Normalize)
    assert (first.vmin, first.vmax) == (second.vmin, second.vmax) == (1, 5)


def test_no_display_is_needed(model, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # would choose a display and keep the figure
    target = io.BytesIO()
    plot_completion(model).savefig(target, dpi=40)
    assert target.getvalue().startswith(b"\x89PNG")


def test_ratings_that_are_all_equal_can_be_drawn():
    ratings = np.where(np.eye(6) > 0, np.nan, 3.0)
    constant = AIR.for_completion(n_epochs=5, unobserved_weight=0.1, device="cpu", random_state=0).fit(ratings)
    plot_completion(constant).savefig(io.BytesIO(), dpi=40)


@pytest.mark.parametrize("make", [BiasModel, lambda: DMF(n_epochs=1, device="cpu")])
def test_a_model_without_graphs(make):
    plain = make().fit(np.arange(1.0, 13.0).reshape(3, 4))
    with pytest.raises(DataError, match=f"expected a model with both graphs, found a {type(plain).__name__} without"):
        plot_completion(plain)


def test_a_model_with_one_graph():
    half = AIR.for_completion(n_epochs=1, item_graph_reg=0.0, device="cpu").fit(np.arange(1.0, 13.0).reshape(3, 4))
    with pytest.raises(DataError, match="expected a model with both graphs"):
        plot_completion(half)


def test_a_model_too_large_to_be_drawn():
    with pytest.raises(DataError, match=r"expected at most 2,?000 users and items, found 2,?001 and 3"):
        plot_completion(
            AIR.for_ratings(n_factors=1, n_sweeps=1, device="cpu").fit(np.arange(6003).reshape(2001, 3) % 5)
        )
