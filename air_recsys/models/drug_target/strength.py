"""The weight of similarities, chosen by hiding some interactions and ranking them again."""

from __future__ import annotations

import numpy as np

from air_recsys.metrics import average_precision
from air_recsys.models.drug_target.completion import complete
from air_recsys.models.drug_target.sides import without

_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_REPEATS, _HIDDEN = 5, 0.1


def chosen_weight(
    values: np.ndarray,
    weights: np.ndarray,
    similarities: tuple[np.ndarray | None, np.ndarray | None],
    *,
    noise: float,
    n_rounds: int,
    device: str = "cpu",
) -> float:
    """Return the similarity weight with the highest average precision on recorded pairs that are hidden in turn.

    A tenth of the recorded pairs is hidden, five times, always the same ones for the same data. Parameters are those
    of `models.drug_target.completion.complete`; where no hidden pair interacts the weight is the middle one.
    """
    rng, recorded = np.random.RandomState(0), np.flatnonzero(weights)
    scores = np.zeros(len(_WEIGHTS))
    for _ in range(_REPEATS):
        hidden = rng.permutation(recorded)[: max(1, round(_HIDDEN * recorded.size))]
        labels = values.ravel()[hidden]
        if not labels.any():
            continue
        shown = without(weights, hidden)
        for k, weight in enumerate(_WEIGHTS):
            settings = {"similarity_weight": weight, "noise": noise, "n_rounds": n_rounds}
            completed = complete(values, shown, similarities, **settings, device=device)
            scores[k] += average_precision(labels, completed.scores.numpy().flat[hidden])
    return float(_WEIGHTS[int(np.argmax(scores))]) if scores.any() else 0.5
