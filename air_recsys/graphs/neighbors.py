"""A graph that is not learned: the nearest rows by cosine."""

from __future__ import annotations

import scipy.sparse as sp

from air_recsys.storage.validation import check_integer


def cosine_neighbors(matrix: sp.csr_array, n_neighbors: int) -> sp.csr_array:
    """Return the graph of each row's nearest rows by the cosine of their stored entries, shape (m, m).

    Each row of `matrix` (m, n), such as centred ratings, chooses at most min(n_neighbors, m - 1) edges. An edge weighs
    the cosine, at least 0, halved where only one of its two ends chose it. Rows without entries stay isolated.

    Examples
    --------
    >>> cosine_neighbors(sp.csr_array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]]), 1).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    from sklearn.neighbors import kneighbors_graph
    from sklearn.preprocessing import normalize

    check_integer("n_neighbors", n_neighbors, minimum=1)
    k = min(n_neighbors, len(matrix.indptr) - 2)
    if k == 0:
        return sp.csr_array((1, 1))
    unit = normalize(sp.csr_matrix(matrix))
    chosen = sp.csr_array(kneighbors_graph(unit, k, mode="distance", metric="cosine"))
    chosen.data = (1 - chosen.data).clip(min=0) / 2
    symmetric = sp.csr_array(chosen + chosen.T)
    symmetric.eliminate_zeros()
    return symmetric
