"""The search of settings: a few forms, trained shortly on a part of the ratings and judged on the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DivergenceError, MemoryLimitError, NumericalError
from air_recsys.models.engines import Engine, ObjectiveEngine
from air_recsys.models.learned import Selection, Trial
from air_recsys.models.settings.forms import Form
from air_recsys.models.solvers import AUTO
from air_recsys.splits import random_holdout
from air_recsys.training import GradientDescent, Record, train

HIDDEN = 0.1
_LONGEST = 0.5  # trainings of one form in one round: longer ones rank no better


def search(
    forms: Sequence[Form],
    engine_of: Callable[[Form], Engine],
    data: Interactions,
    budget: float,
    rng: np.random.Generator,
) -> Selection:
    """The form with the lowest error on hidden ratings, by two rounds of short trainings.

    A tenth of the ratings is hidden at random. In the first round every form is trained for the same share of a
    training, from the start and with a step size that falls to its end; in the second, longer ones of the default,
    which is the first form, and of the best other one. Both together take `budget` trainings at most. The other one
    has to be better than the default by more than the standard error of the difference. An error of the default that
    is still falling fast counts as what it falls to in a whole training.

    Ctrl-C ends the search with the best form so far; a signal that ends the process raises as in a training.
    """
    split = random_holdout(data, HIDDEN, random_state=rng)
    shown, hidden = data.select(split.train), data.select(split.test)
    seed = int(rng.integers(2**63 - 1))
    candidates = [Candidate(form, engine_of(form), shown, hidden, seed) for form in forms]
    interrupted = False
    try:
        _compete(candidates, budget)
    except KeyboardInterrupt:
        interrupted = True
    return selection_of(candidates, interrupted)


@dataclass(eq=False)
class Candidate:
    """A form in the search: its training, and its errors after each round."""

    form: Form
    engine: Engine
    shown: Interactions
    hidden: Interactions
    seed: int
    shares: list[float] = field(default_factory=list)
    errors: list[np.ndarray] = field(default_factory=list)  # squared, of the hidden ratings, a round each
    fewer: dict[str, int] = field(default_factory=dict)  # values of a training with fewer exact epochs, if better

    @property
    def rmse(self) -> float:
        """The error after the last round, infinite before the first."""
        return _rmse(self.errors[-1]) if self.errors else math.inf

    def go_on(self, share: float) -> None:
        """Train for a share of a training; what fails has infinite errors."""
        errors = self._trained(share)
        self.errors.append(errors)
        self.shares.append(share)

    def _trained(self, share: float) -> np.ndarray:
        failed = np.full(self.hidden.n_ratings, math.inf)
        completes = isinstance(self.engine, ObjectiveEngine) and self.engine.exact_epochs(self.shown) > 0
        by_epoch: dict[int, np.ndarray] = {}
        callbacks = []
        try:
            held_out = self.hidden if completes else None
            trainer = self.engine.start(self.shown, held_out, np.random.default_rng(self.seed))
            if isinstance(trainer, GradientDescent):
                trainer.shorten(share)
                callbacks = [_judge(trainer, by_epoch)] if completes else []
            elif self.errors:  # sweeps are few: they were all taken in the first round
                return self.errors[-1]
            result = train(trainer, callbacks=callbacks)
        except (NumericalError, MemoryLimitError):
            return failed
        if isinstance(result.error, DivergenceError | MemoryLimitError):
            return failed
        if result.error is not None:
            raise result.error
        if by_epoch:
            return self._best_of(by_epoch)
        scores = self.engine.factors().scores(self.hidden.user_index, self.hidden.item_index)
        return self.hidden.misses(scores) ** 2

    def _best_of(self, by_epoch: dict[int, np.ndarray]) -> np.ndarray:
        """The errors after all exact epochs, or after fewer of them where these are better by more than chance."""
        assert isinstance(self.engine, ObjectiveEngine)
        last = max(by_epoch)
        best = min(by_epoch, key=lambda count: by_epoch[count].mean())
        self.fewer = {}
        if getattr(self.engine.terms, "exact_epochs", 0) != AUTO or not _is_above_chance(
            by_epoch[last] - by_epoch[best]
        ):
            return by_epoch[last]
        self.fewer = {"exact_epochs": best}
        if self.engine.descent.n_epochs == AUTO or "n_epochs" in self.form.values:
            self.fewer["n_epochs"] = self.engine.plan(self.shown).n_descent + best
        return by_epoch[best]


def _judge(trainer: GradientDescent, by_epoch: dict[int, np.ndarray]) -> Callable[[Record], None]:
    """A callback that keeps the squared errors on the hidden ratings by the number of exact epochs."""

    def judge(record: Record) -> None:
        if record.epoch >= trainer.plan.n_descent:
            by_epoch[record.epoch - trainer.plan.n_descent] = trainer.squared_errors().double().cpu().numpy()

    return judge


def _compete(candidates: list[Candidate], budget: float) -> None:
    """Train all, then longer the default, which short trainings may wrong, and the best of the others."""
    rounds = 1 if len(candidates) == 2 else 2  # of equal cost
    _train_each(candidates, budget / rounds)
    if rounds == 2:
        default, *others = candidates
        _train_each([default, min(others, key=lambda candidate: candidate.rmse)], budget / rounds)


def _train_each(candidates: list[Candidate], budget: float) -> None:
    for candidate in candidates:
        candidate.go_on(min(budget / len(candidates), _LONGEST))


def selection_of(candidates: list[Candidate], interrupted: bool) -> Selection:
    """The selection of the best candidate, the first where none has a sure lead over it."""
    default = candidates[0]
    rounds = max(len(candidate.errors) for candidate in candidates)
    # Errors after rounds of different lengths do not compare: the best of those that came furthest.
    best = min(
        (candidate for candidate in candidates if len(candidate.errors) == rounds),
        key=lambda candidate: candidate.rmse,
    )
    if not _is_better(best, default):
        best = default
    trials = tuple(
        Trial(candidate.form.name, share, _rmse(errors))
        for candidate in candidates
        for share, errors in zip(candidate.shares, candidate.errors, strict=True)
    )
    line = _line(best, default, candidates) + ("; the search was interrupted" if interrupted else "")
    return Selection(best.form.values | best.fewer, best.form.name, trials, line, interrupted)


def _is_better(candidate: Candidate, default: Candidate) -> bool:
    """Whether a candidate is better than the default by more than the standard error of the difference.

    Not by a single rating, and not only because the default needs the steps of a whole training.
    """
    last = len(default.errors) - 1
    if candidate is default or last < 0 or not math.isfinite(candidate.rmse):
        return False
    if not math.isfinite(default.rmse):
        return True
    gains = default.errors[last] * _still_to_fall(default) ** 2 - candidate.errors[last]
    return _is_above_chance(gains)


def _is_above_chance(gains: np.ndarray) -> bool:
    """Whether gains have a mean above their standard error, and not by a single one."""
    above_chance = float(gains.mean()) > float(gains.std()) / math.sqrt(gains.size)
    return above_chance and float(gains.sum()) > float(gains.max())


def _still_to_fall(candidate: Candidate) -> float:
    """The RMSE after a whole training over the last one, by the power of the length that it fell with.

    1 where it fell slower than in inverse proportion to the length: noise stops it, or the form does.
    """
    if len(candidate.errors) < 2:
        return 1.0
    growth = candidate.shares[-1] / candidate.shares[-2]
    fall = _rmse(candidate.errors[-1]) / _rmse(candidate.errors[-2])
    falls_fast = growth > 1 and 0 < fall <= 1 / growth
    return candidate.shares[-1] ** (-math.log(fall) / math.log(growth)) if falls_fast else 1.0


def _line(best: Candidate, default: Candidate, candidates: list[Candidate]) -> str:
    others = [candidate for candidate in candidates if candidate is not best and candidate.errors]
    if not best.errors or not others:
        return f"settings: {best.form.name}, the default"
    rival = min(others, key=lambda candidate: (-len(candidate.errors), candidate.rmse)) if best is default else default
    last = min(len(best.errors), len(rival.errors)) - 1
    errors = [_rmse(each.errors[last]) for each in (best, rival)]
    beside = f"{rival.form.name}{', the default,' if rival is default else ''} has {errors[1]:.4g}"
    beside += ", no sure lead" if errors[1] < errors[0] else ""
    return f"settings: {best.form.name}, RMSE {errors[0]:.4g} on {best.hidden.n_ratings} hidden ratings; {beside}"


def _rmse(squared_errors: np.ndarray) -> float:
    return math.sqrt(float(squared_errors.mean()))


STRENGTHS = 0.0, 0.1, 0.3, 0.7
_ENOUGH, _MOST_HIDDEN = 5000, 0.3  # ratings, and their largest share: strengths differ by little


def search_strengths(
    names: Sequence[str],
    engine_of: Callable[[Form], Engine],
    data: Interactions,
    rng: np.random.Generator,
) -> tuple[Selection, Candidate]:
    """The strengths with the lowest errors on hidden ratings, one parameter after the other, and their training.

    Each takes all sweeps, or half of the epochs. Ctrl-C ends the search with the best so far. Without names there is
    one training.
    """
    hidden_share = max(HIDDEN, min(_MOST_HIDDEN, _ENOUGH / data.n_ratings))
    split = random_holdout(data, hidden_share, random_state=rng)
    shown, hidden = data.select(split.train), data.select(split.test)
    seed, chosen = int(rng.integers(2**63 - 1)), Selection()
    candidates: list[Candidate] = []
    for name in names or [None]:
        forms = [Form("")]
        if name is not None:
            forms = [Form(f"{name}={strength:g}", chosen.values | {name: strength}) for strength in STRENGTHS]
        candidates = [Candidate(form, engine_of(form), shown, hidden, seed) for form in forms]
        interrupted = False
        try:
            for candidate in candidates:
                candidate.go_on(_LONGEST if isinstance(candidate.engine, ObjectiveEngine) else 1.0)
        except KeyboardInterrupt:
            interrupted = True
        found = selection_of(candidates, interrupted)
        chosen = joined(chosen, found) if names else replace(chosen, interrupted=interrupted)
        if interrupted:
            break
    return chosen, next(each for each in candidates if each.form.values | each.fewer == chosen.values)


def joined(first: Selection, then: Selection) -> Selection:
    """The selections of two searches as one, one after the other."""
    return replace(
        then,
        values=first.values | then.values,
        form=", ".join(form for form in (first.form, then.form) if form),
        trials=first.trials + then.trials,
        line="; ".join(line for line in (first.line, then.line.removeprefix(first.line and "settings: ")) if line),
        interrupted=first.interrupted or then.interrupted,
    )
