"""Curves hold the course of training, singular values are those of the product, densities count every pair."""

import io
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from air_recsys import AIR, BiasModel, Interactions
from air_recsys.exceptions import DataError, NotFittedError, ParameterError
from air_recsys.report.plots import (
    SingularValues,
    plot_accuracy,
    plot_counts,
    plot_energy,
    plot_errors,
    plot_fit,
    plot_noise,
    plot_predictions,
    plot_ratings,
    plot_reliability,
    plot_singular_values,
    plot_training,
    plot_validation,
    product_singular_values,
)

SHORT = {
    "exact_epochs": 0,
    "device": "cpu",
    "random_state": 0,
    "init_std": 0.1,
    "learning_rate": 0.01,
    "evaluate_every": 10,
}


def ratings():
    matrix = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((4, 6)))
    matrix[np.random.default_rng(0).random(matrix.shape) < 0.2] = np.nan
    return matrix


@pytest.fixture(scope="module")
def model():
    return AIR.for_completion(n_epochs=80, validation_fraction=0.2, **SHORT).fit(ratings())


@pytest.fixture(scope="module")
def watched():
    model = AIR.for_completion(n_epochs=50, **SHORT)
    values = SingularValues(model, every=2)
    model.fit(ratings(), callbacks=[values])
    return model, values


def line(axes, label):
    return next(one for one in axes.lines if one.get_label() == label)


@pytest.mark.parametrize(
    ("plot", "lines"),
    [
        (plot_fit, {"fit": "fit", "objective F": "objective"}),
        (plot_energy, {"user graph": "user_energy", "item graph": "item_energy"}),
        (plot_validation, {"validation": "validation_rmse"}),
    ],
)
def test_curves_hold_the_history(model, plot, lines):
    for source in (model, model.history_):
        axes = plot(source).axes[0]
        assert axes.get_yscale() == "log"
        for label, column in lines.items():
            np.testing.assert_array_equal(line(axes, label).get_xdata(), model.history_["epoch"])
            np.testing.assert_array_equal(line(axes, label).get_ydata(), model.history_[column])


def test_a_posterior_has_noise_and_no_objective():
    swept = AIR.for_ratings(n_sweeps=5, n_factors=2, validation_fraction=0.2, random_state=0, device="cpu").fit(
        ratings()
    )
    assert [axes.get_title() for axes in plot_training(swept).axes] == ["Noise", "Validation error"]
    axes = plot_noise(swept).axes[0]
    np.testing.assert_array_equal(line(axes, "noise").get_ydata(), swept.history_["noise"])
    assert axes.get_xlabel() == "sweep"
    for plot, columns in ((plot_fit, "objective or fit"), (plot_energy, "user_energy or item_energy")):
        with pytest.raises(DataError, match=f"expected values > 0 of {columns}"):
            plot(swept)


def test_the_epoch_that_was_kept_is_marked():
    noise = np.random.default_rng(0).random((8, 12))  # nothing to learn: the validation error rises in the end
    fitted = AIR.for_completion(n_epochs=200, validation_fraction=0.3, **SHORT).fit(noise)
    assert fitted.n_iter_ < fitted.history_["epoch"].iloc[-1]
    label = f"kept: epoch {fitted.n_iter_}"
    for axes in plot_training(fitted).axes:
        assert line(axes, label).get_xdata()[0] == fitted.n_iter_
    best = next(one for one in plot_validation(fitted).axes[0].lines if one.get_label().startswith("lowest"))
    assert best.get_xdata()[0] == fitted.n_iter_
    assert best.get_ydata()[0] == fitted.history_["validation_rmse"].min()
    finished = AIR.for_completion(n_epochs=20, **SHORT).fit(ratings())  # the last epoch needs no mark
    assert not any(one.get_label().startswith("kept") for one in plot_fit(finished).axes[0].lines)


def test_all_that_is_known_stands_side_by_side(model):
    titles = ["Fit to the ratings", "Energy of the learned graphs", "Validation error"]
    assert [axes.get_title() for axes in plot_training(model).axes] == titles
    plain = AIR.for_completion(n_epochs=10, user_graph_reg=0.0, item_graph_reg=0.0, **SHORT).fit(ratings())
    assert [axes.get_title() for axes in plot_training(plain).axes] == titles[:1]
    half = AIR.for_completion(n_epochs=10, item_graph_reg=0.0, **SHORT).fit(ratings())
    assert [one.get_label() for one in plot_energy(half).axes[0].lines] == ["user graph"]


def test_values_without_a_logarithm_leave_a_gap():
    history = pd.DataFrame({"epoch": [0, 1, 2], "fit": [1.0, 0.0, np.inf]})
    np.testing.assert_array_equal(plot_fit(history).axes[0].lines[0].get_ydata(), [1, np.nan, np.nan])


def test_models_without_what_is_asked_for(model):
    with pytest.raises(DataError, match=r"expected a course of training .*, found none in this BiasModel"):
        plot_training(BiasModel().fit(ratings()))
    with pytest.raises(NotFittedError, match="this AIR is not fitted yet"):
        plot_fit(AIR())
    without = AIR.for_completion(n_epochs=10, user_graph_reg=0.0, item_graph_reg=0.0, **SHORT).fit(ratings())
    with pytest.raises(DataError, match="values > 0 of user_energy or item_energy"):
        plot_energy(without)
    with pytest.raises(DataError, match="values > 0 of validation_rmse"):
        plot_validation(without)
    with pytest.raises(DataError, match="expected a column such as fit or user_energy"):
        plot_training(model.history_[["epoch", "seconds"]])


@settings(max_examples=30)
@given(m=st.integers(1, 12), n=st.integers(1, 12), r=st.integers(1, 15), seed=st.integers(0, 99))
def test_singular_values_of_the_product(m, n, r, seed):
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(m, r)), rng.normal(size=(n, r))
    found, expected = product_singular_values(left, right), np.linalg.svd(left @ right.T, compute_uv=False)
    assert found.size == min(m, n, r)
    np.testing.assert_allclose(found, expected[: found.size], atol=1e-9)
    np.testing.assert_allclose(expected[found.size :], 0, atol=1e-9)


def test_the_callback_keeps_every_second_record_and_ends_in_the_model(watched):
    model, values = watched
    assert values.epochs == [0, 20, 40]
    every = SingularValues(model.set_params(solver__n_epochs=50))
    model.fit(ratings(), callbacks=[every])
    assert every.epochs == [0, 10, 20, 30, 40, 50]
    frame = every.to_frame()
    assert frame.shape == (6, 8)
    product = model.user_factors_ @ model.item_factors_.T
    np.testing.assert_allclose(frame.loc[50], np.linalg.svd(product, compute_uv=False), rtol=1e-4, atol=1e-5)
    assert (np.diff(frame, axis=1) <= 0).all()
    model.fit(ratings(), callbacks=[every])
    assert every.epochs == [0, 10, 20, 30, 40, 50]  # a second fit begins anew


def test_singular_values_are_drawn_largest_first(watched):
    _, values = watched
    axes = plot_singular_values(values, n_values=3).axes[0]
    assert axes.get_title() == "Largest 3 singular values"
    for one, column in zip(axes.lines, values.to_frame(), strict=False):
        np.testing.assert_array_equal(one.get_ydata(), values.to_frame()[column])
    assert len(axes.lines) == 3
    with pytest.raises(DataError, match="was the callback given to fit"):
        plot_singular_values(SingularValues(AIR()))
    with pytest.raises(ParameterError, match="every must be an integer >= 1, found 0"):
        SingularValues(AIR(), every=0)
    with pytest.raises(ParameterError, match="n_values must be an integer >= 1"):
        plot_singular_values(watched[1], n_values=0)


def test_a_column_for_every_star_holds_the_shares_of_its_predictions():
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 6, 500).astype(float)
    axes = plot_predictions(truth, truth + rng.normal(0, 0.3, 500)).axes[0]
    assert [mesh.get_array().sum() for mesh in axes.collections] == pytest.approx([1] * 5)
    assert axes.get_xticks().tolist() == [1, 2, 3, 4, 5]
    np.testing.assert_allclose(line(axes, "median").get_ydata(), [1, 2, 3, 4, 5], atol=0.2)


def test_hexagons_count_every_pair_and_the_diagonal_is_where_both_are_equal():
    rng = np.random.default_rng(0)
    truth = rng.random(4000)
    axes = plot_predictions(truth, truth + 0.1).axes[0]
    assert axes.collections[0].get_array().sum() == 4000
    diagonal = line(axes, "predicted = true")
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    assert diagonal.get_xdata()[0] == truth.min()
    assert "RMSE 0.1" in axes.get_title()


def test_few_values_can_be_drawn_and_pairs_that_do_not_fit_are_refused():
    few = [([0, 1, 1, 0], [0.1, 0.9, 1.1, -0.2]), ([1, 1], [1, 1]), ([3], [2.5]), ([1, 2], [2, 2])]
    for truth, predicted in few:
        plot_predictions(truth, predicted).savefig(io.BytesIO(), dpi=40)
    with pytest.raises(DataError, match="same length, found 2 and 1"):
        plot_predictions([1, 2], [1])
    with pytest.raises(DataError, match="expected finite numbers"):
        plot_predictions([1.0, np.nan], [1, 2])


ROWS = [
    {"model": "AIR", "rmse": 0.8, "rmse low": 0.7, "rmse high": 1.0},
    {"model": "mean", "rmse": 1.2, "rmse low": 1.1, "rmse high": 1.3},
]
RELIABILITY = pd.DataFrame({"meant": [0.5, 0.9], "held": [0.4, 0.85], "low": [0.3, 0.8], "high": [0.5, 0.9]})
GROUPS = pd.DataFrame({"lowest": [0, 5], "highest": [4, 5], "rmse": [1.0, 0.5], "low": [0.8, 0.4], "high": [1.1, 0.7]})


def ends(axes):
    """Both ends of every bar, (bars, 2 ends, 2 coordinates)."""
    return np.concatenate([collection.get_segments() for collection in axes.collections])


def test_accuracy_reliability_and_errors_hold_the_numbers_of_their_tables():
    axes = plot_accuracy(ROWS, "rmse", "RMSE").axes[0]
    np.testing.assert_allclose(ends(axes)[:, :, 0], [[0.7, 1.0], [1.1, 1.3]])
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    assert axes.get_xlabel() == "RMSE"
    axes = plot_reliability(RELIABILITY).axes[0]
    np.testing.assert_allclose(ends(axes)[:, :, 1], RELIABILITY[["low", "high"]])
    assert axes.get_xlim() == axes.get_ylim()
    axes = plot_errors(GROUPS, "ratings").axes[0]
    np.testing.assert_allclose(ends(axes)[:, :, 1], GROUPS[["low", "high"]])
    assert axes.get_ylim()[0] == 0
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0 to 4", "5"]


@pytest.mark.parametrize(
    ("plot", "message"),
    [
        (lambda: plot_accuracy([], "rmse"), "at least one model"),
        (lambda: plot_accuracy(ROWS, "mae"), "and 'mae' of each"),
        (lambda: plot_reliability(RELIABILITY.drop(columns="held")), "one without held"),
        (lambda: plot_errors(GROUPS.head(0), "x"), "one without rows"),
    ],
)
def test_other_tables_are_refused(plot, message):
    with pytest.raises(DataError, match=message):
        plot()


@pytest.mark.parametrize("side", ["user", "item"])
def test_every_user_and_item_with_ratings_is_counted(side):
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((40, 30)) < np.linspace(0.02, 1, 40)[:, None], 3.0, np.nan)
    matrix[0] = matrix[:, 0] = np.nan
    data = Interactions.from_dense(matrix)
    axes = plot_counts(data, side).axes[0]
    index, size = (data.user_index, 40) if side == "user" else (data.item_index, 30)
    rated = np.unique(index).size
    assert sum(bar.get_height() for bar in axes.patches) == rated < size
    assert axes.get_title() == f"Ratings per {side} ({size - rated} without)"
    assert plot_counts(matrix, side).axes[0].get_title() == axes.get_title()  # whatever becomes interactions


def test_every_rating_is_counted():
    data = Interactions.from_dense(ratings())
    bars = plot_ratings(data).axes[0].patches
    assert [bar.get_height() for bar in bars] == np.unique(data.ratings, return_counts=True)[1].tolist()
    many = Interactions.from_dense(np.random.default_rng(0).random((20, 20)))
    assert sum(bar.get_height() for bar in plot_ratings(many).axes[0].patches) == 400
    with pytest.raises(ParameterError, match="side must be one of 'user', 'item', found 'row'"):
        plot_counts(data, "row")  # type: ignore[arg-type]


def test_the_axes_given_are_used_and_no_display_is_needed(model, watched, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # would choose a display and keep the figure
    of_model = [partial(plot, model) for plot in (plot_fit, plot_energy, plot_validation)]
    of_data = [partial(plot, model.interactions_) for plot in (plot_ratings, plot_counts)]
    pairs = partial(plot_predictions, [1, 2, 3], [1, 2, 2])
    for draw in (*of_model, *of_data, pairs, partial(plot_singular_values, watched[1])):
        figure = Figure()
        left, right = figure.subplots(1, 2)
        assert draw(ax=right) is figure
        assert all((right.get_title(), right.get_xlabel(), right.get_ylabel()))
        assert not left.has_data()
        target = io.BytesIO()
        draw().savefig(target, dpi=40)
        assert target.getvalue().startswith(b"\x89PNG")
