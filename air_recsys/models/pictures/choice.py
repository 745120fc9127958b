"""Choice of the model that completes a picture by the size of its holes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from air_recsys.models import AIR, PNMC, PatchAIR, Recommender
from air_recsys.models.solvers import Adam

MODELS: dict[str, Callable[[], Recommender]] = {
    "patches": PatchAIR,
    "rows": lambda: AIR(solver=Adam(learning_rate=3e-3, init_mean=0.0, init_std=0.03, n_epochs=4000, tv_reg=0.03)),
    "pnmc": PNMC,
}
"""Models by name: AIR on overlapping patches, AIR on rows and columns with total variation, and PNMC."""


def model_for(observed: np.ndarray) -> Recommender:
    """`PatchAIR` where every patch has an observed pixel, else AIR on rows and columns with total variation.

    Parameters
    ----------
    observed : ndarray of bool, shape (height, width)

    Examples
    --------
    >>> observed = np.ones((40, 40), dtype=bool)
    >>> observed[5, 5:30] = False
    >>> type(model_for(observed)).__name__
    'PatchAIR'
    >>> observed[5:20, 5:30] = False
    >>> type(model_for(observed)).__name__
    'AIR'

    Source: the validation errors in docs/table1.md.
    """
    side = PatchAIR().patch
    if min(observed.shape) < side:
        return MODELS["rows"]()
    seen = sliding_window_view(observed, (side, side)).any(axis=(2, 3))
    return MODELS["patches" if seen.all() else "rows"]()
