"""New rows of users and items: their ratings, what is known of them, and the rules that they keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.columns import as_weights
from air_recsys.data.features import Features, as_table
from air_recsys.data.frames import as_pandas
from air_recsys.data.interactions import Interactions, as_interactions
from air_recsys.data.scales import outside_of
from air_recsys.exceptions import DataError, UnknownIdError
from air_recsys.models.rows import Folded, Side
from air_recsys.models.state import FittedState
from air_recsys.storage.reading import checked_sparse


def as_rows(
    data: Interactions, ratings: Any, weights: np.ndarray | None, side: str, hint: str = "leave them out"
) -> tuple[sp.csr_array, np.ndarray | None]:
    """New rows of a side as a CSR array over the other side's indices, and their weights."""
    ratings = as_pandas(ratings)
    if isinstance(ratings, pd.DataFrame):
        ratings = as_interactions(ratings, allow_negative=True, reads=("weight",))
    if isinstance(ratings, Interactions):
        if weights is not None:
            raise DataError("expected the weights as part of the Interactions, found separate ones")
        return _rows_of_interactions(data, ratings, side, hint)
    if not sp.issparse(ratings):
        raise DataError(f"expected Interactions, a DataFrame or a SciPy sparse matrix, found {type(ratings).__name__}")
    if weights is not None and ratings.format != "csr":
        raise DataError(f"expected a CSR matrix, whose order the weights have, found the format {ratings.format}")
    n_others = data.n_items if side == "user" else data.n_users
    if ratings.ndim != 2 or ratings.shape[1] != n_others:
        other = "item" if side == "user" else "user"
        raise DataError(f"expected {n_others} columns, one per known {other}, found shape {ratings.shape}")
    whole = checked_sparse("ratings", ratings)
    _check_pairs(whole.tocoo())
    rows = sp.csr_array(whole, dtype=np.float64)
    if not np.isfinite(rows.data).all():
        raise DataError("ratings must be finite, found NaN or infinite ones")
    return rows, None if weights is None else as_weights(weights, rows.nnz)


def _check_pairs(ratings: Any) -> None:
    """Raise `DataError` where a pair is rated twice."""
    place = np.sort(ratings.row.astype(np.int64) * ratings.shape[1] + ratings.col)
    if repeated := np.count_nonzero(place[1:] == place[:-1]):
        raise DataError(f"expected one rating per pair, found {repeated} duplicate(s)")


def _rows_of_interactions(
    data: Interactions, new: Interactions, side: str, hint: str
) -> tuple[sp.csr_array, np.ndarray | None]:
    own, others, trained = new.users, new.items, data.items
    index, other_index = new.user_index, new.item_index
    if side == "item":
        own, others, trained = new.items, new.users, data.users
        index, other_index = other_index, index
    places = trained.lookup(others.ids)
    if (places < 0).any():
        raise UnknownIdError(others.kind, others.ids[places < 0].tolist(), hint)
    return stored_rows((index, places[other_index]), new.ratings, new.weights, (len(own), len(trained)))


def stored_rows(
    pairs: tuple[np.ndarray, np.ndarray], ratings: np.ndarray, weights: np.ndarray | None, shape: tuple[int, int]
) -> tuple[sp.csr_array, np.ndarray | None]:
    """Ratings at (row, column) pairs as a CSR array, and their weights in its order."""
    rows = sp.csr_array((ratings, pairs), shape=shape)
    return rows, None if weights is None else sp.csr_array((weights, pairs), shape=shape).data


def checked_features(known: Features | None, kind: str) -> Features:
    """The features that a model was trained with; `DataError` where there are none."""
    if known is None or not known.names:
        raise DataError(f"expected no {kind} features, as the model was trained without them, found some")
    return known


def with_known_rows(state: FittedState, ratings: Any, side: Side, features: Any) -> tuple[Any, dict[str, Any]]:
    """The ratings of new rows, and what `RowSolver.solve` has to be told of their features."""
    if features is None:
        if ratings is None:
            raise DataError("expected ratings of new rows, or their features, found neither")
        return ratings, {}
    assert state.equations is not None
    own, ratings, features = checked_features(state.features(side), side), as_pandas(ratings), as_pandas(features)
    if isinstance(ratings, pd.DataFrame):
        ratings = as_interactions(ratings, allow_negative=True, reads=("weight",))
    if isinstance(ratings, Interactions):
        index = ratings.users if side == "user" else ratings.items
        known = Features.of(as_table(features, side, index.ids), own.encoding, index).values
        return ratings, state.equations.of_known(state, side, known)
    n_rows = len(features) if ratings is None else ratings.shape[0]
    ids = np.empty(0) if isinstance(features, pd.DataFrame) else np.arange(n_rows)  # a table may have any ids
    known = own.encoding.encode_new(as_table(features, side, ids), side)
    if len(known) != n_rows:
        raise DataError(f"expected features of {n_rows} rows, as many as ratings, found {len(known)}")
    n_others = state.data.n_items if side == "user" else state.data.n_users
    ratings = sp.csr_array((n_rows, n_others)) if ratings is None else ratings
    return ratings, state.equations.of_known(state, side, known)


def check_on_scale(state: FittedState, ratings: np.ndarray) -> None:
    """Raise `DataError` for ratings that the training data could not hold.

    These are ratings outside of the scale that was stated, else of what `fit` saw, smallest to largest. Where all that
    it saw are equal there is no scale, and only negative ones are refused.
    """
    low, high = state.rating_scale
    if low < high:
        outside = ratings[outside_of(ratings, (low, high))]
        if outside.size:
            raise DataError(
                f"expected ratings in {low:g}..{high:g} (the scale of the training data), found {outside[0]:g}; "
                "clip them to rating_scale_, or fit again with rating_scale=(low, high)"
            )
    check_signs(state, ratings)


def check_signs(state: FittedState, ratings: np.ndarray) -> None:
    """Raise `DataError` for negative ratings where the training data had none."""
    negative = ratings[ratings < 0]
    if negative.size and state.rating_scale[0] >= 0:
        raise DataError(f"ratings must be >= 0, as those of the training data are, found {negative[0]:g}")


def check_finite(folded: Folded) -> None:
    """Raise `DataError` where factors or biases left the finite numbers."""
    if not all(np.isfinite(array).all() for array in folded):
        raise DataError("expected ratings and weights near those of the training data, found too large ones")
