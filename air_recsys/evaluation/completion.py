"""Completion of a fully known matrix of which a random part is hidden: Syn-Netflix and drug-target data."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.graph_quality import group_recovery
from air_recsys.metrics import auroc, average_precision, nmae
from air_recsys.models import Recommender
from air_recsys.storage.validation import check_real


class Hidden(NamedTuple):
    """A matrix of which some entries are shown to the model and some others are asked for."""

    observed: Interactions
    asked: np.ndarray  # (m, n) of bool
    truth: np.ndarray  # (m, n)


def hide(truth: np.ndarray, share: float, seed: int, validation: float = 0.0) -> Hidden:
    """Hide every entry with probability `share`; with `validation`, ask for that share of the rest instead.

    With ``validation > 0`` the hidden entries are neither shown nor asked for, so settings that are chosen there owe
    nothing to them.
    """
    check_real("share", share, strict=True, maximum=0.99)
    check_real("validation", validation, maximum=0.99)
    rng = np.random.default_rng(seed)
    hidden = rng.random(truth.shape) < share
    shown, asked = ~hidden, hidden
    if validation > 0:
        asked = shown & (rng.random(truth.shape) < validation)
        shown = shown & ~asked
    return Hidden(Interactions.from_dense(np.where(shown, truth, np.nan)), asked, truth)


def complete(model: Recommender, data: Hidden) -> dict[str, Any]:
    """Fit a model to the observed part and return its error on the entries asked for, and its time."""
    start = time.perf_counter()
    model.fit(data.observed)
    seconds = time.perf_counter() - start
    return entry_errors(data.truth, data.asked, model.predict(*np.nonzero(data.asked))) | {"seconds": seconds}


def entry_errors(truth: np.ndarray, asked: np.ndarray, scores: np.ndarray) -> dict[str, Any]:
    """NMAE of scores of the entries asked for, row by row; average precision and AUROC where the truth is 0/1."""
    expected = truth[asked]
    errors: dict[str, Any] = {"nmae": nmae(expected, scores, value_range=float(np.ptp(truth)))}
    if np.isin(truth, (0, 1)).all():
        errors |= {"average_precision": average_precision(expected, scores), "auroc": auroc(expected, scores)}
    return errors


def recovery(model: Recommender, user_groups: np.ndarray, item_groups: np.ndarray) -> dict[str, float]:
    """AUC and NMI of both learned graphs; nothing for a model without graphs."""
    if model.user_graph_ is None or model.item_graph_ is None:
        return {}
    user_auc, user_nmi = group_recovery(model.user_graph_, user_groups)
    item_auc, item_nmi = group_recovery(model.item_graph_, item_groups)
    return {"user_auc": user_auc, "item_auc": item_auc, "user_nmi": user_nmi, "item_nmi": item_nmi}
