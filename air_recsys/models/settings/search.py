"""The search of settings: a few forms, trained shortly on a part of the ratings and judged on the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DivergenceError, MemoryLimitError, NumericalError
from air_recsys.models.chosen import Chosen, Trial
from air_recsys.models.engines import Engine
from air_recsys.models.settings.forms import Form
from air_recsys.splits import random_holdout
from air_recsys.training import GradientDescent, train

HIDDEN = 0.1
_LONGEST = 0.5  # trainings of one form in one round: longer ones rank no better


def search(
    forms: Sequence[Form],
    engine_of: Callable[[Form], Engine],
    data: Interactions,
    budget: float,
    rng: np.random.Generator,
) -> Chosen:
    """Return the form with the lowest error on hidden ratings, by two rounds of short trainings.

    A tenth of the ratings is hidden at random. In the first round every form is trained for the same share of a
    training, from the start and with a step size that falls to its end; in the second, longer ones of the default,
    which is the first form, and of the best other one. Both together take `budget` trainings at most. The other one
    has to be better than the default by more than the standard error of the difference. An error of the default that
    is still falling fast counts as what it falls to in a whole training.

    Parameters
    ----------
    forms : sequence of Form
        At least two, the default first.
    engine_of : callable
        Returns the engine of a form, not started.
    data : Interactions
    budget : float
        In trainings, counted in epochs.
    rng : Generator

    Returns
    -------
    Chosen

    Ctrl-C ends the search with the best form so far; a signal that ends the process raises as in a training.
    """
    split = random_holdout(data, HIDDEN, random_state=rng)
    shown, hidden = data.select(split.train), data.select(split.test)
    seed = int(rng.integers(2**63 - 1))
    entrants = [Entrant(form, engine_of(form), shown, hidden, seed) for form in forms]
    interrupted = False
    try:
        _compete(entrants, budget)
    except KeyboardInterrupt:
        interrupted = True
    return verdict(entrants, interrupted)


@dataclass(eq=False)
class Entrant:
    """A form in the search: its training, and its errors after each round."""

    form: Form
    engine: Engine
    shown: Interactions
    hidden: Interactions
    seed: int
    shares: list[float] = field(default_factory=list)
    errors: list[np.ndarray] = field(default_factory=list)  # squared, of the hidden ratings, a round each

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
        try:
            trainer = self.engine.start(self.shown, None, np.random.default_rng(self.seed))
            if isinstance(trainer, GradientDescent):
                trainer.shorten(max(1, math.ceil(share * self.engine.n_steps(self.shown))))
            elif self.errors:  # sweeps are few: they were all taken in the first round
                return self.errors[-1]
            result = train(trainer)
        except (NumericalError, MemoryLimitError):
            return failed
        if isinstance(result.error, DivergenceError | MemoryLimitError):
            return failed
        if result.error is not None:
            raise result.error
        scores = self.engine.factors().scores(self.hidden.user_index, self.hidden.item_index)
        return (scores - self.hidden.ratings) ** 2


def _compete(entrants: list[Entrant], budget: float) -> None:
    """Train all, then longer the default, which short trainings may wrong, and the best of the others."""
    rounds = 1 if len(entrants) == 2 else 2  # of equal cost
    _train_each(entrants, budget / rounds)
    if rounds == 2:
        default, *others = entrants
        _train_each([default, min(others, key=lambda entrant: entrant.rmse)], budget / rounds)


def _train_each(entrants: list[Entrant], budget: float) -> None:
    for entrant in entrants:
        entrant.go_on(min(budget / len(entrants), _LONGEST))


def verdict(entrants: list[Entrant], interrupted: bool) -> Chosen:
    """Return what the best of some entrants sets, the first where none has a sure lead over it."""
    default = entrants[0]
    rounds = max(len(entrant.errors) for entrant in entrants)
    # Errors after rounds of different lengths do not compare: the best of those that came furthest.
    best = min((entrant for entrant in entrants if len(entrant.errors) == rounds), key=lambda entrant: entrant.rmse)
    if not _is_better(best, default):
        best = default
    trials = tuple(
        Trial(entrant.form.name, share, _rmse(errors))
        for entrant in entrants
        for share, errors in zip(entrant.shares, entrant.errors, strict=True)
    )
    line = _line(best, default, entrants) + ("; the search was interrupted" if interrupted else "")
    return Chosen(best.form.values, best.form.name, trials, line, interrupted)


def _is_better(entrant: Entrant, default: Entrant) -> bool:
    """Return whether an entrant is better than the default by more than the standard error of the difference.

    Not by a single rating, and not only because the default needs the steps of a whole training.
    """
    last = len(default.errors) - 1
    if entrant is default or last < 0 or not math.isfinite(entrant.rmse):
        return False
    if not math.isfinite(default.rmse):
        return True
    gains = default.errors[last] * _still_to_fall(default) ** 2 - entrant.errors[last]
    above_chance = float(gains.mean()) > float(gains.std()) / math.sqrt(gains.size)
    return above_chance and float(gains.sum()) > float(gains.max())


def _still_to_fall(entrant: Entrant) -> float:
    """Return the RMSE after a whole training over the last one, by the power of the length that it fell with.

    1 where it fell slower than in inverse proportion to the length: noise stops it, or the form does.
    """
    if len(entrant.errors) < 2:
        return 1.0
    growth = entrant.shares[-1] / entrant.shares[-2]
    fall = _rmse(entrant.errors[-1]) / _rmse(entrant.errors[-2])
    falls_fast = growth > 1 and 0 < fall <= 1 / growth
    return entrant.shares[-1] ** (-math.log(fall) / math.log(growth)) if falls_fast else 1.0


def _line(best: Entrant, default: Entrant, entrants: list[Entrant]) -> str:
    others = [entrant for entrant in entrants if entrant is not best and entrant.errors]
    if not best.errors or not others:
        return f"settings: {best.form.name}, the default"
    rival = min(others, key=lambda entrant: (-len(entrant.errors), entrant.rmse)) if best is default else default
    last = min(len(best.errors), len(rival.errors)) - 1
    errors = [_rmse(each.errors[last]) for each in (best, rival)]
    beside = f"{rival.form.name}{', the default,' if rival is default else ''} has {errors[1]:.4g}"
    beside += ", no sure lead" if errors[1] < errors[0] else ""
    return f"settings: {best.form.name}, RMSE {errors[0]:.4g} on {best.hidden.n_ratings} hidden ratings; {beside}"


def _rmse(squared_errors: np.ndarray) -> float:
    return math.sqrt(float(squared_errors.mean()))
