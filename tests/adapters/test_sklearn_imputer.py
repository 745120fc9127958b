"""`AIRImputer`: what is filled with what, in which containers, and inside scikit-learn's own tools."""

import pickle
import re
from io import BytesIO
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from air_recsys import SimilarityGraph
from air_recsys.adapters.sklearn import AIRImputer
from air_recsys.exceptions import DataError, ParameterError

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


def copy_of(estimator) -> Any:
    return clone(estimator)


def frame(**kwargs):
    return pd.DataFrame(gappy(), columns=NAMES, **kwargs)


def hidden(load, share, seed):
    """A standardised table of scikit-learn, the same with gaps, and where they are."""
    whole = StandardScaler().fit_transform(load().data)
    gaps = np.random.default_rng(seed).random(whole.shape) < share
    return whole, np.where(gaps, NAN, whole), gaps


def rmse(filled, whole, gaps):
    return np.sqrt(np.mean((filled - whole)[gaps] ** 2))


def fails(error, message):
    return pytest.raises(error, match=re.escape(message))


# -------------------------------------------------------------------- what is filled, and with what


def test_gaps_are_filled_and_observed_entries_stay_to_the_last_bit():
    table = gappy()
    before = table.copy()
    filled = imputer().fit_transform(table)
    assert np.isfinite(filled).all()
    observed = ~np.isnan(table)
    np.testing.assert_array_equal(filled[observed], table[observed])
    np.testing.assert_array_equal(table, before)


def test_a_table_of_low_rank_is_recovered_in_training_rows_and_in_new_ones():
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(260, 2)) @ rng.normal(size=(2, 12)) * 10.0 ** rng.integers(-3, 4, 12) + 5
    unit = whole.std(axis=0)
    gaps = rng.random(whole.shape) < 0.2
    table = np.where(gaps, NAN, whole)
    fitted = AIRImputer(weight_decay=0.002, device="cpu", random_state=0).fit(table[:200])
    for rows in (slice(0, 200), slice(200, 260)):
        filled = fitted.transform(table[rows])
        assert rmse(filled / unit, whole[rows] / unit, gaps[rows]) < 0.15  # means would have 1


@pytest.mark.parametrize("share", [0.2, 0.5])
@pytest.mark.parametrize("load", [load_diabetes, load_wine])
def test_on_real_tables_the_error_is_below_that_of_means_and_of_near_neighbours(load, share):
    whole, table, gaps = hidden(load, share, seed=3)
    error = rmse(AIRImputer(device="cpu", random_state=0).fit_transform(table), whole, gaps)
    assert error < 0.95 * rmse(SimpleImputer().fit_transform(table), whole, gaps)
    assert error < 1.05 * rmse(KNNImputer().fit_transform(table), whole, gaps)


def test_training_rows_and_new_rows_are_treated_alike():
    table, fitted = gappy(), imputer(sample_graph_reg=1.0).fit(gappy())
    filled = fitted.transform(table)
    np.testing.assert_array_equal(imputer(sample_graph_reg=1.0).fit_transform(table), filled)
    np.testing.assert_allclose(fitted.transform(table[::-1]), filled[::-1], rtol=1e-12)
    for row in (0, 7):
        np.testing.assert_allclose(fitted.transform(table[[row]]), filled[[row]], rtol=1e-12)


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


def test_a_row_with_nothing_observed_gets_the_means():
    table = gappy()
    filled = imputer().fit(table).transform(np.full((2, N_FEATURES), NAN))
    np.testing.assert_allclose(filled, np.tile(np.nanmean(table, axis=0), (2, 1)))


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


def test_a_table_without_gaps_comes_back_as_it_is():
    table = np.nan_to_num(gappy())
    fitted = imputer().fit(table)
    np.testing.assert_array_equal(fitted.transform(table), table)


def test_the_same_seed_fills_alike_and_another_seed_starts_elsewhere():
    first, second, third = (imputer(random_state=seed).fit_transform(gappy()) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, third)


# -------------------------------------------------------------------- empty features, indicator, graphs


def test_a_feature_without_entries_is_dropped_or_kept_as_zero():
    table = gappy()
    table[:, 1] = NAN
    others = [0, 2, 3, 4, 5]
    dropping, keeping = imputer().fit(table), imputer(keep_empty_features=True).fit(table)
    expected = imputer().fit_transform(table[:, others])
    np.testing.assert_array_equal(dropping.transform(table), expected)
    np.testing.assert_array_equal(keeping.transform(table)[:, others], expected)
    np.testing.assert_array_equal(keeping.transform(table)[:, 1], np.zeros(N_SAMPLES))
    table[3, 1] = 8.0
    assert keeping.transform(table)[3, 1] == 8.0
    assert dropping.get_feature_names_out().tolist() == [f"x{column}" for column in others]
    assert keeping.get_feature_names_out().tolist() == [f"x{column}" for column in range(N_FEATURES)]


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


def test_the_feature_graph_finds_the_copies_of_a_feature():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(4), 3)
    table = rng.normal(size=(200, 4))[:, groups] + 0.3 * rng.normal(size=(200, 12))
    table[rng.random(table.shape) < 0.3] = NAN
    graph = AIRImputer(device="cpu", random_state=0).fit(table).feature_graph_
    assert graph is not None
    nearest = graph.to_scipy().toarray().argsort(axis=1)[:, -2:]
    assert (groups[nearest] == groups[:, None]).mean() > 0.9


@pytest.mark.parametrize("feature_graph_reg", [0.0, 0.1])
def test_the_strengths_mean_the_same_at_every_size(feature_graph_reg):
    """The same rows four times teach what they teach once."""
    table, once = gappy(), imputer(n_epochs=3000, feature_graph_reg=feature_graph_reg)
    unit = np.nanstd(table, axis=0)
    filled = once.fit_transform(table) / unit
    repeated = once.fit_transform(np.tile(table, (4, 1))) / unit
    np.testing.assert_allclose(repeated, np.tile(filled, (4, 1)), atol=0.02)
    other = once.set_params(weight_decay=0.2).fit_transform(table) / unit
    assert np.abs(other - filled).max() > 0.05


def test_the_strength_of_a_graph_is_that_of_its_own_side():
    model = imputer(n_epochs=1, feature_graph_reg=1.0, sample_graph_reg=2.0).fit(gappy()).model_
    of_items, of_users = model.solver.item_graph_reg, model.solver.user_graph_reg
    assert of_items == pytest.approx(model.interactions_.n_ratings / (N_SAMPLES * N_FEATURES) ** 2)
    assert of_users == pytest.approx(2 * of_items)


# -------------------------------------------------------------------- containers


def test_a_frame_is_the_same_table_and_may_come_back_as_one():
    expected = imputer().fit_transform(gappy())
    np.testing.assert_array_equal(imputer().fit_transform(frame()), expected)
    table = frame(index=[f"row {row}" for row in range(N_SAMPLES)])
    filled = imputer().set_output(transform="pandas").fit_transform(table)
    assert isinstance(filled, pd.DataFrame)
    pd.testing.assert_frame_equal(filled, pd.DataFrame(expected, index=table.index, columns=NAMES))


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "object"])
def test_missing_values_of_pandas_are_gaps(dtype):
    table = np.round(gappy() * 100) / 100 if dtype == "Float64" else np.round(gappy())
    nullable = pd.DataFrame(table, columns=NAMES).astype(dtype)
    assert nullable.isna().to_numpy().any()
    np.testing.assert_array_equal(imputer().fit_transform(nullable), imputer().fit_transform(table))


def test_integers_become_float64_and_float32_stays():
    whole = np.nan_to_num(gappy()).astype(int)
    assert imputer().fit(gappy()).transform(whole).dtype == np.float64
    single = imputer().fit_transform(gappy().astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, imputer().fit_transform(gappy()), rtol=1e-2)


# -------------------------------------------------------------------- bad input


def test_unusable_tables_are_refused():
    with fails(DataError, "expected at least one observed entry, found none in a table of shape (3, 2)"):
        imputer().fit(np.full((3, 2), NAN))
    with pytest.raises(TypeError, match="Sparse data was passed"):
        imputer().fit(sp.csr_array(np.eye(3)))
    with fails(ValueError, "Input X contains infinity"):
        imputer().fit([[1.0, np.inf]])
    with fails(ValueError, "could not convert string to float"):
        imputer().fit([["a", "b"]])
    with pytest.raises(NotFittedError):
        imputer().transform(gappy())
    with pytest.raises(NotFittedError):
        imputer().get_feature_names_out()


def test_other_features_than_at_fit_are_refused():
    fitted = imputer().fit(frame())
    with fails(ValueError, "Feature names seen at fit time, yet now missing"):
        fitted.transform(frame()[NAMES[:5]])
    with fails(ValueError, "The feature names should match those that were passed during fit"):
        fitted.transform(frame()[NAMES[::-1]])
    with fails(ValueError, "X has 5 features, but AIRImputer is expecting 6 features as input"):
        imputer().fit(gappy()).transform(gappy()[:, :5])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weight_decay": -1}, "weight_decay must be a number >= 0, found -1"),
        ({"feature_graph_reg": "auto"}, "feature_graph_reg must be a number >= 0, found 'auto'"),
        ({"sample_graph_reg": NAN}, "sample_graph_reg must be a number >= 0, found nan"),
        ({"add_indicator": "yes"}, "add_indicator must be one of True, False, found 'yes'"),
        ({"keep_empty_features": 2}, "keep_empty_features must be one of True, False, found 2"),
        ({"n_factors": 0}, "n_factors must be 'auto', None or an integer >= 1, found 0"),
        ({"n_epochs": 0}, "n_epochs must be 'auto' or an integer >= 1, found 0"),
        ({"learning_rate": 0}, "learning_rate must be 'auto' or a number > 0, found 0"),
    ],
)
def test_bad_parameters_are_refused_at_fit_by_their_own_name(parameters, message):
    with fails(ParameterError, message):
        imputer(**parameters).fit(gappy())


def test_a_fit_that_fails_leaves_the_imputer_as_it_was():
    fitted = imputer().fit(gappy())
    expected = fitted.transform(gappy())
    with pytest.raises(ParameterError):
        fitted.set_params(n_epochs=0).fit(gappy(seed=1))
    np.testing.assert_array_equal(fitted.transform(gappy()), expected)


# -------------------------------------------------------------------- inside scikit-learn


def labelled():
    data: Any = load_wine()
    return hidden(load_wine, 0.3, seed=0)[1], data.target


def test_in_a_pipeline_and_a_cross_validation():
    table, labels = labelled()
    pipeline = make_pipeline(imputer(), StandardScaler(), LogisticRegression())
    assert cross_val_score(pipeline, table, labels, cv=3).mean() > 0.85


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_in_a_grid_search(n_jobs):
    table, labels = labelled()
    pipeline = make_pipeline(imputer(), LogisticRegression())
    grid = {"airimputer__weight_decay": [0.02, 50.0], "airimputer__n_factors": [2, None]}
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=n_jobs).fit(table, labels)
    assert len(search.cv_results_["mean_test_score"]) == 4
    assert search.best_score_ > 0.85
    assert search.predict(table[:5]).shape == (5,)


def test_in_a_column_transformer():
    table = frame()
    table["kind"] = "a"
    numbers = NAMES[:3]
    columns = ColumnTransformer([("air", imputer(), numbers), ("rest", SimpleImputer(), NAMES[3:])])
    filled: Any = columns.set_output(transform="pandas").fit_transform(table)
    np.testing.assert_array_equal(
        filled[[f"air__{name}" for name in numbers]], imputer().fit_transform(table[numbers])
    )


def test_clone_and_refit():
    fitted = imputer(sample_graph_reg=1.0).fit(gappy(seed=1))
    fresh = copy_of(fitted)
    assert not hasattr(fresh, "model_")
    assert fresh.get_params() == fitted.get_params()
    np.testing.assert_array_equal(fitted.fit_transform(gappy()), fresh.fit_transform(gappy()))
    assert fitted.n_iter_ == 60


def test_pickle_and_joblib_bring_back_the_same_imputer():
    fitted, file = imputer(add_indicator=True).fit(frame()), BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(file)):
        np.testing.assert_array_equal(copy.transform(frame()), fitted.transform(frame()))
