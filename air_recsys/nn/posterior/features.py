"""Features of rows and columns from the pattern of observed entries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

_POWER = 1 / 3  # of the degrees; 1/2 gives rare rows and columns too much weight, see docs/accuracy.md
_PASSES = 6
_OVERSAMPLED = 10


def pattern_features(
    observed: sp.csr_array, n_features: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return features of the rows, (m, k), and of the columns, (n, k), from the 0/1 pattern B of stored entries.

    They are the leading singular vectors of :math:`D_r^{-1/3} B D_c^{-1/3}`, D the degrees, times their squared
    singular values, so that the prior relies on the leading ones; the logarithm of the degree; and a constant, the
    last column. At most min(m, n) - 1 of `n_features` singular vectors are taken; 0 leaves out the degrees too.

    Examples
    --------
    >>> rows, columns = pattern_features(sp.csr_array(np.eye(4)), 2, np.random.default_rng(0))
    >>> rows.shape, columns.shape
    ((4, 4), (4, 4))
    """
    shape = observed.shape
    assert shape is not None  # SciPy types it as optional
    if n_features == 0:
        return np.ones((shape[0], 1)), np.ones((shape[1], 1))
    pattern, degrees = _pattern(observed), _degrees(observed)
    scaled = sp.diags_array(degrees[0] ** -_POWER) @ pattern @ sp.diags_array(degrees[1] ** -_POWER)
    sides = _singular(scaled.tocsr(), min(n_features, min(shape) - 1), rng)
    return _features(sides[0], degrees[0]), _features(sides[1], degrees[1])


class Projection(NamedTuple):
    """The map from the pattern of new rows to their features, with those of the columns fixed."""

    basis: np.ndarray  # (n, k), the contribution of each column to the features of singular vectors
    logarithm: np.ndarray  # (), mean of the trained rows' logarithms of degrees

    def __call__(self, observed: sp.csr_array) -> np.ndarray:
        """Return the features of rows (m, n), (m, k + 2); a trained row gets its own."""
        degrees = _degrees(observed)[0]
        vectors = degrees[:, None] ** -_POWER * (_pattern(observed) @ self.basis)
        return np.column_stack([vectors, np.log(degrees) - self.logarithm, np.ones(len(degrees))])


def projection(observed: sp.csr_array, rows: np.ndarray, columns: np.ndarray) -> Projection:
    """Return how features of rows follow from the pattern, given the `pattern_features` of both sides.

    For singular vectors, A V = U S: the product of the scaled pattern with the columns' features is that of the rows
    up to a factor for each. The transpose of `observed` exchanges both sides.
    """
    of_rows, of_columns = _degrees(observed)
    inputs = of_columns[:, None] ** -_POWER * columns[:, :-2]
    products = of_rows[:, None] ** -_POWER * (_pattern(observed) @ inputs)
    sizes = np.maximum((products**2).sum(axis=0), np.finfo(np.float64).tiny)
    gains = (products * rows[:, :-2]).sum(axis=0) / sizes
    return Projection(inputs * gains, np.log(of_rows).mean())


def _pattern(observed: sp.csr_array) -> sp.csr_array:
    return sp.csr_array((np.ones(observed.nnz), observed.indices, observed.indptr), shape=observed.shape)


def _degrees(observed: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    pattern = _pattern(observed)
    return np.maximum(pattern.sum(axis=1), 1.0), np.maximum(pattern.sum(axis=0), 1.0)


def _singular(matrix: sp.csr_array, k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return U S^2 and V S^2 of the k largest singular values S, by subspace iteration."""
    assert matrix.shape is not None
    right = rng.standard_normal((matrix.shape[1], min(k + _OVERSAMPLED, min(matrix.shape))))
    for _ in range(_PASSES):
        left = np.linalg.qr(matrix @ right)[0]
        right = np.linalg.qr(matrix.T @ left)[0]
    left, values, rotation = np.linalg.svd(matrix @ right, full_matrices=False)
    return left[:, :k] * values[:k] ** 2, (right @ rotation.T)[:, :k] * values[:k] ** 2


def _features(vectors: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    size = vectors.std(axis=0).mean() if vectors.size else 1.0
    logarithms = np.log(degrees)
    constant = np.ones(len(degrees))
    return np.column_stack([vectors / max(size, 1e-12), logarithms - logarithms.mean(), constant])
