"""The learned graph of a side, as users look at it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch

from air_recsys.models.drug_target.completion import affinity

_WHOLE = 4096  # nodes of the largest graph that keeps all of its edges
_KEPT = 100  # strongest edges of a node of a larger one


def adjacency_of(profiles: np.ndarray, similarity: np.ndarray | None, weight: float) -> np.ndarray | sp.csr_array:
    """Return the affinities of all rows (n, c) without the diagonal, (n, n).

    Of more than 4096 rows an edge stays where it is among the 100 strongest of one of its ends.

    Examples
    --------
    >>> adjacency_of(np.eye(2), None, 0.5).round(3).tolist()
    [[0.0, 0.135], [0.135, 0.0]]
    """
    given = None if similarity is None else torch.from_numpy(similarity)
    dense = affinity(torch.from_numpy(profiles), given, weight).fill_diagonal_(0)
    n = len(dense)
    if n <= _WHOLE:
        return dense.numpy()
    weights, places = (part.numpy().ravel() for part in dense.topk(_KEPT, dim=1))
    kept = sp.csr_array((weights, (np.repeat(np.arange(n), _KEPT), places)), shape=(n, n))
    return sp.csr_array(kept.maximum(kept.T))
