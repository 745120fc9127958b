"""Accuracy for hidden pairs of your own data."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import Split
from air_recsys.evaluation.drug_target.enrichment import enrichment
from air_recsys.evaluation.drug_target.folds import interaction_folds
from air_recsys.exceptions import DataError, DataWarning
from air_recsys.metrics import aupr, auroc, average_precision, calibration_error
from air_recsys.models.drug_target.model import DrugTargetAIR
from air_recsys.models.drug_target.pairs import as_pairs, with_zeros
from air_recsys.storage.validation import RandomState

_OF_DRUGS, _OF_TARGETS = ("cvs2", "cvs4"), ("cvs3", "cvs4")
_COUNTS = "counts of interactions"
_PROFILES = "interaction profiles (GIP)"


def evaluate_pairs(
    model: DrugTargetAIR,
    interactions: Any,
    drug_similarity: Any = None,
    target_similarity: Any = None,
    *,
    setting: str = "cvs1",
    n_splits: int = 10,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Hide a fold of the recorded pairs at a time and predict it from the others.

    Parameters
    ----------
    model : DrugTargetAIR
        Its parameters are used; the model does not change.
    interactions, drug_similarity, target_similarity
        As for `DrugTargetAIR.fit`. If only interactions are recorded, all other pairs are zeros. Ids that are only in
        a similarity are left out.
    setting : {"cvs1", "cvs2", "cvs3", "cvs4"}
        What a fold hides: pairs, drugs, targets, or both; see `interaction_folds`.
    n_splits : int
    random_state : int, RandomState, Generator or None

    Returns
    -------
    DataFrame
        One row per system: the model; if pairs are hidden at random, RLS-Kron on Gaussian interaction profiles, which
        is one round of the model with hidden pairs as zeros; and the product of the counts of interactions of the drug
        and the target, plus 1. Columns: means over the folds of average precision, AUPR, AUROC and the enrichment of
        the first 1 %; average_precision_se, the standard error of the first; and calibration_error, of the model's
        probabilities of all folds together.

    Raises
    ------
    DataError
        As for `DrugTargetAIR.fit` and `interaction_folds`, and if whole drugs or targets are hidden without
        similarities.
    ParameterError

    Examples
    --------
    >>> values = np.kron(np.eye(3), np.ones((6, 5)))
    >>> found = evaluate_pairs(DrugTargetAIR(), pd.DataFrame(values), n_splits=3)
    >>> found["system"].tolist()
    ['DrugTargetAIR', 'interaction profiles (GIP)', 'counts of interactions']
    >>> bool(found.loc[0, "average_precision"] > 0.9)
    True
    """
    data, given = with_zeros(as_pairs(interactions)), (drug_similarity, target_similarity)
    splits = list(interaction_folds(data, setting, n_splits, random_state))
    for kind, hides, similarity in (("drug", _OF_DRUGS, given[0]), ("target", _OF_TARGETS, given[1])):
        if setting in hides and similarity is None:
            raise DataError(f"setting {setting!r} hides whole {kind}s: expected similarities of {kind}s, found none")
    copy.deepcopy(model).fit(data, *given)  # its errors and warnings, once
    folds: dict[str, list[dict[str, float]]] = {}
    answers: list[tuple[np.ndarray, np.ndarray]] = []
    for shown, hidden in _measurable(data, splits):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            scores, probabilities = _predicted(model, shown, hidden, given, setting)
        answers.append((hidden.ratings, probabilities))
        for name, found in scores.items():
            folds.setdefault(name, []).append(pair_measures(hidden.ratings, found))
    rows = [_row(name, found) for name, found in folds.items()]
    truth, probability = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    rows[0]["calibration_error"] = calibration_error(truth, probability)
    return pd.DataFrame(rows)


def _measurable(data: Interactions, splits: Sequence[Split]) -> list[tuple[Interactions, Interactions]]:
    """Return what is shown and what is hidden of the folds for which every measure is defined."""
    parts = [(data.select(split.train), data.select(split.test)) for split in splits]
    found = [part for part in parts if part[0].ratings.any() and 0 < part[1].ratings.mean() < 1]
    if not found:
        raise DataError(f"expected interactions and zeros in some of {len(parts)} folds, found none with both")
    return found


def _predicted(
    model: DrugTargetAIR, shown: Interactions, hidden: Interactions, given: tuple[Any, Any], setting: str
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the scores of hidden pairs by each system, and the probabilities of the model."""
    asked = hidden.user_index, hidden.item_index
    fitted = copy.deepcopy(model).fit(shown, *given)
    places = fitted.drugs_.lookup(hidden.user_ids)[asked[0]], fitted.targets_.lookup(hidden.item_ids)[asked[1]]
    own = fitted.scores_[places]
    scores = {type(model).__name__: own}
    if setting == "cvs1":
        scores[_PROFILES] = (
            DrugTargetAIR(unobserved_weight=1, regression_weight=0, n_rounds=1).fit(shown).scores_[asked]
        )
    return scores | {_COUNTS: _by_counts(shown)[asked]}, fitted.calibration_.of_scores(own)


def _by_counts(shown: Interactions) -> np.ndarray:
    """Return the product of the counts of interactions of both sides, plus 1, (n_drugs, n_targets)."""
    values = np.nan_to_num(shown.to_dense())
    return np.outer(values.sum(axis=1) + 1, values.sum(axis=0) + 1)


def pair_measures(truth: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Return average precision, AUPR, AUROC and the enrichment of the first 1 % of scored pairs."""
    return {
        "average_precision": average_precision(truth, scores),
        "aupr": aupr(truth, scores),
        "auroc": auroc(truth, scores),
        "enrichment_1%": enrichment(truth, scores, 0.01),
    }


def _row(name: str, folds: list[dict[str, float]]) -> dict[str, Any]:
    table = pd.DataFrame(folds)
    spread = float(table["average_precision"].std(ddof=1) / np.sqrt(len(table))) if len(table) > 1 else float("nan")
    return {"system": name, **table.mean().to_dict(), "average_precision_se": spread}
