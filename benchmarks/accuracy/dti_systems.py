"""The systems that predict drug-target interactions, each from what it is shown of one fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.dti import DrugTargetAIR
from air_recsys.evaluation.results.apart import Stopwatch
from air_recsys.exceptions import DataError
from benchmarks.accuracy.dti_peers import (
    DNILMF_SETTINGS,
    NRLMF_SETTINGS,
    dnilmf_scores,
    ease_scores,
    gip_scores,
    nrlmf_scores,
    wknnir_scores,
    wnn_gip_scores,
)


class Shown(NamedTuple):
    """The data of a fold that the systems see."""

    interactions: Interactions  # without the hidden pairs
    drug_similarity: pd.DataFrame | None
    target_similarity: pd.DataFrame | None


class Scored(NamedTuple):
    """The answer of a system to a fold."""

    scores: np.ndarray  # of the pairs asked for
    seconds: float


class System(NamedTuple):
    """A function from the data shown to the scores of all pairs, and its settings in words."""

    score: Callable[[Shown], np.ndarray]
    settings: str


def dti_systems(
    similarities: bool, settings: Mapping[str, Any] | None = None, *, whole: bool = False
) -> dict[str, System]:
    """Return the systems without similarities, or those with them.

    Parameters
    ----------
    whole : bool
        Whether drugs or targets are hidden whole, which some systems are for.
    settings : mapping, optional
        Parameters of `DrugTargetAIR` that differ from its defaults.
    """
    changes = dict(settings or {})
    air = System(partial(air_scores, **changes), f"DrugTargetAIR with {changes or 'its defaults'}")
    if not similarities:
        return {
            "AIR": air,
            "GIP": System(partial(_alone, gip_scores), "RLS-Kron, bandwidth and noise 1, as in its paper"),
            "EASE": System(partial(_alone, ease_scores), "decay 10, targets from targets"),
        }
    new = {"WkNNIR": System(partial(_beside, wknnir_scores), "neighbours and decay by inner cross-validation")}
    return {
        "AIR": air,
        "NRLMF": System(
            partial(_beside, partial(nrlmf_scores, **NRLMF_SETTINGS)), f"PyDTI's defaults: {_words(NRLMF_SETTINGS)}"
        ),
        "DNILMF": System(
            partial(_beside, partial(dnilmf_scores, **DNILMF_SETTINGS)),
            f"its program's defaults: {_words(DNILMF_SETTINGS)}",
        ),
        "RLS-WNN": System(partial(_beside, wnn_gip_scores), "RLS-Kron with nearest profiles, PyDTI's defaults"),
    } | (new if whole else {})


def air_scores(shown: Shown, **settings: Any) -> np.ndarray:
    """Return the scores of `DrugTargetAIR`, to which hidden pairs are missing entries."""
    return DrugTargetAIR(**settings).fit(*shown).scores_


def air_probabilities(shown: Shown, asked: tuple[np.ndarray, np.ndarray], **settings: Any) -> np.ndarray:
    """Return the probabilities of `DrugTargetAIR` of hidden pairs, which are missing for it."""
    model = DrugTargetAIR(**settings).fit(*shown)
    return model.calibration_.of_scores(model.scores_[asked])


def score_fold(systems: Mapping[str, System], shown: Shown, asked: tuple[np.ndarray, np.ndarray]) -> dict[str, Scored]:
    """Let every system learn from what is shown, and return its scores of the pairs asked for, by position."""
    answers = {}
    for name, system in systems.items():
        with Stopwatch() as training:
            scores = system.score(shown)
        answers[name] = Scored(scores[asked], training.seconds)
    return answers


def _words(settings: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in settings.items())


def _alone(score: Callable[[np.ndarray], np.ndarray], shown: Shown) -> np.ndarray:
    return score(shown.interactions.to_dense())


def _beside(score: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray], shown: Shown) -> np.ndarray:
    drugs, targets = shown.drug_similarity, shown.target_similarity
    if drugs is None or targets is None:
        raise DataError("expected similarities of drugs and of targets, found only one of them or none")
    return score(shown.interactions.to_dense(), drugs.to_numpy(), targets.to_numpy())
