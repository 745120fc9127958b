"""Kronecker regularised least squares on given similarities.

Source: Pahikkala, Airola, Pietila, Shakyawar, Szwajda, Tang, Aittokallio, Toward more realistic drug-target
interaction predictions, Briefings in Bioinformatics 16(2), 2015.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from air_recsys.metrics import average_precision

_NOISES = tuple((4.0 ** np.arange(-4, 5)).tolist())
_FOLDS = 5  # of the inner cross-validation
Sides = tuple[np.ndarray, np.ndarray]  # of drugs, of targets


def kron_rls_scores(values: np.ndarray, drug_similarity: np.ndarray, target_similarity: np.ndarray) -> np.ndarray:
    """The scores of all pairs (m, n): ridge regression in the product of the similarities, hidden pairs as 0.

    Drugs and targets whose values are all NaN take no part in it. The noise has the highest average precision in an
    inner cross-validation, which hides drugs, targets, both, or pairs as the data do.

    Examples
    --------
    >>> values = np.kron(np.eye(2), np.ones((3, 3)))
    >>> values[0] = np.nan  # a new drug
    >>> alike = np.kron(np.eye(2), np.full((3, 3), 0.5)) + 0.5 * np.eye(6)
    >>> (kron_rls_scores(values, alike, alike)[0] > 0.1).tolist()
    [True, True, True, False, False, False]
    """
    missing, pairs = np.isnan(values), np.nan_to_num(values)
    known: Sides = np.asarray(~missing.all(axis=1)), np.asarray(~missing.all(axis=0))
    alike: Sides = drug_similarity, target_similarity
    found = np.zeros(len(_NOISES))
    for shown, inner, tested in _inner_folds(pairs, known):
        truth = pairs[tested]
        if truth.any() and shown[np.ix_(*inner)].any():
            found += [average_precision(truth, scores[tested]) for scores in _predicted(shown, alike, inner, _NOISES)]
    return next(_predicted(pairs, alike, known, (_NOISES[int(np.argmax(found))],)))


def _predicted(pairs: np.ndarray, alike: Sides, known: Sides, noises: tuple[float, ...]) -> Iterator[np.ndarray]:
    """The scores of all pairs by those of the known sides, for each noise."""
    (left, rows), (right, columns) = (
        np.linalg.eigh(each[np.ix_(side, side)]) for each, side in zip(alike, known, strict=True)
    )
    kept, rotated = np.outer(left.clip(0), right.clip(0)), rows.T @ pairs[np.ix_(*known)] @ columns
    across = alike[0][:, known[0]] @ rows, alike[1][:, known[1]] @ columns
    for noise in noises:
        yield across[0] @ (rotated / (kept + noise)) @ across[1].T


def _inner_folds(pairs: np.ndarray, known: Sides) -> Iterator[tuple[np.ndarray, Sides, np.ndarray]]:
    """What is shown, the drugs and targets in it, and the pairs (m, n) that are tested; five times."""
    rng, hides = np.random.RandomState(0), [not side.all() for side in known]
    folds = [rng.permutation(side.size) % _FOLDS for side in known]
    of_pairs = rng.permutation(pairs.size).reshape(pairs.shape) % _FOLDS
    for fold in range(_FOLDS):
        new = [(each == fold) & hide for each, hide in zip(folds, hides, strict=True)]
        inner: Sides = known[0] & ~new[0], known[1] & ~new[1]
        if not any(hides):
            tested = of_pairs == fold
            yield np.where(tested, 0, pairs), inner, tested
        else:
            sides = [known[axis] & new[axis] if hides[axis] else known[axis] for axis in (0, 1)]
            yield pairs, inner, np.outer(*sides)
