"""The trials of a search: each is drawn, trained, and given up or scored on a held-out part."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import check_fraction
from air_recsys.evaluation.folds import holdout_folds
from air_recsys.evaluation.tuning.space import Domain, start, suggest
from air_recsys.exceptions import DataError, DivergenceError
from air_recsys.metrics import auroc, average_precision, mae, ranking_report, rmse
from air_recsys.models import AIR
from air_recsys.models.learned import Factors
from air_recsys.models.ratings import Clip, is_binary, limited
from air_recsys.models.solvers import Sweeping
from air_recsys.storage.validation import check_choice, import_extra
from air_recsys.training import Record

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial


StudyCallback = Callable[["Study", "FrozenTrial"], None]
"""Optuna's: called with the study and a finished trial."""
_CHECKS = 10  # shares of a trial's course after which it can be given up
_WARM_UP = 2  # the first shares, after which it cannot
_LIST_LENGTH = 10


class Runner:
    """The trials of a search."""

    def __init__(self, holdout: Holdout, preset: str, space: dict[str, Domain], common: dict[str, Any]) -> None:
        self.optuna = import_extra("optuna", "tune")
        self.holdout, self.preset, self.space, self.common = holdout, preset, space, common

    def run(self, study: Study, n_trials: int, timeout: float | None, callbacks: list[StudyCallback]) -> None:
        """Complete a study to `n_trials` trials, the first of them with the preset's own settings."""
        study.pruner = self.optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=_WARM_UP + 1)
        self._reseed(study)
        missing = n_trials - len(counted(study))
        if missing <= 0:
            return
        states = self.optuna.trial.TrialState
        if missing == n_trials and not study.get_trials(deepcopy=False, states=(states.WAITING,)):
            study.enqueue_trial(start(self.preset, self.space, self.holdout.training))
        study.optimize(self.trial, n_trials=missing, timeout=timeout, callbacks=[self._reseed, *callbacks])

    def _reseed(self, study: Study, _: FrozenTrial | None = None) -> None:
        """Seed the sampler by the number of trials, so that a resumed study draws the same as an uninterrupted one."""
        seed = np.random.SeedSequence([self.common["random_state"], len(counted(study))]).generate_state(1)[0]
        study.sampler = self.optuna.samplers.TPESampler(seed=int(seed))

    def trial(self, trial: Trial) -> float:
        """Train and score one setting."""
        begin = time.perf_counter()
        model = AIR.of_preset(self.preset, **self.common, **suggest(trial, self.space))
        if isinstance(model.solver, Sweeping):  # judged by factors alone, which depend on no graph
            model.set_params(solver__user_graph_reg=0, solver__item_graph_reg=0)
        try:
            model.fit(self.holdout.training, callbacks=[self._watch(model, trial)])
        except DivergenceError as error:
            trial.set_user_attr("diverged", str(error))
            raise self.optuna.TrialPruned(str(error)) from None
        finally:
            trial.set_user_attr("seconds", time.perf_counter() - begin)
        return self.holdout.score(model.factors_, model.clip)

    def _watch(self, model: AIR, trial: Trial) -> Callable[[Record], None]:
        """Report a trial's score after every tenth of its course, and give up where the median is better."""
        reported, length = 0, model.engine().n_steps(self.holdout.training)

        def watch(record: Record) -> None:
            nonlocal reported
            share = _CHECKS * record.epoch // length
            if not reported < share < _CHECKS:
                return
            reported = share
            trial.report(self.holdout.score(model.current_factors(), model.clip), share)
            if trial.should_prune():
                message = f"worse than the median after {record.epoch} of {length} epochs or sweeps"
                raise self.optuna.TrialPruned(message)

        return watch


def counted(study: Study) -> list[FrozenTrial]:
    """The trials that ended by themselves: complete, given up or diverged."""
    states = import_extra("optuna.trial", "tune").TrialState
    return study.get_trials(deepcopy=False, states=(states.COMPLETE, states.PRUNED))


def diverged(trial: FrozenTrial) -> bool:
    """Whether a trial left the finite numbers."""
    return "diverged" in trial.user_attrs


def row(trial: FrozenTrial) -> dict[str, Any]:
    """A finished trial as a row of a table."""
    # The value of a trial that was given up is its last report.
    value = trial.value if trial.state.name == "COMPLETE" else math.nan
    state = "diverged" if diverged(trial) else trial.state.name.lower()
    seconds = trial.user_attrs["seconds"]
    return {"trial": trial.number, "value": value, "state": state, "seconds": seconds} | trial.params


class Metric(NamedTuple):
    """A measure with its direction in Optuna's words, and whether it needs labels 0 and 1."""

    direction: str
    on_labels: bool
    of_pairs: Callable[[np.ndarray, np.ndarray], float] | None = None  # None ranks all items for each user


METRICS: dict[str, Metric] = {
    "rmse": Metric("minimize", False, rmse),
    "mae": Metric("minimize", False, mae),
    "average_precision": Metric("maximize", True, average_precision),
    "auroc": Metric("maximize", True, auroc),
    "ndcg_at_k": Metric("maximize", False),
}
"""The measures of `tune`, as `air_recsys.metrics` defines them; k is 10."""


class Holdout:
    """A fixed random part of the training data, and the score of factors on it.

    Attributes
    ----------
    training, validation : Interactions
        Two disjoint parts of `data` over the same users and items.
    """

    def __init__(self, data: Interactions, fraction: float, metric: str, random_state: int) -> None:
        self.metric = METRICS[check_choice("metric", metric, list(METRICS))]
        check_fraction("validation_fraction", fraction)
        _, self.training, self.validation = holdout_folds(data, fraction, random_state)[0]
        ratings = np.unique(self.validation.ratings)
        if self.metric.on_labels and ratings.tolist() != [0, 1]:
            raise DataError(
                f"metric={metric!r} needs ratings 0 and 1, both of them in the validation part, found "
                f"{', '.join(f'{value:g}' for value in ratings[:5])}"
            )
        if self.metric.of_pairs is None and not ratings.any():
            raise DataError(f"metric={metric!r} needs ratings other than 0 in the validation part, found none")

    def score(self, factors: Factors, clip: Clip) -> float:
        """The score of factors over the users and items of the data, predicted as `predict` does."""
        measure = self.metric.of_pairs
        if measure is None:
            return self._rank(factors)
        scores = factors.scores(self.validation.user_index, self.validation.item_index)
        ratings = self.training.ratings
        scale = float(ratings.min()), float(ratings.max())
        return measure(self.validation.ratings, limited(scores, clip, scale, binary=is_binary(ratings)))

    def _rank(self, factors: Factors) -> float:
        def score_block(users: np.ndarray) -> np.ndarray:
            products = factors.user_factors[users] @ factors.item_factors.T
            return products + factors.user_biases[users, None] + factors.item_biases

        k = min(_LIST_LENGTH, self.validation.n_items)
        relevant, seen = self.validation.to_csr(), self.training.to_csr()
        return ranking_report(score_block, relevant, seen, k)["ndcg_at_k"]
