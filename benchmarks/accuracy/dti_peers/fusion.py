"""Similarity network fusion: one network of two similarities of the same rows.

Source: Wang et al., Similarity network fusion for aggregating data types on a genomic scale, Nature Methods 11, 2014,
in the form of the program of DNILMF: a row counts among its own neighbours, and a matrix is symmetric rather than
stochastic where neighbours take it up.
"""

from __future__ import annotations

import numpy as np


def fused_network(first: np.ndarray, second: np.ndarray, n_neighbors: int = 3, n_rounds: int = 2) -> np.ndarray:
    """Return the network of two similarities, symmetric; shape (n, n).

    Parameters
    ----------
    first, second : ndarray, shape (n, n)
        Not negative, without a row of zeros.
    n_neighbors : int
        The strongest entries of a row that take up the other network; those as strong as the last one count too.
    n_rounds : int
        How often each network takes up the other one.

    The defaults are those of the program of DNILMF.

    Examples
    --------
    >>> apart = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.1], [0.1, 0.1, 1.0]])
    >>> fused = fused_network(apart, np.full((3, 3), 0.5), n_neighbors=2)
    >>> bool(fused[0, 1] > fused[0, 2])
    True
    """
    itself = np.eye(len(first))
    networks = [_symmetric(_shares(each)) for each in (first, second)]
    near = [_shares(_strongest(each, n_neighbors)) for each in networks]
    for _ in range(n_rounds):
        others = networks[::-1]
        networks = [_symmetric(graph @ other @ graph.T + itself) for graph, other in zip(near, others, strict=True)]
    return _symmetric(_shares(networks[0] + networks[1])) + itself / 2


def _shares(matrix: np.ndarray) -> np.ndarray:
    return matrix / matrix.sum(axis=1, keepdims=True)


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return (matrix + matrix.T) / 2


def _strongest(network: np.ndarray, n_neighbors: int) -> np.ndarray:
    last = -np.partition(-network, n_neighbors - 1, axis=1)[:, n_neighbors - 1 : n_neighbors]
    return np.where(network >= last, network, 0)
