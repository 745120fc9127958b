"""Steps of a training to look at its graphs: close together at first, where most changes, then further apart."""

from __future__ import annotations

import numpy as np

_FIRST = 0.01  # of the training: before that the graphs hardly move


def spread_steps(n_steps: int, count: int) -> tuple[int, ...]:
    """Return 0 and fewer than `count` further steps before the last one, in a geometric sequence.

    Parameters
    ----------
    n_steps : int
        Of the training, >= 1.
    count : int
        At least 1.

    Examples
    --------
    >>> spread_steps(10_000, 5)
    (0, 100, 316, 1000, 3162)
    >>> spread_steps(3, 100)
    (0, 1, 2)
    """
    steps = np.geomspace(max(1.0, _FIRST * n_steps), n_steps, count)[:-1]
    return 0, *(step for step in np.unique(np.round(steps).astype(int)).tolist() if step < n_steps)
