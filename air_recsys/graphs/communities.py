"""Communities: by modularity (Louvain) and by the spectrum of the Laplacian."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import ParameterError
from air_recsys.graphs.exports import networkx_graph
from air_recsys.graphs.spectral import by_size, each_component, smallest_eigenpairs, trivial_eigenvector
from air_recsys.storage.validation import import_extra

_MOST_CUTS = 30  # most cuts by the eigengap


def louvain(adjacency: sp.csr_array, resolution: float, random_state: int) -> np.ndarray:
    """Return communities of large modularity, 0 being the largest; shape (n,).

    Source: Blondel, Guillaume, Lambiotte, Lefebvre, Fast unfolding of communities in large networks, J. Stat. Mech.,
    2008, in NetworkX's program.
    """
    networkx = import_extra("networkx", "viz")
    graph = networkx_graph(range(_size(adjacency)), adjacency)
    groups = np.empty(_size(adjacency), dtype=np.int64)
    communities = networkx.community.louvain_communities(graph, resolution=resolution, seed=random_state)
    for number, members in enumerate(communities):
        groups[list(members)] = number
    return by_size(groups)


def spectral(adjacency: sp.csr_array, n_communities: int | None, random_state: int) -> np.ndarray:
    """Return the clusters of k-means on eigenvectors of the normalised Laplacian, 0 being the largest; shape (n,).

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

    Examples
    --------
    >>> pairs = sp.csr_array([[0.0, 5, 1, 0], [5, 0, 0, 1], [1, 0, 0, 5], [0, 1, 5, 0]])
    >>> spectral(pairs, None, 0)
    array([0, 0, 1, 1])
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
    """Return how often each component is cut: where the eigenvalues are smallest."""
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
