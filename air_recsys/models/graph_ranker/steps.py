"""How many steps the factors of a `GraphRanker` are trained: as many as make the best lists on the hidden parts.

The step size falls to 0 over all steps of a training. One that is stopped early is the same training, cut short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from air_recsys.models.graph_ranker.factors import Begin, ItemFactors
from air_recsys.models.graph_ranker.hidden import HeldOut
from air_recsys.models.graph_ranker.progress import Progress, State
from air_recsys.training.checkpoint import of_this_training

_PARTS = 6  # of a training; its lists are measured after the second, and after each one that follows
_PATIENCE = 2  # measurements without a gain after which training stops
_FOR_FACTORS = 0.3  # share of a time budget without which it is no use to start
_NAME = "steps"


def measured_steps(n_steps: int) -> list[int]:
    """The numbers of steps after which lists are measured.

    Examples
    --------
    >>> measured_steps(150), measured_steps(2)
    ([50, 75, 100, 125, 150], [1, 2])
    """
    return sorted({-(-n_steps * part // _PARTS) for part in range(2, _PARTS + 1)})


class StepSearch:
    """Trainings of the factors on all hidden parts, in step with each other, and the best number of steps.

    Parameters
    ----------
    ways : sequence of HeldOut
        Which take the factors.
    begin : callable
        Returns the `FactorTraining` of a pattern.
    progress : Progress
        Goes on from what it holds. Training also ends where the next steps, and the training that follows the search,
        would take longer than what is left of its budget.
    """

    def __init__(self, ways: Sequence[HeldOut], begin: Begin, progress: Progress) -> None:
        self._ways, self._progress, self._budget = ways, progress, progress.budget
        self._trainings = [begin(way.shown) for way in ways]
        self._speed = 0.0  # seconds of a step, over all trainings so far
        self._best, self._kept = 0, list[ItemFactors]()
        if _NAME in progress.state:
            with of_this_training():
                self._load(progress.state[_NAME])

    def best(self, measure: Callable[[int], float]) -> int:
        """The best number of steps, whose factors the ways have then; 0 without time for any.

        Parameters
        ----------
        measure : callable
            Returns how good lists are with the factors that the ways have, after so many steps.
        """
        if self._trainings:
            self._search(measure)
            self._trainings.clear()  # several times the bytes of the factors
            self._progress.keep(self._state)
        for way, factors in zip(self._ways, self._kept, strict=False):
            way.use_factors(factors)
        return self._best

    def share_for_last(self) -> float:
        """The share of the time budget that a training of the best number of steps takes."""
        return self._speed * self._best / self._budget.seconds

    def _search(self, measure: Callable[[int], float]) -> None:
        highest, waited = -1.0, 0
        for step in measured_steps(self._trainings[0].n_steps):
            if not self._advance(step):
                break
            ndcg = measure(step)
            waited += 1
            if ndcg > highest:
                highest, waited = ndcg, 0
                self._keep(step)
            if waited >= _PATIENCE:
                break
            self._progress.keep(self._state)

    def _advance(self, step: int) -> bool:
        """Train all to a number of steps, and return whether there is time for that, and for the last training."""
        for number, training in enumerate(self._trainings):
            if training.step >= step:
                continue
            if not self._has_time(number, step):
                return False
            begun = self._budget.spent() - self._speed * sum(self._steps())
            self._progress.train(training, step, lambda t=begun: self._timed(t))
            self._timed(begun)
        if set(self._steps()) == {step}:
            for way, training in zip(self._ways, self._trainings, strict=True):
                way.use_factors(training.factors())
        return self._has_time(len(self._trainings), step)

    def _has_time(self, number: int, step: int) -> bool:
        """Whether the trainings from a number on, and a last training, can come to a step."""
        if not self._speed:
            return self._budget.has(_FOR_FACTORS)
        missing = sum(step - training.step for training in self._trainings[number:])
        return self._speed * (missing + step) <= self._budget.left()

    def _steps(self) -> list[int]:
        return [training.step for training in self._trainings]

    def _keep(self, step: int) -> None:
        """Keep the factors of all ways, unless what was read from a checkpoint has come further."""
        if set(self._steps()) == {step}:
            self._best, self._kept = step, [way.factors for way in self._ways]

    def _timed(self, begun: float) -> State:
        """The state, where the first step of all trainings was begun then, had they never stopped."""
        self._speed = (self._budget.spent() - begun) / sum(self._steps())
        return self._state()

    def _state(self) -> State:
        trainings = [training.state() for training in self._trainings]
        return {_NAME: {"trainings": trainings, "speed": self._speed, "best": self._best, "kept": self._kept}}

    def _load(self, state: State) -> None:
        self._speed, self._best = float(state["speed"]), int(state["best"])
        self._kept = [ItemFactors(*each) for each in state["kept"]]
        for training, factors in zip(self._trainings, self._kept, strict=bool(self._best)):
            training.check(factors)
        if not state["trainings"]:
            self._trainings.clear()
        for training, own in zip(self._trainings, state["trainings"], strict=True):
            training.load_state(own)
