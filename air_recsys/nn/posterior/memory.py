"""How much memory the sweeps of a posterior hold, from the sizes alone; the logits of their graphs are not counted."""

from __future__ import annotations

from air_recsys.nn.memory import Sizes

_DOUBLE, _LONG = 8, 8
_DRAWS = 20
_SKETCH = 15  # columns of both sketches and of their random matrices, by the width


def posterior_bytes(sizes: Sizes, width: int, n_features: int, *, sample: bool = False) -> int:
    """Return what the sweeps hold at their peak: an estimate, meant to be a little too high.

    Parameters
    ----------
    sizes : Sizes
    width : int
        r, of the factors.
    n_features : int
    sample : bool
        Whether rows are drawn.

    Examples
    --------
    >>> posterior_bytes(Sizes(6040, 3706, 900_188), 20, 100) < 200e6
    True
    """
    m, n, nnz, size, _ = sizes
    d = width + 1
    # Equations, their sum with the prior and its factor on one side; triangles on the other; covariances on both.
    matrices = 4 * max(m, n) * d**2 + max(m, n) * d**2 // 2 + 2 * (m + n) * d**2
    kept = (m + n) * (_DRAWS * d + _SKETCH * width) if sample else 0
    features = 3 * (m + n) * (n_features + 12) * _DOUBLE
    places = 4 * max(m, n) * (n_features + d) * _DOUBLE
    return size * (matrices + kept) + features + places + nnz * (6 * size + 3 * _LONG)
