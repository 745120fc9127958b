"""What is known of new rows beside their ratings, in the features of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.features import Features, as_table
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError
from air_recsys.models.rows import Side
from air_recsys.models.state import FittedState


def checked_features(known: Features | None, kind: str) -> Features:
    """Return the features that a model was trained with; `DataError` where there are none."""
    if known is None or not known.names:
        raise DataError(f"expected no {kind} features, as the model was trained without them, found some")
    return known


def with_known_rows(state: FittedState, ratings: Any, side: Side, features: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """Return the ratings of new rows, and what `RowSolver.solve` has to be told of their features.

    Raises
    ------
    DataError
        For features that the model does not know, of another number of rows than the ratings, or none beside no
        ratings.
    """
    if features is None:
        if ratings is None:
            raise DataError("expected ratings of new rows, or their features, found neither")
        return ratings, {}
    own = checked_features(state.features(side), side)
    if isinstance(ratings, pd.DataFrame):
        ratings = Interactions.from_frame(ratings, allow_negative=True)
    if isinstance(ratings, Interactions):
        index = ratings.users if side == "user" else ratings.items
        return ratings, {"known": Features.of(as_table(features, side, index.ids), own.encoding, index).values}
    n_rows = len(features) if ratings is None else ratings.shape[0]
    ids = np.empty(0) if isinstance(features, pd.DataFrame) else np.arange(n_rows)  # a table may have any ids
    known = own.encoding.encode(as_table(features, side, ids), side)
    if len(known) != n_rows:
        raise DataError(f"expected features of {n_rows} rows, as many as ratings, found {len(known)}")
    n_others = state.data.n_items if side == "user" else state.data.n_users
    return sp.csr_array((n_rows, n_others)) if ratings is None else ratings, {"known": known}
