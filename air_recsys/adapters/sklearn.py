"""scikit-learn: `AIRImputer`, which fills the gaps of a table by `AIR` with samples as users, features as items."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.impute import MissingIndicator
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, DataWarning
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import AIR
from air_recsys.models.engines.objective_rows import row_prior
from air_recsys.models.rows import LeastSquaresRows
from air_recsys.models.solvers import Adam
from air_recsys.storage.validation import RandomState, check_choice, check_real

# For the reasons see docs/adapters/sklearn.md; larger steps of the logits reduce the weights of the graphs.
_FIXED: dict[str, Any] = {"schedule": "cosine", "graph_rate": 0.1, "init_mean": 0.0, "init_std": 0.01, "scale": False}


@dataclass(kw_only=True, eq=False, repr=False)
class AIRImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Fill missing entries (NaN) of a table by a matrix factorization with learned graphs.

    Each feature is standardised by its observed entries, and `AIR` is trained on the table with samples as users and
    features as items. `transform` then finds the factors u of each row from its observed entries x, features O, with
    the features' factors V fixed:

    .. math:: \min_u \|u V_O^\top - x\|^2 + \sigma^2\,u S^{-1} u^\top

    where S is the second moment of the trained rows and sigma^2 the mean squared error of training. A gap gets
    u V^T in the feature's own unit, within the range of the feature's observed entries; observed entries are returned
    as they are. Rows of the training table and new rows are treated alike, and the result of a row does not depend on
    the other rows of the call.

    The strengths have the same meaning at every size of the table, so one value fits all folds of a cross-validation:
    with p entries, q of them observed, AIR has ``weight_decay * sqrt(p)`` and ``graph_reg * q / p**2``.

    Parameters
    ----------
    n_factors : int, optional
        Width of the factorization. None is full width, min(n_samples, n_features); then only weight decay decides the
        rank. Set it if both are in the hundreds: a step costs n_samples * n_features * n_factors.
    depth : int
        Number of factors L >= 2.
    weight_decay : float
        Strength of the squared factors, relative to the size of the table.
    feature_graph_reg, sample_graph_reg : float
        Strengths of the two energies, relative to the size of the table; 0 leaves that graph out.
    graph_neighbors : int, optional
        Edges per node of a learned graph; None weighs all pairs.
    n_epochs : int
        Optimiser steps, each over all observed entries.
    learning_rate : float
        Adam's step size at the start; it falls along a cosine.
    add_indicator : bool
        Append the columns of a `sklearn.impute.MissingIndicator`.
    keep_empty_features : bool
        Keep features without any observed entry at `fit`, their gaps filled with 0, instead of dropping them.
    device : str
        "cpu", "cuda", "cuda:1", ..., or "auto": the GPU where there is one.
    random_state : int, RandomState, Generator or None
        Seed of the start; the same seed gives the same result.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    model_ : AIR
        The model of the standardised table: rows by their number, features by their name.
    scaler_ : StandardScaler
        Mean and standard deviation of the observed entries of each feature that is kept.
    feature_graph_, sample_graph_ : SimilarityGraph or None
        The learned graphs of the features (by name) and of the rows of the training table (by number); None where the
        strength is 0 or the table has just one.
    indicator_ : MissingIndicator or None
        None without `add_indicator`.
    n_iter_ : int
        Optimiser steps taken.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if the training table had names.

    Raises
    ------
    DataError
        At `fit`, if no entry is observed.
    ParameterError
        At `fit`, for a parameter out of its range.
    ValueError, TypeError, sklearn.exceptions.NotFittedError
        As raised by scikit-learn's own validation: sparse or infinite input, other features than at `fit`, no `fit`.

    Notes
    -----
    A row without observed entries gets the means of the features. The sample graph is used only in training, because
    scikit-learn requires that ``fit_transform(X)`` equals ``fit(X).transform(X)``.

    Source of the model: Li, Sun, Wang, Wang, SIAM J. Imaging Sciences 15(4), 2022.

    Examples
    --------
    >>> x = np.arange(20.0)
    >>> table = np.column_stack([x, 10 * x, x - 3, 50 - x])
    >>> table[4, 1] = table[15, 0] = np.nan
    >>> imputer = AIRImputer(weight_decay=0.002, random_state=0, device="cpu").fit(table)  # hardly any noise
    >>> imputer.transform(table)[[4, 15]].round()
    array([[  4.,  42.,   1.,  46.],
           [ 15., 150.,  12.,  35.]])
    >>> imputer.transform([[8.0, np.nan, 5.0, np.nan]]).round()
    array([[ 8., 82.,  5., 42.]])
    """

    n_factors: int | None = None
    depth: int = 2
    weight_decay: float = 0.02
    feature_graph_reg: float = 0.01
    sample_graph_reg: float = 0.0
    graph_neighbors: int | None = 5
    n_epochs: int = 500
    learning_rate: float = 0.03
    add_indicator: bool = False
    keep_empty_features: bool = False
    device: str = "auto"
    random_state: RandomState = None
    verbose: bool = False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        assert tags.transformer_tags is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the observed entries of a table.

        Parameters
        ----------
        X : array_like or DataFrame, shape (n_samples, n_features)
            Numbers, with NaN (in a DataFrame also NA, in a masked array also a mask) for missing entries.
        y : object
            Ignored.
        """
        self._check_parameters()
        table = self._validated(X, reset=True)
        kept = ~np.isnan(table).all(axis=0)  # (n_features,)
        if not kept.any():
            raise DataError(f"expected at least one observed entry, found none in a table of shape {table.shape}")
        if not kept.all() and not self.keep_empty_features:
            found = f"{np.count_nonzero(~kept)} feature(s) without any observed value are left out"
            warnings.warn(f"{found}; keep_empty_features=True fills them with 0", DataWarning, stacklevel=2)
        scaler = StandardScaler().fit(table[:, kept])
        names: Any = super().get_feature_names_out()
        data = Interactions.from_csr(_observed(scaler, table[:, kept]), item_ids=names[kept], allow_negative=True)
        model = self._new_model(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # features that do not vary are filled with their means
            model.fit(data)
        self.indicator_ = MissingIndicator(error_on_new=False).fit(table) if self.add_indicator else None
        predicted = model.factors_.scores(data.user_index, data.item_index)
        prior = row_prior(model.user_factors_, data.ratings, predicted)
        self._solver = LeastSquaresRows(model.item_factors_, np.zeros(data.n_items), prior)
        self._range = np.nanmin(table[:, kept], axis=0), np.nanmax(table[:, kept], axis=0)
        self.model_, self.scaler_, self._kept, self.n_iter_ = model, scaler, kept, model.n_iter_
        self.feature_graph_ = _renamed(model.item_graph_, "feature")
        self.sample_graph_ = _renamed(model.user_graph_, "sample")
        return self

    def transform(self, X: Any) -> Any:
        """A table with its gaps filled.

        Parameters
        ----------
        X : array_like or DataFrame, shape (n_samples, n_features)
            Rows of the training table or new ones, with the same features.

        Returns
        -------
        ndarray or DataFrame, shape (n_samples, n_features_out)
            What `set_output` asks for; float32 for float32 input, else float64.
        """
        check_is_fitted(self, "model_")
        table = self._validated(X, reset=False)
        filled: Any = self._filled(table[:, self._kept])
        if self.keep_empty_features:
            whole = np.where(np.isnan(table), 0, table)
            whole[:, self._kept] = filled
            filled = whole
        if self.indicator_ is None:
            return filled
        flags: Any = self.indicator_.transform(table)
        return np.hstack([filled, flags])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns that `transform` returns, without features that have no entries.

        Parameters
        ----------
        input_features : array_like of str, optional
            Names of the features, where the training table had none.
        """
        check_is_fitted(self, "model_")
        names: Any = super().get_feature_names_out(input_features)
        kept = names if self.keep_empty_features else names[self._kept]
        if self.indicator_ is None:
            return kept
        flags: Any = self.indicator_.get_feature_names_out(names)
        return np.append(kept, flags)

    def _check_parameters(self) -> None:
        """Check the parameters that `AIR` does not have under the same name."""
        for name in ("weight_decay", "feature_graph_reg", "sample_graph_reg"):
            check_real(name, getattr(self, name))
        for name in ("add_indicator", "keep_empty_features"):
            check_choice(name, getattr(self, name), (True, False))

    def _validated(self, X: Any, *, reset: bool) -> np.ndarray:
        dtypes = [np.float64, np.float32]
        if np.ma.is_masked(X):
            X = np.ma.filled(X.astype(np.float64), np.nan)
        columns: Any = getattr(X, "dtypes", getattr(X, "dtype", ""))
        if {"m", "M"} & {getattr(dtype, "kind", "") for dtype in np.ravel(columns)}:
            mend = "leave such columns out, or make them numbers, as days since the first one"
            raise DataError(f"expected numbers or NaN in each column, found dates or times: {mend}")
        try:
            table: Any = validate_data(self, X, reset=reset, dtype=dtypes, ensure_all_finite="allow-nan")
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            mend = "leave such columns out, or encode them first, as by OrdinalEncoder"
            raise DataError(f"expected numbers or NaN in each column, found text ({error}): {mend}") from None
        return table

    def _new_model(self, data: Interactions) -> AIR:
        n_entries = data.n_users * data.n_items
        energy = data.n_ratings / n_entries**2
        solver = Adam(
            depth=self.depth,
            weight_decay=self.weight_decay * math.sqrt(n_entries),
            user_graph_reg=self.sample_graph_reg * energy,
            item_graph_reg=self.feature_graph_reg * energy,
            n_epochs=self.n_epochs,
            learning_rate=self.learning_rate,
            **_FIXED,
        )
        return AIR(
            n_factors=self.n_factors,
            graph_neighbors=self.graph_neighbors,
            solver=solver,
            device=self.device,
            random_state=self.random_state,
            verbose=self.verbose,
        )

    def _filled(self, table: np.ndarray) -> np.ndarray:
        """The kept features of a table with the gaps filled, (n, n_kept)."""
        missing = np.isnan(table)
        filled, rows = table.copy(), missing.any(axis=1)  # (n, n_kept), (n,)
        if rows.any():
            factors = self._solver.solve(_observed(self.scaler_, table[rows])).factors
            standardised = factors @ self.model_.item_factors_.T.astype(np.float64)
            estimates: Any = self.scaler_.inverse_transform(standardised)
            estimates = estimates.clip(*self._range)
            filled[missing] = estimates[missing[rows]]
        return filled


def _observed(scaler: StandardScaler, table: np.ndarray) -> sp.csr_array:
    """The observed entries of a table, standardised; those that become zero stay stored."""
    rows, columns = np.nonzero(~np.isnan(table))
    values: Any = scaler.transform(table)
    return sp.csr_array((values[rows, columns], (rows, columns)), shape=table.shape)


def _renamed(graph: SimilarityGraph | None, kind: str) -> SimilarityGraph | None:
    return None if graph is None else SimilarityGraph(graph.to_scipy(), graph.ids, kind, support=graph.support)
