"""`AIRImputer`: scikit-learn's own checks of estimators, what is filled with what, and inside its tools."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from host_cases import fails
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from air_recsys import SimilarityGraph
from air_recsys.adapters.sklearn import AIRImputer
from air_recsys.exceptions import DataError, DataWarning, ParameterError

NAN = np.nan
N_SAMPLES, N_FEATURES = 30, 6
NAMES = [f"feature {letter}" for letter in "uvwxyz"]


def imputer(**parameters) -> Any:
    return AIRImputer(**{"n_epochs": 60, "device": "cpu", "random_state": 0} | parameters)


def gappy(seed=0, share=0.2, shape=(N_SAMPLES, N_FEATURES)):
    """A table of rank two in very different units, with gaps; no row and no column is empty."""
    rng = np.random.default_rng(seed)
    whole = rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1])) * 10.0 ** np.arange(shape[1]) + 7
    gaps = rng.random(shape) < share
    gaps[np.arange(shape[0]), np.arange(shape[0]) % shape[1]] = False
    return np.where(gaps, NAN, whole)


def frame(**kwargs):
    return pd.DataFrame(gappy(), columns=NAMES, **kwargs)


def hidden(load, share, seed):
    """A standardised table of scikit-learn, the same with gaps, and where they are."""
    whole = StandardScaler().fit_transform(load().data)
    gaps = np.random.default_rng(seed).random(whole.shape) < share
    return whole, np.where(gaps, NAN, whole), gaps


def rmse(filled, whole, gaps):
    return np.sqrt(np.mean((filled - whole)[gaps] ** 2))


FORMS = [
    AIRImputer(n_epochs=20, device="cpu"),
    AIRImputer(n_epochs=20, device="cpu", sample_graph_reg=1.0, add_indicator=True),
    AIRImputer(n_epochs=20, device="cpu", n_factors=2, depth=3, keep_empty_features=True, feature_graph_reg=0.0),
]


@parametrize_with_checks(FORMS)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("load", "share"), [(load_diabetes, 0.2), (load_wine, 0.5)])
def test_on_real_tables_the_error_is_below_that_of_means_and_of_near_neighbours(load, share):
    whole, table, gaps = hidden(load, share, seed=3)
    error = rmse(AIRImputer(device="cpu", random_state=0).fit_transform(table), whole, gaps)
    assert error < 0.95 * rmse(SimpleImputer().fit_transform(table), whole, gaps)
    assert error < 1.05 * rmse(KNNImputer().fit_transform(table), whole, gaps)


def test_gaps_alone_are_filled_in_training_rows_as_in_new_rows():
    table, fitted = gappy(), imputer(sample_graph_reg=1.0).fit(gappy())
    before, observed, filled = table.copy(), ~np.isnan(table), fitted.transform(table)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[observed], table[observed])
    np.testing.assert_array_equal(table, before)
    np.testing.assert_array_equal(imputer(sample_graph_reg=1.0).fit_transform(table), filled)
    np.testing.assert_allclose(fitted.transform(table[::-1]), filled[::-1], rtol=1e-12)
    for row in (0, 7):
        np.testing.assert_allclose(fitted.transform(table[[row]]), filled[[row]], rtol=1e-12)
    nothing = fitted.transform(np.full((2, N_FEATURES), NAN))
    np.testing.assert_allclose(nothing, np.tile(np.nanmean(table, axis=0), (2, 1)))


def test_a_row_is_estimated_from_what_it_shows_and_from_the_rows_of_training():
    """The definition in the docstring, solved by stacking the prior below the observed entries."""
    table = gappy()
    fitted = imputer(n_epochs=500, random_state=1).fit(table)
    model, scaler, shown = fitted.model_, fitted.scaler_, ~np.isnan(table[4])
    factors, others = model.user_factors_.astype(float), model.item_factors_.astype(float)
    data, row = model.interactions_, scaler.transform(table[[4]])[0]
    noise = np.mean((factors @ others.T - data.to_dense())[~np.isnan(data.to_dense())] ** 2)
    second_moment = factors.T @ factors / N_SAMPLES
    prior = np.linalg.cholesky(np.linalg.inv(second_moment)).T * np.sqrt(noise)
    equations, right = np.vstack([others[shown], prior]), np.append(row[shown], np.zeros(len(prior)))
    estimate = scaler.inverse_transform([np.linalg.lstsq(equations, right)[0] @ others.T])[0]
    expected = np.where(shown, table[4], estimate.clip(np.nanmin(table, axis=0), np.nanmax(table, axis=0)))
    assert not shown.all()
    np.testing.assert_allclose(fitted.transform(table)[4] / scaler.scale_, expected / scaler.scale_, atol=1e-4)


def test_no_estimate_leaves_the_range_of_its_feature():
    x = np.arange(20.0)
    fitted = imputer(weight_decay=0.001, n_epochs=1000).fit(np.column_stack([x, 2 * x, 3 * x]))
    filled = fitted.transform([[12.0, 24.0, NAN], [400.0, NAN, 1200.0]])
    np.testing.assert_allclose(filled, [[12.0, 24.0, 36.0], [400.0, 38.0, 1200.0]], rtol=0.02)


def test_the_unit_of_a_feature_does_not_matter():
    table, unit, origin = gappy(), np.array([1e-3, 5, 1, 100, 1e6, 2]), np.array([0, 1, -5, 0, 1e3, 9])
    np.testing.assert_allclose(
        (imputer().fit_transform(table * unit + origin) - origin) / unit, imputer().fit_transform(table), rtol=1e-3
    )


def test_features_that_do_not_vary_are_filled_with_their_value():
    table = gappy()
    table[:, 2] = 0.1
    table[::3, 2] = NAN
    np.testing.assert_array_equal(imputer().fit_transform(table)[:, 2], 0.1)
    constant = np.full((4, 3), 2.5)
    constant[1, 1] = NAN
    np.testing.assert_array_equal(imputer().fit_transform(constant), np.full((4, 3), 2.5))


def test_a_single_row_and_a_single_feature_are_filled():
    row = imputer().fit([[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(row.transform([[NAN, 5.0, NAN]]), [[1.0, 5.0, 3.0]])
    column = imputer().fit_transform([[1.0], [NAN], [4.0], [4.0]])
    np.testing.assert_allclose(column, [[1.0], [3.0], [4.0], [4.0]], atol=1e-6)
    two = imputer().fit_transform([[1.0, NAN], [NAN, 2.0]])
    np.testing.assert_allclose(two, [[1.0, 2.0], [1.0, 2.0]], atol=1e-6)


def test_a_feature_without_entries_is_dropped_or_kept_as_zero():
    table = gappy()
    table[:, 1] = NAN
    others = [0, 2, 3, 4, 5]
    with pytest.warns(DataWarning, match=r"1 feature\(s\) without any observed value are left out"):
        dropping = imputer().fit(table)
    keeping = imputer(keep_empty_features=True).fit(table)
    expected = imputer().fit_transform(table[:, others])
    np.testing.assert_array_equal(dropping.transform(table), expected)
    np.testing.assert_array_equal(keeping.transform(table)[:, others], expected)
    np.testing.assert_array_equal(keeping.transform(table)[:, 1], np.zeros(N_SAMPLES))
    table[3, 1] = 8.0
    assert keeping.transform(table)[3, 1] == 8.0
    assert dropping.get_feature_names_out().tolist() == [f"x{column}" for column in others]
    assert keeping.get_feature_names_out().tolist() == [f"x{column}" for column in range(N_FEATURES)]


def test_a_mask_is_a_gap():
    table = gappy()
    masked = np.ma.masked_array(np.nan_to_num(table, nan=1e6), np.isnan(table))
    np.testing.assert_array_equal(imputer().fit_transform(masked), imputer().fit_transform(table))


def test_the_indicator_is_that_of_the_other_imputers():
    table = frame()
    table["feature v"] = 1.0
    ours, theirs = imputer(add_indicator=True).fit(table), KNNImputer(add_indicator=True).fit(table)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    expected: Any = theirs.transform(table)
    flags = ours.transform(table)[:, N_FEATURES:]
    np.testing.assert_array_equal(flags, expected[:, N_FEATURES:])
    assert flags.sum() == table.isna().to_numpy().sum()


def test_the_graphs_name_features_and_rows():
    fitted = imputer(sample_graph_reg=1.0).fit(frame())
    features, samples = fitted.feature_graph_, fitted.sample_graph_
    assert isinstance(features, SimilarityGraph)
    assert isinstance(samples, SimilarityGraph)
    assert (features.kind, features.ids.tolist()) == ("feature", NAMES)
    assert (samples.kind, samples.ids.tolist()) == ("sample", list(range(N_SAMPLES)))
    assert features.n_edges > 0
    without = imputer(feature_graph_reg=0.0).fit(frame())
    assert without.feature_graph_ is None
    assert without.sample_graph_ is None


@pytest.mark.parametrize("feature_graph_reg", [0.0, 0.1])
def test_the_strengths_mean_the_same_at_every_size(feature_graph_reg):
    """The same rows four times teach what they teach once."""
    table, once = gappy(), imputer(n_epochs=2000, feature_graph_reg=feature_graph_reg)
    unit = np.nanstd(table, axis=0)
    filled = once.fit_transform(table) / unit
    repeated = once.fit_transform(np.tile(table, (4, 1))) / unit
    np.testing.assert_allclose(repeated, np.tile(filled, (4, 1)), atol=0.02)
    other = once.set_params(weight_decay=0.2).fit_transform(table) / unit
    assert np.abs(other - filled).max() > 0.05


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.full((3, 2), NAN), "expected at least one observed entry, found none in a table of shape (3, 2)"),
        ([[1.0, np.inf]], "Input X contains infinity"),
        (pd.DataFrame({"a": [1.0, 2.0], "c": pd.date_range("2020", periods=2)}), "found dates or times"),
        ([["a", "b"]], "could not convert string to float"),
    ],
)
def test_unusable_tables_are_refused(table, message):
    with fails(ValueError, message):
        imputer().fit(table)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weight_decay": -1}, "weight_decay must be a number >= 0, found -1"),
        ({"feature_graph_reg": "auto"}, "feature_graph_reg must be a number >= 0, found 'auto'"),
        ({"add_indicator": "yes"}, "add_indicator must be one of True, False, found 'yes'"),
        ({"n_factors": 0}, "n_factors must be 'auto', None or an integer >= 1, found 0"),
    ],
)
def test_bad_parameters_are_refused_at_fit_and_leave_the_imputer_as_it_was(parameters, message):
    fitted = imputer(n_epochs=5).fit(gappy())
    expected = fitted.transform(gappy())
    with fails(ParameterError, message):
        fitted.set_params(**parameters).fit(gappy(seed=1))
    np.testing.assert_array_equal(fitted.transform(gappy()), expected)


def test_in_a_pipeline_and_a_grid_search():
    data: Any = load_wine()
    table, labels = hidden(load_wine, 0.3, seed=0)[1], data.target
    pipeline = make_pipeline(imputer(), LogisticRegression())
    grid = {"airimputer__weight_decay": [0.02, 50.0], "airimputer__n_factors": [2, None]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(table, labels)
    assert len(search.cv_results_["mean_test_score"]) == 4
    assert search.best_score_ > 0.85
    assert search.predict(table[:5]).shape == (5,)


def test_clone_and_refit():
    fitted = imputer(sample_graph_reg=1.0).fit(gappy(seed=1))
    fresh: Any = clone(fitted)
    assert not hasattr(fresh, "model_")
    assert fresh.get_params() == fitted.get_params()
    np.testing.assert_array_equal(fitted.fit_transform(gappy()), fresh.fit_transform(gappy()))
    assert fitted.n_iter_ == 60
    assert not np.array_equal(fitted.set_params(random_state=1).fit_transform(gappy()), fresh.transform(gappy()))


def test_text_is_refused_in_words_of_the_library():
    for table in (pd.DataFrame({"a": [1.0, 2.0], "c": ["red", "blue"]}), np.array([[1, "red"], [2, None]], object)):
        with pytest.raises(DataError, match=r"expected numbers or NaN in each column, found text .*'red'"):
            AIRImputer().fit(table)
