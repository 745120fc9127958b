"""What a fitted `GraphRanker` scores with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.smoothings import RankerSettings, Term
from air_recsys.models.state import FittedState


class RankerState(NamedTuple):
    """A fitted `GraphRanker`, ready to score."""

    fitted: FittedState
    settings: RankerSettings
    sources: np.ndarray  # of the factors, (n_items, r)
    terms: Mapping[str, Term]  # that count, by name
    own: Csr  # how much each item of a user counts, (n_users, n_items)
