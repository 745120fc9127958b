"""Drug-target scores by kernels and regressions: Gaussian interaction profiles, their nearest profiles, and EASE.

What is hidden, NaN in a matrix of drugs x targets (m, n), counts as 0; scores are of all pairs (m, n).
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.metrics.pairwise import rbf_kernel

from air_recsys.models.drug_target.completion import spectrum

_NEGLIGIBLE = 1e-4


def gip_scores(values: np.ndarray, noise: float = 1.0) -> np.ndarray:
    """The scores of RLS-Kron with Gaussian interaction profiles alone, in the settings of the paper.

    Source: van Laarhoven, Nabuurs, Marchiori, Gaussian interaction profile kernels for predicting drug-target
    interaction, Bioinformatics 27(21), 2011.
    """
    pairs = np.nan_to_num(values)
    return _smooth(pairs, gip(pairs), gip(pairs.T), noise)


def wnn_gip_scores(
    values: np.ndarray,
    drug_similarity: np.ndarray,
    target_similarity: np.ndarray,
    *,
    decay: float = 0.8,
    similarity_weight: float = 0.8,
    noise: float = 1.0,
) -> np.ndarray:
    """The scores of RLS-Kron on profiles and similarities, rows without interactions filled from similar ones.

    Parameters
    ----------
    values, drug_similarity, target_similarity : ndarray, shapes (m, n), (m, m) and (n, n)
    decay : float
        Weight of a row's k-th nearest one is its k-th power.
    similarity_weight, noise : float
        The defaults, and that of `decay`, are those of PyDTI.

    Source: van Laarhoven, Marchiori, Predicting drug-target interactions for new drug compounds using a weighted
    nearest neighbor profile, PLoS ONE 8(6), 2013.
    """
    pairs = np.nan_to_num(values)
    drugs, targets = (each + 0.1 * np.eye(len(each)) for each in (drug_similarity, target_similarity))
    kernels = _kernel(pairs, drugs, similarity_weight), _kernel(pairs.T, targets, similarity_weight)
    filled = _fill(_fill(pairs, drugs, decay).T, targets, decay).T
    return _smooth(filled, *kernels, noise)


def ease_scores(values: np.ndarray, decay: float = 10.0) -> np.ndarray:
    """The scores of EASE on the targets, each from all others; 0 for drugs without a known interaction.

    Source: Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019.

    Examples
    --------
    >>> ease_scores(np.array([[1.0, 1.0], [1.0, np.nan]]), decay=1.0).round(2).tolist()
    [[0.5, 0.33], [0.0, 0.33]]
    """
    pairs = np.nan_to_num(values)
    return pairs @ ease(pairs.T, decay).T


def ease(rows: np.ndarray, decay: float) -> np.ndarray:
    """EASE's weights between the rows: those of a ridge regression of each row on all others, (n, n).

    Source: Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019.
    """
    gram = (rows @ rows.T).astype(np.float64)
    precision = np.linalg.inv(gram + decay * np.eye(len(gram)))
    weights = -precision / np.diag(precision)
    np.fill_diagonal(weights, 0)
    return weights.T


def gip(rows: np.ndarray) -> np.ndarray:
    """The Gaussian interaction profile kernel, its width the mean squared norm of the rows, (n, n).

    Source: van Laarhoven, Nabuurs, Marchiori, Bioinformatics 27(21), 2011.
    """
    return rbf_kernel(rows, gamma=1 / np.square(rows).sum(axis=1).mean())


def _smooth(values: np.ndarray, drugs: np.ndarray, targets: np.ndarray, noise: float) -> np.ndarray:
    found = spectrum(torch.from_numpy(drugs), torch.from_numpy(targets), noise)
    return found.smooth(torch.from_numpy(values)).numpy()


def _kernel(rows: np.ndarray, similarity: np.ndarray, weight: float) -> np.ndarray:
    kernel = weight * similarity + (1 - weight) * gip(rows)
    empty = ~rows.any(axis=1)
    kernel[empty], kernel[:, empty] = similarity[empty], similarity[:, empty]
    return kernel


def _fill(rows: np.ndarray, similarity: np.ndarray, decay: float) -> np.ndarray:
    filled, present = rows.copy(), np.flatnonzero(rows.any(axis=1))
    for row in np.flatnonzero(~rows.any(axis=1)):
        nearest = present[np.argsort(-similarity[row, present], kind="stable")]
        weights = decay ** np.arange(nearest.size)
        weights = weights[weights >= _NEGLIGIBLE]
        filled[row] = weights @ rows[nearest[: weights.size]]
    return filled
