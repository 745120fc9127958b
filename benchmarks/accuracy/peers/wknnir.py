"""Weighted nearest neighbours with interaction recovery, for new drugs, new targets, or both.

Source: Liu, Pliakos, Vens, Tsoumakas, Drug-Target Interaction Prediction via an Ensemble of Weighted Nearest Neighbors
with Interaction Recovery, Applied Intelligence 52, 2022 (arXiv:2012.12325v2): its single model, WkNNIR, as the program
of its authors computes it.
"""

from __future__ import annotations

import itertools

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.metrics import average_precision

_SIZES, _DECAYS = (1, 2, 3, 5, 7, 9), tuple(np.round(np.arange(1, 11) / 10, 1).tolist())
_FOLDS = 5  # of the inner cross-validation
Sides = tuple[np.ndarray, np.ndarray]  # of drugs, of targets


def wknnir_scores(values: np.ndarray, drug_similarity: np.ndarray, target_similarity: np.ndarray) -> np.ndarray:
    """The scores of pairs with a new drug or target, whose values are all NaN; shape (m, n), 0 elsewhere.

    The number of neighbours and their decay are those of the highest average precision in an inner cross-validation,
    which hides drugs, targets or both as the data do.
    """
    missing = np.isnan(values)
    new: Sides = np.asarray(missing.all(axis=1)), np.asarray(missing.all(axis=0))
    if not (new[0].any() or new[1].any()):
        raise DataError("expected a drug or a target without any value, found none")
    similarities = drug_similarity, target_similarity
    size, decay = _chosen(values, new, similarities)
    return _predicted(np.nan_to_num(values), new, similarities, size, decay)


def neighbor_weights(similarity: np.ndarray, size: int, decay: float) -> np.ndarray:
    """Weights of the most similar columns of each row: decay^rank times similarity, over the sum of the latter.

    Examples
    --------
    >>> neighbor_weights(np.array([[0.5, 0.25, 0.1]]), 2, 0.5).round(3).tolist()
    [[0.667, 0.167, 0.0]]
    """
    nearest = _nearest(similarity, size)
    values = np.take_along_axis(similarity, nearest, axis=1)
    totals = values.sum(axis=1, keepdims=True)
    weights = np.zeros(similarity.shape)
    shares = np.divide(values, totals, out=np.zeros_like(values), where=totals > 0) * decay ** np.arange(
        nearest.shape[1]
    )
    np.put_along_axis(weights, nearest, shares, axis=1)
    return weights


def _predicted(pairs: np.ndarray, new: Sides, similarities: Sides, size: int, decay: float) -> np.ndarray:
    """Recover interactions of the known sides among neighbours, then take the means of the new ones' neighbours."""
    known = ~new[0], ~new[1]
    shown = pairs[np.ix_(*known)]
    among = [_off_diagonal(each[np.ix_(side, side)]) for each, side in zip(similarities, known, strict=True)]
    across = [each[np.ix_(~side, side)] for each, side in zip(similarities, known, strict=True)]
    by_drugs, of_drugs = _recovered(among[0], shown, size, decay)
    by_targets, of_targets = (each.T for each in _recovered(among[1], shown.T, size, decay))
    rows = np.maximum(shown, (by_drugs + by_targets) / 2)
    scores = np.zeros(pairs.shape)
    if not new[1].any():
        scores[new[0]] = neighbor_weights(across[0], size, decay) @ rows
    elif not new[0].any():
        scores[:, new[1]] = rows @ neighbor_weights(across[1], size, decay).T
    else:
        scores[np.ix_(*new)] = _of_both(across, rows, (of_drugs, of_targets), size, decay)
    return scores


def _recovered(similarity: np.ndarray, rows: np.ndarray, size: int, decay: float) -> tuple[np.ndarray, np.ndarray]:
    """What neighbours say of each pair, less where interactions are rare among them, and that imbalance.

    The imbalance of an interaction is the share of the neighbours of its row that lack it; 0 elsewhere.
    """
    nearest = _nearest(similarity, size)
    near = rows[nearest].sum(axis=1)  # (m, n)
    imbalance = rows * (1 - near / nearest.shape[1])
    around = imbalance[nearest].sum(axis=1) / np.maximum(near, 1)
    return neighbor_weights(similarity, size, decay) @ rows * np.exp(-around), imbalance


def _of_both(across: list[np.ndarray], rows: np.ndarray, imbalances: Sides, size: int, decay: float) -> np.ndarray:
    """The scores of new drugs with new targets: similarities are flatter on the side of less imbalance."""
    near = [_nearest(each, size) for each in across]
    drugs, targets = (np.take_along_axis(each, place, axis=1) for each, place in zip(across, near, strict=True))
    places = near[0][:, None, :, None], near[1][None, :, None, :]  # (new drugs, new targets, k, k)
    first, second = (each[places].sum(axis=(2, 3)) for each in imbalances)
    both = (first > 0) & (second > 0)
    ratio = np.divide(first, second, out=np.ones_like(first), where=both)
    drugs = drugs[:, None] ** np.minimum(ratio, 1)[..., None]  # (new drugs, new targets, k)
    targets = targets[None] ** np.minimum(1 / ratio, 1)[..., None]
    totals = drugs.sum(axis=2) * targets.sum(axis=2)
    faded = drugs * decay ** np.arange(drugs.shape[2]), targets * decay ** np.arange(targets.shape[2])
    sums = np.einsum("dti,dtij,dtj->dt", faded[0], rows[places], faded[1], optimize=True)
    return np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0)


def _nearest(similarity: np.ndarray, size: int) -> np.ndarray:
    return np.argsort(-similarity, axis=1, kind="stable")[:, :size]


def _off_diagonal(matrix: np.ndarray) -> np.ndarray:
    return matrix - np.diag(np.diag(matrix))


def _chosen(values: np.ndarray, new: Sides, similarities: Sides) -> tuple[int, float]:
    inner = np.ix_(~new[0], ~new[1])
    pairs = np.nan_to_num(values[inner])
    alike = similarities[0][np.ix_(~new[0], ~new[0])], similarities[1][np.ix_(~new[1], ~new[1])]
    hides = [bool(fresh.any()) for fresh in new]
    rng, settings = np.random.RandomState(0), list(itertools.product(_SIZES, _DECAYS))
    folds = [rng.permutation(count) % _FOLDS for count in pairs.shape]
    found = np.zeros(len(settings))
    for fold in range(_FOLDS):
        drugs, targets = ((each == fold) & hide for each, hide in zip(folds, hides, strict=True))
        tested = np.ix_(drugs if hides[0] else ~drugs, targets if hides[1] else ~targets)
        truth = pairs[tested].ravel()
        if truth.any() and pairs[np.ix_(~drugs, ~targets)].any():
            predicted = (_predicted(pairs, (drugs, targets), alike, *each)[tested] for each in settings)
            found += [average_precision(truth, scores.ravel()) for scores in predicted]
    return settings[int(np.argmax(found))]
