"""What takes more completions, computed when it is first asked for: open and held-out scores, calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from air_recsys.models.drug_target.similarities import Similarities, without
from air_recsys.models.drug_target.whole import Strengths, Whole, complete_all, lifted
from air_recsys.storage.progress import progress_bar
from air_recsys.storage.threads import in_workers


class Answers:
    """Scores that lack what is recorded of a pair, each computed once.

    Parameters
    ----------
    values, weights, scores : ndarray, shape (n_drugs, n_targets)
        What was recorded, how much each record counts, and the scores that follow.
    unseen : pair of ndarray, shapes (n_drugs,) and (n_targets,)
        The drugs and the targets of which nothing is recorded, such as those that a similarity alone names.
    kept : mapping, optional
        What was computed before: "scores" (open ones), "held_out".
    known_share : float or "auto"
        Share of the true interactions that is recorded; "auto" is the guess of `recorded_share`.
    """

    own: tuple[slice, slice] = (slice(0, None), slice(0, None))  # the pairs that answers are of

    def __init__(
        self,
        values: np.ndarray,
        weights: np.ndarray,
        unseen: tuple[np.ndarray, np.ndarray],
        similarities: Similarities,
        strengths: Strengths,
        scores: np.ndarray,
        kept: Mapping[str, Any] | None = None,
        known_share: float | str = "auto",
    ) -> None:
        self.values, self.weights, self.unseen = values, weights, unseen
        self.similarities, self.strengths = similarities, strengths
        self.scores, self.kept, self._known_share = scores, dict(kept or {}), known_share

    def whole(self, weights: np.ndarray, missing: np.ndarray | None = None) -> Whole:
        """Return the completion of all pairs under other weights, those without a record `lifted` if not said else."""
        found = complete_all(self.values, weights, self.similarities, self.strengths)
        return lifted(found, weights, self.weights == 0 if missing is None else missing)

    @property
    def held(self) -> Whole:
        """The completion of `scores`, for new drugs and targets."""
        return self._once("whole", lambda: self.whole(self.weights))

    @property
    def open_scores(self) -> np.ndarray:
        """The scores, with every recorded 0 scored by a model that lacks it, a tenth of them at a time."""
        return self._once("scores", self._of_zeros)[self.own]

    @property
    def held_out(self) -> HeldOut:
        """Scores of recorded pairs by models that lack them, and deviations of the own scores."""
        return self._once("held_out", self._held_out)

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

    @property
    def known_share(self) -> float:
        """Share of the true interactions that is recorded, given or guessed."""
        return max(self._share(0), _LEAST if self._known_share == "auto" else 0)

    @property
    def least_share(self) -> float:
        """The least that the table allows, within a standard error of `recorded_share`; a given share is sure."""
        return self._share(1)

    def probabilities(self, place: Any, scores: np.ndarray, known: float | None = None) -> np.ndarray:
        r"""Return the probability that pairs with these scores interact.

        Of recorded and of missing pairs it is f, the share of interactions by `calibration`. A pair that is recorded
        as 0, or counts as 0, is one whose interaction would not be known: with c of all true ones known, if not said
        else `known_share`, :math:`\frac{1 - c}{c} \frac{f}{1 - f}`, at most 0.99. Where nothing is recorded of the
        drug or of the target, nobody may have looked, and it is :math:`f / c`.

        Source: Elkan, Noto, Learning Classifiers from Only Positive and Unlabeled Data, KDD 2008.
        """
        zero = (self.weights[self.own][place] > 0) & (self.values[self.own][place] == 0)
        drugs, targets = (each[own][at] for each, own, at in zip(self.unseen, self.own, place, strict=True))
        return self.of_scores(scores, zero, drugs | targets, known)

    def of_scores(
        self, scores: np.ndarray, zero: np.ndarray | bool, unseen: np.ndarray | bool, known: float | None = None
    ) -> np.ndarray:
        """Return the same by scores alone, whether a pair counts as 0, and whether nothing of a side is recorded."""
        share, known = self.calibration.of_scores(scores), known or self.known_share
        unknown = np.where(unseen, share / known, (1 - known) / known * share / np.maximum(1 - share, 1e-12))
        return np.where(zero, np.minimum(unknown, _SURE), share)

    def deviations(self, place: Any, scores: np.ndarray) -> np.ndarray:
        """Return the deviations of these probabilities."""
        apart = self.held_out.deviations[place]
        return (self.probabilities(place, scores + apart) - self.probabilities(place, scores - apart)) / 2

    def shown_for(self, place: tuple[int, int]) -> np.ndarray:
        """Return the weights that the open score of a pair was made with."""
        own = int(np.ravel_multi_index(place, self.weights.shape))
        hidden = [fold for fold in self._folds_of_zeros() if (fold == own).any()]
        return without(self.weights, hidden[0]) if hidden else self.weights

    def _share(self, errors: float) -> float:
        if self._known_share != "auto":
            return float(self._known_share)
        return recorded_share(*self._judged(), errors)

    def _calibrated(self) -> Calibration:
        return Calibration.of(*self._judged())

    def _judged(self) -> tuple[np.ndarray, np.ndarray]:
        """Held-out scores, and which pairs interact, of drugs and targets of which something is recorded."""
        drugs, targets = places = np.nonzero(self.weights)
        seen = ~(self.unseen[0][drugs] | self.unseen[1][targets])
        return self.held_out.scores[seen], self.values[places][seen] == 1

    def _held_out(self) -> HeldOut:
        return held_out(self.weights, lambda shown: self.whole(shown, shown == 0).scores)

    def tenths(self) -> Iterable[tuple[np.ndarray, Whole]]:
        """The completions without a tenth of the records each, with what they lack; kept unless they are large."""
        parts, kept = _tenths(self.weights), self.weights.size <= _KEPT

        def completed(hidden: np.ndarray) -> Whole:
            shown = without(self.weights, hidden)
            return self.whole(shown, shown == 0)

        found = zip(parts, in_turn(completed, parts, "records", together=kept), strict=True)
        return self._once("tenths", lambda: list(found)) if kept else found

    def _of_zeros(self) -> np.ndarray:
        scores, folds = self.scores.copy(), [each for each in self._folds_of_zeros() if each.size]
        found = in_turn(lambda hidden: self.whole(without(self.weights, hidden)).scores.flat[hidden], folds, "zeros")
        for hidden, own in zip(folds, found, strict=True):
            scores.flat[hidden] = own
        return scores

    def _folds_of_zeros(self) -> list[np.ndarray]:
        asked = np.zeros(self.weights.shape, dtype=bool)
        asked[self.own] = (self.weights > 0)[self.own]
        zeros = np.flatnonzero(asked & (self.values == 0))
        return np.array_split(np.random.RandomState(0).permutation(zeros), FOLDS)

    def _once(self, name: str, compute: Callable[[], Any]) -> Any:
        if name not in self.kept:
            self.kept.setdefault(name, compute())
        return self.kept[name]


class OfNewRows(Answers):
    """The same of new drugs (axis 0) or targets (1), the last in all arrays, beside the known ones of `base`.

    The completion and the calibration of the known ones are held.
    """

    def __init__(
        self,
        base: Answers,
        axis: int,
        values: np.ndarray,
        weights: np.ndarray,
        unseen: tuple[np.ndarray, np.ndarray],
        similarities: Similarities,
    ) -> None:
        self.base, self.axis = base, axis
        n_drugs, n_targets = base.values.shape
        self.own = slice(n_drugs * (1 - axis), None), slice(n_targets * axis, None)
        super().__init__(values, weights, unseen, similarities, base.strengths, base.scores)
        self.scores = self.held.scores

    def whole(self, weights: np.ndarray, missing: np.ndarray | None = None) -> Whole:
        """Return the completion of new rows beside that of the known ones, which stays."""
        return self._below(self.base.held, weights, self.weights == 0 if missing is None else missing)

    def _below(self, held: Whole, weights: np.ndarray, missing: np.ndarray) -> Whole:
        if self.axis == 0:
            found = complete_all(self.values, weights, self.similarities, self.strengths, held)
            return lifted(found, weights, missing, held)
        drugs, targets = self.similarities
        turned = self.values.T, weights.T, (targets, drugs)
        found = complete_all(*turned, self.strengths, held.turned)
        return lifted(found, weights.T, missing.T, held.turned).turned

    @property
    def calibration(self) -> Calibration:
        """That of the known ones."""
        return self.base.calibration

    @property
    def least_share(self) -> float:
        """That of the known ones."""
        return self.base.least_share

    @property
    def known_share(self) -> float:
        """That of the known ones."""
        return self.base.known_share

    def _held_out(self) -> HeldOut:
        """Deviations by the completions of the known ones without a tenth each, and without one of the new rows."""
        spread, base = _Spread(self.weights.shape), np.zeros(self.weights.shape, dtype=bool)
        base[tuple(slice(size) for size in self.base.weights.shape)] = True
        recorded = np.flatnonzero((self.weights > 0) & ~base)
        own = np.array_split(np.random.RandomState(1).permutation(recorded), FOLDS)
        for hidden, (of_base, held) in zip(own, self.base.tenths(), strict=False):
            shown = without(self.weights, hidden)
            shown[base] = without(self.base.weights, of_base).ravel()
            spread.add(self._below(held, shown, shown == 0).scores, hidden)
        return HeldOut(np.empty(0), spread.deviations()[self.own])


FOLDS = 10
_KEPT = 2**19  # pairs
_SURE = 0.99
_FIRST = (0.1, 0.25, 0.5, 0.75)
_LEAST = 0.8  # chosen on NR and a made table: benchmarks/reports/drug-target.md
_LARGE = 2**22  # pairs, of which one completion at a time fits

Found = TypeVar("Found")


def in_turn(
    completed: Callable[[np.ndarray], Found], parts: Sequence[np.ndarray], told: str, *, together: bool = True
) -> Iterator[Found]:
    """Yield completions without a part each, in order, with a bar; those of small tables are computed together."""
    with progress_bar(None, total=len(parts), unit="fit", desc=f"scores without a tenth of the {told}") as bar:

        def counted(part: np.ndarray) -> Found:
            found = completed(part)
            bar.update()
            return found

        yield from in_workers(counted, parts) if together and sum(map(len, parts)) <= _LARGE else map(counted, parts)


def recorded_share(scores: np.ndarray, interact: np.ndarray, errors: float = 0) -> float:
    """Return the least share of true interactions that can be recorded, by scores of pairs that lack their record.

    It is the share of recorded ones among the best scores, the largest of those of the first tenth, quarter, half and
    three quarters as many pairs as there are interactions. It is the true one where these are true interactions alone,
    and else too small, as the table alone cannot settle it: f = c p is the same with any c above the largest f. The
    default of the model is therefore 0.8 at least. So many standard errors are taken off.

    Examples
    --------
    >>> recorded_share(np.arange(100.0), np.arange(100) % 10 < 9)
    0.9
    """
    best, number = interact[np.argsort(-scores, kind="stable")], np.count_nonzero(interact)
    shares = [best[: max(round(first * number), 10)] for first in _FIRST]
    least = max(each.mean() - errors * each.std() / np.sqrt(each.size) for each in shares)
    return float(np.clip(least, 1e-3, 0.995))


class HeldOut(NamedTuple):
    """Scores of completions without a part of the records each."""

    scores: np.ndarray  # (n_recorded,), of each recorded pair without itself, in the order of `np.nonzero(weights)`
    deviations: np.ndarray  # (m, n), of the scores of all pairs


def held_out(weights: np.ndarray, completed: Callable[[np.ndarray], np.ndarray]) -> HeldOut:
    """Scores of completions without a tenth of the recorded pairs at a time, the same tenths for the same data."""
    parts, scores, spread = _tenths(weights), np.zeros(weights.size), _Spread(weights.shape)
    for hidden, found in zip(
        parts, in_turn(lambda part: completed(without(weights, part)), parts, "records"), strict=True
    ):
        scores[hidden] = found.flat[hidden]
        spread.add(found, hidden)
    return HeldOut(scores[np.flatnonzero(weights)], spread.deviations())


class _Spread:
    """The deviations of scores among completions, each without those of the pairs that it lacks."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.numbers, self.sums, self.squares = (np.zeros(shape) for _ in range(3))

    def add(self, scores: np.ndarray, hidden: np.ndarray) -> None:
        """Take in one completion and the flat positions of the pairs that it lacks."""
        counts = without(np.ones(scores.shape), hidden)
        self.numbers += counts
        self.sums += counts * scores
        self.squares += counts * scores**2

    def deviations(self) -> np.ndarray:
        """The jackknife's, (m, n)."""
        several = np.maximum(self.numbers, 1)
        spread = np.maximum(self.squares - self.sums**2 / several, 0)
        return np.sqrt(spread * (several - 1) / several)


def _tenths(weights: np.ndarray) -> list[np.ndarray]:
    recorded = np.flatnonzero(weights)
    return np.array_split(np.random.RandomState(1).permutation(recorded), min(FOLDS, recorded.size))


class Calibration(NamedTuple):
    """A map from scores to probabilities: straight lines between knots, constant beyond them."""

    scores: np.ndarray  # (k,), ascending
    probabilities: np.ndarray  # (k,), in (0, 1), not descending

    @classmethod
    def of(cls, scores: np.ndarray, interact: np.ndarray) -> Self:
        """Return the calibration by pairs with these scores, of which some interact."""
        from sklearn.isotonic import IsotonicRegression

        order = np.argsort(scores, kind="stable")
        labels = interact[order].astype(np.float64)
        fitted = IsotonicRegression(y_min=0, y_max=1).fit_transform(scores[order], labels)
        starts = np.flatnonzero(np.diff(fitted, prepend=-1))  # of blocks of one value
        sizes = np.diff(np.append(starts, labels.size))
        drawn = (sizes * fitted[starts] + labels.mean()) / (sizes + 1)
        values = np.maximum.accumulate(np.repeat(drawn, sizes))
        ends = np.unique(np.concatenate([starts, starts + sizes - 1]))
        return cls(scores[order][ends], values[ends])

    def of_scores(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities of scores, in their shape."""
        return np.interp(scores, self.scores, self.probabilities)


def cross_calibrated(scores: np.ndarray, interact: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return the probability of each pair by a calibration that lacks it, a tenth of the pairs at a time, (n,).

    Examples
    --------
    >>> scores, interact = np.repeat([0.1, 0.9], 50), np.repeat([0, 1], 50)
    >>> cross_calibrated(scores, interact)[[0, -1]].round(1).tolist()
    [0.0, 1.0]
    """
    probability = np.empty(scores.size)
    everyone = np.random.default_rng(seed).permutation(scores.size)
    for hidden in np.array_split(everyone, min(FOLDS, scores.size)):
        others = np.setdiff1d(everyone, hidden)
        probability[hidden] = Calibration.of(scores[others], interact[others]).of_scores(scores[hidden])
    return probability
