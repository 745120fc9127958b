r"""The spectrum of a graph: components, the smallest eigenpairs of its normalised Laplacian, and coordinates.

With degrees d and D = diag(d) the normalised Laplacian is :math:`I - D^{-1/2} A D^{-1/2}`. Its eigenvalues lie in
[0, 2], and 0 occurs once for every component, with the trivial eigenvector :math:`D^{1/2} 1`. So each component is
decomposed by itself, without that eigenvector.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse import csgraph
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

_DENSE = 400  # nodes, up to which the full decomposition is faster
_ITERATIONS = 300
_TOLERANCE = 1e-8
_FILLED = 0.8  # share of its box that a component may fill


def by_size(groups: np.ndarray) -> np.ndarray:
    """Renumber groups 0, 1, ... from the largest to the smallest, equal ones by their first member; shape (n,).

    Examples
    --------
    >>> by_size(np.array([5, 3, 3, 9]))
    array([1, 0, 0, 2])
    """
    _, first, inverse, counts = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.lexsort((first, -counts))] = np.arange(first.size)
    return rank[inverse]


def component_of_each(adjacency: sp.csr_array) -> np.ndarray:
    """Return the connected component of every node, 0 being the largest; shape (n,)."""
    if adjacency.indptr.size == 1:
        return np.empty(0, dtype=np.int64)
    return by_size(csgraph.connected_components(adjacency, directed=False)[1])


def each_component(adjacency: sp.csr_array) -> Iterator[tuple[np.ndarray, sp.csr_array]]:
    """Yield the rows and the adjacency of every component, from the largest to the smallest."""
    labels = component_of_each(adjacency)
    order = np.argsort(labels, kind="stable")
    blocks = sp.csr_array(adjacency[order][:, order])  # block-diagonal
    sizes = np.bincount(labels)
    ends = np.cumsum(sizes)
    for start, end in zip((ends - sizes).tolist(), ends.tolist(), strict=True):
        yield order[start:end], sp.csr_array(blocks[start:end, start:end])


def smallest_eigenpairs(adjacency: sp.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest eigenpairs of the normalised Laplacian of a connected graph of two nodes or more.

    These are min(k, n - 1) values (k,), ascending, without the first, 0, and vectors (n, k) of norm 1 whose entry of
    largest modulus is positive.

    Examples
    --------
    >>> values, _ = smallest_eigenpairs(sp.csr_array([[0.0, 1, 1], [1, 0, 1], [1, 1, 0]]), 2)
    >>> values.round(6)
    array([1.5, 1.5])
    """
    n = adjacency.indptr.size - 1
    k = min(k, n - 1)
    trivial = trivial_eigenvector(adjacency)
    entries = adjacency.tocoo()
    roots = np.sqrt(adjacency.sum(axis=1))
    scaled = sp.csr_array((entries.data / (roots[entries.row] * roots[entries.col]), (entries.row, entries.col)))
    if n <= _DENSE or 3 * k > n:
        # The eigenvalues of the scaled adjacency lie in [-1, 1]; the trivial one, 1, becomes -2, the smallest.
        shifted = scaled.toarray() - 3 * np.outer(trivial, trivial)
        values, vectors = scipy.linalg.eigh(shifted, subset_by_index=[n - k, n - 1])
        return 1 - values[::-1], _with_fixed_signs(vectors[:, ::-1])
    values, vectors = _sparse_eigenpairs(scaled, trivial, k)
    return values, _with_fixed_signs(vectors)


def trivial_eigenvector(adjacency: sp.csr_array) -> np.ndarray:
    """Return D^1/2 1, of norm 1: the eigenvector of the eigenvalue 0 of a connected graph; shape (n,)."""
    degrees = adjacency.sum(axis=1)
    return np.sqrt(degrees / degrees.sum())


def _sparse_eigenpairs(scaled: sp.csr_array, trivial: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    n = trivial.size
    start = np.random.default_rng(0).normal(size=n)

    def product(x: np.ndarray) -> np.ndarray:
        x = x.ravel()
        return scaled @ x - 3 * trivial * (trivial @ x)

    shifted = LinearOperator((n, n), matvec=product, dtype=np.float64)  # pyright: ignore[reportCallIssue]
    try:
        values, vectors = eigsh(
            shifted,
            k,
            which="LA",
            v0=start,
            maxiter=_ITERATIONS,
            tol=_TOLERANCE,  # pyright: ignore[reportArgumentType]
        )
        order = np.argsort(-values)
        return 1 - values[order], vectors[:, order]
    except ArpackNoConvergence:
        # Long thin graphs: eigenvalues crowd at 0, and a factorisation costs little.
        matrix = sp.csc_array(sp.csr_array(sp.eye(n)) - scaled)
        values, vectors = eigsh(matrix, k + 1, sigma=-1e-6, v0=start)
        order = np.argsort(values)[1:]
        return values[order], vectors[:, order]


def _with_fixed_signs(vectors: np.ndarray) -> np.ndarray:
    sizes = np.abs(vectors)
    # The first of the entries that are equal up to rounding decides.
    first = np.argmax(sizes >= (1 - 1e-6) * sizes.max(axis=0), axis=0)
    signs = np.sign(vectors[first, np.arange(vectors.shape[1])])
    return vectors * signs


def eigenmaps(adjacency: sp.csr_array, n_dims: int) -> np.ndarray:
    r"""Return Laplacian eigenmaps, every component in a separate box; shape (n, n_dims).

    The coordinates of a component are the solutions y of :math:`L y = \lambda D y` with the smallest
    :math:`\lambda > 0`, each scaled to a largest entry of 1. With several components each has a box whose area
    is proportional to its number of nodes; the boxes stand in rows, the largest first, and all fit into [-1, 1].
    Coordinates beyond the eigenvectors of a small component are 0.

    References
    ----------
    Belkin and Niyogi, Laplacian Eigenmaps for Dimensionality Reduction, Neural Computation 15(6), 2003.

    Examples
    --------
    >>> path = sp.csr_array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> np.abs(eigenmaps(path, 1).round(6)).ravel()
    array([1., 0., 1.])
    """
    coordinates = np.zeros((adjacency.indptr.size - 1, n_dims))
    components = list(each_component(adjacency))
    if len(components) < 2:
        for _, block in components:
            coordinates[:] = _local(block, n_dims)
        return coordinates
    centres = _shelves(np.array([rows.size for rows, _ in components]), n_dims)
    for (rows, block), centre in zip(components, centres, strict=True):
        coordinates[rows] = centre + _FILLED * np.sqrt(rows.size) * _local(block, n_dims)
    coordinates -= (coordinates.max(axis=0) + coordinates.min(axis=0)) / 2
    return coordinates / np.abs(coordinates).max()


def _local(adjacency: sp.csr_array, n_dims: int) -> np.ndarray:
    """Return the eigenmaps of one component, each coordinate with a largest entry of 1."""
    n = adjacency.indptr.size - 1
    coordinates = np.zeros((n, n_dims))
    if n > 1:
        _, vectors = smallest_eigenpairs(adjacency, n_dims)
        maps = vectors / trivial_eigenvector(adjacency)[:, None]
        coordinates[:, : maps.shape[1]] = maps / np.abs(maps).max(axis=0)
    return coordinates


def _shelves(sizes: np.ndarray, n_dims: int) -> np.ndarray:
    """Return the centres of square boxes of side 2 sqrt(size), in rows of about equal length; shape (c, n_dims)."""
    sides = 2 * np.sqrt(sizes)
    length = np.inf if n_dims == 1 else np.linalg.norm(sides) * (1 + 1e-9)
    centres = np.zeros((sizes.size, max(2, n_dims)))
    x, y, height = 0.0, 0.0, sides[0]
    for number, side in enumerate(sides.tolist()):
        if x + side > length:
            x, y, height = 0.0, y - height, side  # the largest of a row comes first
        centres[number, :2] = x + side / 2, y - side / 2
        x += side
    return centres[:, :n_dims]
