"""What takes more completions, computed when it is first asked for: open and held-out scores, calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from air_recsys.models.drug_target.calibration import FOLDS, Calibration, HeldOut, held_out
from air_recsys.models.drug_target.sides import Similarities, without
from air_recsys.models.drug_target.whole import Strengths, Whole, complete_all


class Answers:
    """Scores that lack what is recorded of a pair, each computed once.

    Parameters
    ----------
    values, weights, scores : ndarray, shape (n_drugs, n_targets)
        What was recorded, how much each record counts, and the scores that follow.
    similarities : pair of ndarray or None
    strengths : Strengths
    kept : mapping, optional
        What was computed before: "scores" (open ones), "held_out".
    """

    def __init__(
        self,
        values: np.ndarray,
        weights: np.ndarray,
        similarities: Similarities,
        strengths: Strengths,
        scores: np.ndarray,
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        self.values, self.weights, self.similarities, self.strengths = values, weights, similarities, strengths
        self._scores, self.kept = scores, dict(kept or {})

    def whole(self, weights: np.ndarray) -> Whole:
        """Return the completion of all pairs under other weights."""
        return complete_all(self.values, weights, self.similarities, self.strengths)

    @property
    def open_scores(self) -> np.ndarray:
        """The scores, with every recorded 0 scored by a model that lacks it, a tenth of them at a time."""
        return self._once("scores", self._of_zeros)

    @property
    def held_out(self) -> HeldOut:
        """Scores of recorded pairs by models that lack them, and deviations of all scores."""
        return self._once("held_out", lambda: held_out(self.weights, lambda shown: self.whole(shown).scores))

    @property
    def held_out_counts(self) -> np.ndarray:
        """A baseline: products of counts of interactions, plus 1, without a tenth of the records, the pair in it."""

        def products(shown: np.ndarray) -> np.ndarray:
            known = np.where(shown > 0, self.values, 0)
            return np.outer(known.sum(axis=1) + 1, known.sum(axis=0) + 1)

        return held_out(self.weights, products).scores

    @property
    def calibration(self) -> Calibration:
        """From scores to probabilities, by the held-out ones."""
        return self._once("calibration", self._calibrated)

    def shown_for(self, place: tuple[int, int]) -> np.ndarray:
        """Return the weights that the open score of a pair was made with."""
        own = int(np.ravel_multi_index(place, self.weights.shape))
        hidden = [fold for fold in self._folds_of_zeros() if (fold == own).any()]
        return without(self.weights, hidden[0]) if hidden else self.weights

    def _calibrated(self) -> Calibration:
        return Calibration.of(self.held_out.scores, self.values.flat[np.flatnonzero(self.weights)] == 1)

    def _of_zeros(self) -> np.ndarray:
        scores = self._scores.copy()
        for hidden in self._folds_of_zeros():
            scores.flat[hidden] = self.whole(without(self.weights, hidden)).scores.flat[hidden]
        return scores

    def _folds_of_zeros(self) -> list[np.ndarray]:
        zeros = np.flatnonzero((self.weights > 0) & (self.values == 0))
        return np.array_split(np.random.RandomState(0).permutation(zeros), FOLDS)

    def _once(self, name: str, compute: Callable[[], Any]) -> Any:
        if name not in self.kept:
            self.kept.setdefault(name, compute())
        return self.kept[name]
