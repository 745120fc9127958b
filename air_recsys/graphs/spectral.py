r"""The spectrum of a graph, and what follows: components, coordinates and communities.

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

from air_recsys.exceptions import ParameterError

_DENSE = 400  # nodes, up to which the full decomposition is faster
_ITERATIONS = 300
_TOLERANCE = 1e-8
_FILLED = 0.8  # share of its box that a component may fill
_MOST_CUTS = 30  # most cuts by the eigengap


def by_size(groups: np.ndarray) -> np.ndarray:
    """Renumber groups 0, 1, ... from the largest to the smallest, equal ones by their first member; shape (n,)."""
    _, first, inverse, counts = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.lexsort((first, -counts))] = np.arange(first.size)
    return rank[inverse]


def component_of_each(adjacency: sp.csr_array) -> np.ndarray:
    """The connected component of every node, 0 being the largest; shape (n,)."""
    if adjacency.indptr.size == 1:
        return np.empty(0, dtype=np.int64)
    return by_size(csgraph.connected_components(adjacency, directed=False)[1])


def each_component(adjacency: sp.csr_array) -> Iterator[tuple[np.ndarray, sp.csr_array]]:
    """The rows and the adjacency of every component, from the largest to the smallest."""
    labels = component_of_each(adjacency)
    order = np.argsort(labels, kind="stable")
    blocks = sp.csr_array(adjacency[order][:, order])  # block-diagonal
    sizes = np.bincount(labels)
    ends = np.cumsum(sizes)
    for start, end in zip((ends - sizes).tolist(), ends.tolist(), strict=True):
        yield order[start:end], sp.csr_array(blocks[start:end, start:end])


def smallest_eigenpairs(adjacency: sp.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The smallest eigenpairs of the normalised Laplacian of a connected graph of two nodes or more.

    These are min(k, n - 1) values (k,), ascending, without the first, 0, and vectors (n, k) of norm 1 whose entry of
    largest modulus is positive.
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
    """D^1/2 1, of norm 1: the eigenvector of the eigenvalue 0 of a connected graph; shape (n,)."""
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
    r"""Laplacian eigenmaps, every component in a separate box; shape (n, n_dims).

    The coordinates of a component are the solutions y of :math:`L y = \lambda D y` with the smallest
    :math:`\lambda > 0`, each scaled to a largest entry of 1. With several components each has a box whose area
    is proportional to its number of nodes; the boxes stand in rows, the largest first, and all fit into [-1, 1].
    Coordinates beyond the eigenvectors of a small component are 0.

    References
    ----------
    Belkin and Niyogi, Laplacian Eigenmaps for Dimensionality Reduction, Neural Computation 15(6), 2003.
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
    """The eigenmaps of one component, each coordinate with a largest entry of 1."""
    n = adjacency.indptr.size - 1
    coordinates = np.zeros((n, n_dims))
    if n > 1:
        _, vectors = smallest_eigenpairs(adjacency, n_dims)
        maps = vectors / trivial_eigenvector(adjacency)[:, None]
        coordinates[:, : maps.shape[1]] = maps / np.abs(maps).max(axis=0)
    return coordinates


def _shelves(sizes: np.ndarray, n_dims: int) -> np.ndarray:
    """The centres of square boxes of side 2 sqrt(size), in rows of about equal length; shape (c, n_dims)."""
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


def spectral_communities(adjacency: sp.csr_array, n_communities: int | None, random_state: int) -> np.ndarray:
    """The clusters of k-means on eigenvectors of the normalised Laplacian, 0 being the largest; shape (n,).

    No cluster reaches over two components, and nodes without edges stand alone. Components are cut into more where
    that costs least, that is at the smallest eigenvalues; a component that is cut c times is divided by k-means with
    c + 1 clusters on its first c + 1 eigenvectors, rows scaled to norm 1.

    `n_communities` counts the clusters of nodes with edges. None stands for as many as there are eigenvalues before
    the largest gap between two successive ones, up to 30 more than components with edges.

    Raises
    ------
    ParameterError
        If `n_communities` is less than the components with edges, or more than their nodes.

    References
    ----------
    Ng, Jordan, Weiss, On Spectral Clustering, NIPS 2001; von Luxburg, A Tutorial on Spectral Clustering, 2007.
    """
    groups = np.arange(_size(adjacency))  # every node alone
    components = [(rows, block) for rows, block in each_component(adjacency) if rows.size > 1]
    most = sum(rows.size for rows, _ in components)
    if n_communities is not None and not len(components) <= n_communities <= most:
        raise ParameterError(
            f"n_communities must lie between the number of components with edges, {len(components)}, and that of "
            f"nodes with edges, {most}, found {n_communities}"
        )
    wanted = None if n_communities is None else n_communities - len(components)
    if components:
        n_pairs = _MOST_CUTS + 1 if wanted is None else max(1, wanted)
        spectra = [smallest_eigenpairs(block, n_pairs) for _, block in components]
        cuts = _cuts_of_each([values for values, _ in spectra], wanted)
        for (rows, block), (_, vectors), n_cuts in zip(components, spectra, cuts, strict=True):
            groups[rows] = groups.max() + 1 + _divided(block, vectors[:, :n_cuts], random_state)
    return by_size(groups)


def _cuts_of_each(spectra: list[np.ndarray], n_cuts: int | None) -> np.ndarray:
    """How often each component is cut: where the eigenvalues are smallest."""
    values = np.concatenate(spectra)
    owners = np.repeat(np.arange(len(spectra)), [len(each) for each in spectra])
    order = np.argsort(values, kind="stable")
    if n_cuts is None:
        ascending = np.concatenate([[0.0], values[order][: _MOST_CUTS + 1]])
        n_cuts = int(np.argmax(np.diff(ascending)))
    return np.bincount(owners[order[:n_cuts]], minlength=len(spectra))


def _divided(adjacency: sp.csr_array, vectors: np.ndarray, random_state: int) -> np.ndarray:
    from sklearn.cluster import KMeans

    n_cuts = vectors.shape[1]
    if n_cuts == 0:
        return np.zeros(_size(adjacency), dtype=np.int64)
    points = np.column_stack([trivial_eigenvector(adjacency), vectors])
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    # No cluster stays empty: of n_cuts + 1 independent columns at least as many rows differ in direction.
    model = KMeans(n_cuts + 1, n_init=10, random_state=random_state)  # pyright: ignore[reportArgumentType]
    return model.fit_predict(points)


def _size(adjacency: sp.csr_array) -> int:
    return adjacency.indptr.size - 1
