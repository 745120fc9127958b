"""What `clip` does to scores: the range of the ratings, and for 0/1 data the way to the nearer of both values."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

BINARY = "binary"
Clip = bool | str
"""False, True or "binary"."""

# Chosen on validation parts of IC and GPCR, see docs/presets.md.
_MEDIAN, _WIDTH = 0.33, 0.02


def is_binary(ratings: np.ndarray) -> bool:
    """Return whether ratings are 0 and 1, both of them and nothing else.

    Examples
    --------
    >>> is_binary(np.array([0.0, 1.0])), is_binary(np.array([1.0, 1.0])), is_binary(np.array([0.0, 0.5, 1.0]))
    (True, False, False)
    """
    return bool(((ratings == 0) | (ratings == 1)).all() and np.ptp(ratings) > 0)


def pushed(scores: np.ndarray) -> np.ndarray:
    r"""Return scores of 0/1 data pushed towards 0 and 1, in their order: :math:`1 / (1 + e^{-(s - c) / w})`.

    A regularized score is drawn to 0: from about c = 0.33 on a pair is a 1 more often than a 0. The value of the
    lowest expected absolute error is the conditional median, 0 below c and 1 above it. A step there would make ties;
    w = 0.02 keeps the order, so rankings and average precision stay. What comes out is neither a mean nor a
    probability.

    Examples
    --------
    >>> pushed(np.array([0.0, 0.31, 0.33, 0.35, 1.0])).round(2)
    array([0.  , 0.27, 0.5 , 0.73, 1.  ])
    """
    return expit((np.asarray(scores, dtype=np.float64) - _MEDIAN) / _WIDTH)


def limited(scores: np.ndarray, clip: Clip, scale: tuple[float, float], *, binary: bool) -> np.ndarray:
    """Return scores as `clip` says.

    Parameters
    ----------
    scores : ndarray
    clip : bool or "binary"
        False leaves scores as they are, True limits them to `scale`. "binary" pushes those of 0/1 data, see `pushed`,
        and limits others to `scale`, unless it is a single value.
    scale : tuple of float
        Smallest and largest rating.
    binary : bool
        Whether the ratings are 0 and 1, see `is_binary`.

    Examples
    --------
    >>> limited(np.array([-0.5, 0.7]), True, (0.0, 1.0), binary=True)
    array([0. , 0.7])
    >>> limited(np.array([-0.5, 0.7]), "binary", (0.0, 1.0), binary=True).round(3)
    array([0., 1.])
    """
    if clip == BINARY and binary:
        return pushed(scores)
    no_range = clip == BINARY and scale[0] == scale[1]
    return scores.clip(*scale) if clip and not no_range else scores
