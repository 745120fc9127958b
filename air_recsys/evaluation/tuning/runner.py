"""The trials of a search: each is drawn, trained, and given up or scored."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from air_recsys.evaluation.tuning.score import Holdout
from air_recsys.evaluation.tuning.space import Domain, start, suggest
from air_recsys.exceptions import DivergenceError
from air_recsys.models import AIR
from air_recsys.models.solvers import Sweeping
from air_recsys.storage.validation import import_extra
from air_recsys.training import Record

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial

StudyCallback = Callable[["Study", "FrozenTrial"], None]
"""Optuna's: called with the study and a finished trial."""

_CHECKS = 10  # shares of a trial's course after which it can be given up
_WARM_UP = 2  # the first shares, after which it cannot


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
        if isinstance(model.solver, Sweeping):  # its scores do not depend on the graphs
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
    """Return the trials that ended by themselves: complete, given up or diverged."""
    states = import_extra("optuna.trial", "tune").TrialState
    return study.get_trials(deepcopy=False, states=(states.COMPLETE, states.PRUNED))


def diverged(trial: FrozenTrial) -> bool:
    """Return whether a trial left the finite numbers."""
    return "diverged" in trial.user_attrs


def row(trial: FrozenTrial) -> dict[str, Any]:
    """Return a finished trial as a row of a table."""
    # The value of a trial that was given up is its last report.
    value = trial.value if trial.state.name == "COMPLETE" else math.nan
    state = "diverged" if diverged(trial) else trial.state.name.lower()
    seconds = trial.user_attrs["seconds"]
    return {"trial": trial.number, "value": value, "state": state, "seconds": seconds} | trial.params
