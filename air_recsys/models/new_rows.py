"""New rows of users and items: their ratings, what is known of them, and the rules that they keep."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.described.sides import as_given, ids_of
from air_recsys.data.features import Features, as_table
from air_recsys.data.frames import as_pandas
from air_recsys.data.ids import IdIndex
from air_recsys.data.interactions import Interactions, Kinds
from air_recsys.data.scales import outside_of, told_of_new
from air_recsys.exceptions import DataError, DataWarning, UnknownIdError, quoted
from air_recsys.models.given import later_of, with_later
from air_recsys.models.rows import SIDES, Folded, Side, other_side
from air_recsys.models.state import FittedState
from air_recsys.storage.reading import checked_sparse


def new_rows(
    state: FittedState,
    ratings: Any,
    side: Side,
    *,
    read: Callable[[pd.DataFrame], Interactions],
    weights: np.ndarray | None = None,
    features: Any = None,
    similarity: Any = None,
    zeros_count: bool = True,
) -> Interactions:
    """Ratings, features and descriptions of new rows of a side alone, over the known other side.

    `read` takes tables; `zeros_count` says whether the zeros that a matrix stores are ratings.
    """
    ratings, features, others = as_pandas(ratings), as_pandas(features), state.index(other_side(side))
    if isinstance(ratings, pd.DataFrame):
        ratings = read(ratings)
    has_ids = isinstance(ratings, Interactions) or (ratings is None and isinstance(features, pd.DataFrame))
    has_ids = has_ids or similarity is not None
    if isinstance(ratings, Interactions):
        data = _of_interactions(ratings, weights, side, others)
    elif ratings is not None:
        data = _of_matrix(ratings, weights, side, others, zeros_count=zeros_count)
    elif features is not None or similarity is not None:
        n_rows = 0 if has_ids or features is None else len(features)
        data = _of_pairs(IdIndex(range(n_rows), side), others, _NONE, _NONE, _NONE)
    else:
        raise DataError("expected ratings of new rows, their features or similarities, found none")
    if data.kinds is not None:
        check_names(state.data.kinds, data.kinds)
    known = {each: state.features(each) for each in SIDES}
    if features is not None:
        checked_features(known[side], side)
    if (trained := known[side]) is not None:
        own = data.users if side == "user" else data.items
        whole, known[side] = _with_features(own, trained, features, has_ids=has_ids)
        setattr(data, f"{side}s", whole)
    if similarity is not None:
        index, found = _with_later(state, data, side, known[side], similarity)
        setattr(data, f"{side}s", index)
        known[side] = found
    data.user_features, data.item_features = known.values()
    return data


_NONE = np.empty(0, np.int64)


def _with_later(
    state: FittedState, data: Interactions, side: Side, features: Features | None, given: Any
) -> tuple[IdIndex, Features]:
    """New rows, those that are described alone included, and what is known of them."""
    own, trained = data.users if side == "user" else data.items, state.features(side)
    own = own.joined(ids_of(as_given(side, given)))
    later = later_of(trained, state.index(side), own.ids, given, stacklevel=5)
    assert trained is not None
    assert features is not None
    n = len(state.index(side))
    placed = with_later(trained, later, len(own)).of_rows(np.arange(n, n + len(own)))
    return own, replace(placed, values=features.grown(len(own)).values, described=later, similarity=None)


def _of_interactions(new: Interactions, weights: np.ndarray | None, side: Side, others: IdIndex) -> Interactions:
    if weights is not None:
        raise DataError("expected the weights as part of the Interactions, found separate ones")
    if any(new.n_features):
        raise DataError("expected features as tables beside the new ratings, found interactions that have some")
    own, given, index, other_index = new.users, new.items, new.user_index, new.item_index
    if side == "item":
        own, given, index, other_index = given, own, other_index, index
    places = others.lookup(given.ids)
    if (places < 0).any():
        raise UnknownIdError(others.kind, given.ids[places < 0].tolist(), "partial_fit takes new ones in")
    kept = {"weights": new.weights, "timestamps": new.timestamps, "relations": new.relations}
    found = _of_pairs(own, others, index, places[other_index], new.ratings, **kept)
    found.kinds = new.kinds and new.kinds.each(lambda each: _of_interactions(each, None, side, others))
    return found


def _of_matrix(
    ratings: Any, weights: np.ndarray | None, side: Side, others: IdIndex, *, zeros_count: bool
) -> Interactions:
    if not sp.issparse(ratings):
        raise DataError(f"expected Interactions, a DataFrame or a SciPy sparse matrix, found {type(ratings).__name__}")
    if weights is not None and ratings.format != "csr":
        raise DataError(f"expected a CSR matrix, whose order the weights have, found the format {ratings.format}")
    if ratings.ndim != 2 or ratings.shape[1] != len(others):
        raise DataError(f"expected {len(others)} columns, one per known {others.kind}, found shape {ratings.shape}")
    rows = checked_sparse("ratings", ratings).tocoo()
    own, kept = IdIndex(range(rows.shape[0]), side), slice(None) if zeros_count else rows.data != 0
    return _of_pairs(own, others, rows.row[kept], rows.col[kept], rows.data[kept], weights=weights)


def _of_pairs(own: IdIndex, others: IdIndex, index: Any, places: Any, ratings: Any, **kept: Any) -> Interactions:
    by_user = own.kind == "user"
    pairs, sides = ((index, places), (own, others)) if by_user else ((places, index), (others, own))
    return Interactions(*pairs, ratings, *sides, allow_negative=True, empty=True, **kept)


def _with_features(own: IdIndex, trained: Features, given: Any, *, has_ids: bool) -> tuple[IdIndex, Features]:
    """New rows, those of a table by id included, and what is known of them."""
    values = np.zeros((len(own), len(trained.names)), np.float32)
    if given is None:
        return own, Features(trained.encoding, values)
    numbered = not has_ids and not isinstance(given, pd.DataFrame)
    table = as_table(given, own.kind, np.arange(len(own)) if numbered else own.ids if has_ids else _NONE)
    found = trained.encoding.encode_new(table, own.kind)
    if has_ids:
        own = own.joined(table.index.to_numpy())
        values = np.zeros((len(own), values.shape[1]), np.float32)
        values[own.lookup(table.index.to_numpy())] = found
        return own, Features(trained.encoding, values)
    if len(found) != len(own):
        raise DataError(f"expected features of {len(own)} rows, as many as ratings, found {len(found)}")
    return own, Features(trained.encoding, found)


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


def check_on_scale(state: FittedState, ratings: np.ndarray) -> None:
    """Raise `DataError` for ratings that the training data could not hold.

    These are ratings outside of the scale that was stated, else of what `fit` saw, smallest to largest. Where all that
    it saw are equal there is no scale, and only negative ones are refused. What may be likes is told.
    """
    low, high = state.rating_scale
    if low < high:
        outside = ratings[outside_of(ratings, (low, high))]
        if outside.size:
            raise DataError(
                f"expected ratings in {low:g}..{high:g} (the scale of the training data), found {outside[0]:g}; "
                "clip them to rating_scale_, or fit again with rating_scale=(low, high)"
            )
        if told := told_of_new(ratings, state.data.ratings):
            warnings.warn(told, DataWarning, stacklevel=4)
    check_signs(state, ratings)


def check_signs(state: FittedState, ratings: np.ndarray) -> None:
    """Raise `DataError` for negative ratings where the training data had none."""
    negative = ratings[ratings < 0]
    if negative.size and state.rating_scale[0] >= 0:
        raise DataError(f"ratings must be >= 0, as those of the training data are, found {negative[0]:g}")


def check_names(known: Kinds | None, new: Kinds) -> None:
    """Raise `DataError` for events of kinds that the training data had none of."""
    names = [] if known is None else [known.target, *known.beside]
    if other := [name for name in (new.target, *new.beside) if name not in names]:
        raise DataError(f"expected events of the kinds {quoted(names)}, as in the training, found {quoted(other)}")


def check_finite(folded: Folded) -> None:
    """Raise `DataError` where factors or biases left the finite numbers."""
    if not all(np.isfinite(array).all() for array in folded):
        raise DataError("expected ratings and weights near those of the training data, found too large ones")
