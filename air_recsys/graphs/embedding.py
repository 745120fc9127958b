r"""The embedding of a graph: vectors of unit length, one a node, that are the closer the better two are connected.

The leading eigenvectors v of the scaled adjacency :math:`S = D^{-1/2} A D^{-1/2}`, with eigenvalues :math:`\lambda`,
approximate a regularized Laplacian kernel:

.. math:: K_{ij} \approx \frac{f_i \cdot f_j}{|f_i|\,|f_j|},\qquad f_{ik} = v_{ik}\, (1 - 0.97 \lambda_k)^{-1/2}.

What all nodes have in common tells none apart: the mean of the unit vectors is taken off, and the rest has unit length
again. Nodes without edges are in the mean, so a few that are joined among many that are not stay close.

Sources: Smola, Kondor, Kernels and regularization on graphs, COLT 2003; Ng, Jordan, Weiss, On spectral clustering,
NIPS 2001 (unit length); Halko, Martinsson, Tropp, Finding structure with randomness, SIAM Review 53, 2011.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from air_recsys.graphs.cooccurrence import scaled_adjacency

_SMOOTH = 0.97
_PASSES, _OVERSAMPLED = 30, 20  # no single eigenvector has to be exact: in many components they are not even unique
_SEED = 0


def graph_embedding(adjacency: sp.csr_array, n_dims: int) -> np.ndarray:
    """The embedding of the nodes of a symmetric graph, shape (n, d), float32; zeros for nodes without edges.

    d is `n_dims`, or the number of nodes with edges where that is smaller.
    """
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    joined = np.flatnonzero(degrees > 0)
    found = np.zeros((degrees.size, min(n_dims, joined.size)), np.float32)
    if not joined.size:
        return found
    values, vectors = _leading(scaled_adjacency(adjacency[joined][:, joined]), found.shape[1])
    units = of_unit_length(vectors * (1 - _SMOOTH * values) ** -0.5)
    found[joined] = of_unit_length(units - units.sum(axis=0) / degrees.size)
    return found


def _leading(scaled: sp.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """About the k largest eigenvalues, descending, and their vectors, by subspace iteration."""
    assert scaled.shape is not None  # SciPy types it as optional
    n = scaled.shape[0]
    basis = np.random.default_rng(_SEED).standard_normal((n, min(k + _OVERSAMPLED, n)))
    for _ in range(_PASSES):
        basis = np.linalg.qr(scaled @ basis + basis)[0]  # of S + 1, whose eigenvalues are at least 0
    values, rotation = np.linalg.eigh(basis.T @ (scaled @ basis))
    return values[::-1][:k], basis @ rotation[:, ::-1][:, :k]


def of_unit_length(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1, and those that rounding alone tells from 0 as 0."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 1e-6)
