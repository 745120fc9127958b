"""EASE on the targets: every target from all others by a ridge regression with an empty diagonal."""

from __future__ import annotations

import numpy as np

from benchmarks.graphs.rivals import ease


def ease_scores(values: np.ndarray, decay: float = 10.0) -> np.ndarray:
    """Return the scores of all pairs; 0 for drugs without a known interaction.

    Source: Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019.

    Examples
    --------
    >>> ease_scores(np.array([[1.0, 1.0], [1.0, np.nan]]), decay=1.0).round(2).tolist()
    [[0.5, 0.33], [0.0, 0.33]]
    """
    pairs = np.nan_to_num(values)
    return pairs @ ease(pairs.T, decay).T
