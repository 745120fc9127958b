"""Gradient descent on an objective: Adam's steps, the graphs' refreshes, and what shows that it diverges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from air_recsys.nn.exact import exact_epoch
from air_recsys.nn.objective import Objective, Observations, State
from air_recsys.storage.lazy import Tensor, torch, without_gradients
from air_recsys.storage.threads import LITTLE, one_thread
from air_recsys.training.plan import LEAST_REFRESH, SCHEDULES, Plan
from air_recsys.training.steps import make_stepper, moments_of
from air_recsys.training.trainer import Adjacencies, Measures, Record, Trainer

# An objective this many times its start (or 1, the size of scaled data) is never on its way to a minimum.
_DIVERGED = 1e3
EXACT_RECORDS = 0, 1, 2, 5, 10, 20, 40
"""Exact epochs with a record, beside the last one."""


class GradientDescent(Trainer):
    """An objective that is minimised by Adam: a `Trainer` in epochs.

    Parameters
    ----------
    objective : Objective
        Its tensors are trained in place.
    plan : Plan
    validation : Observations, optional
        Observed entries that `objective` has not seen.
    validation_unit : float
        What one unit of `validation` is to the reader of the records.
    alone : bool
        False where the processes of a group train parts of one objective.
    """

    unit, first_record, checks_steps = "epoch", 0, False

    @without_gradients
    def __init__(
        self,
        objective: Objective,
        plan: Plan,
        validation: Observations | None = None,
        validation_unit: float = 1.0,
        *,
        alone: bool = True,
    ) -> None:
        self.objective, self.plan, self.alone = objective, plan, alone
        self.n_steps, self.evaluate_every = plan.n_epochs, plan.evaluate_every
        self.watches_every_step = plan.stopping_delta is not None
        self._validation, self._validation_unit = validation, validation_unit
        # Each part of the logits is stepped once an epoch, the rest once a batch.
        n_parts = max((len(laplacian.parts) for laplacian in objective.laplacians), default=1)
        rates = ((objective.model_parameters(), 1.0), (objective.logits(), plan.graph_rate * n_parts))
        groups = [{"params": tensors, "rate": rate} for tensors, rate in rates if tensors]
        self._stepper = make_stepper(objective, groups, plan.learning_rate)
        self.optimizer = self._stepper.optimizer
        self._previous_objective = math.inf
        self._held = one_thread if _numbers(objective) < LITTLE else nullcontext
        self._has_gradients = False
        self._refresh_graphs()

    @property
    def is_watched(self) -> bool:
        """Whether there are held-out entries."""
        return self._validation is not None

    def is_due(self, position: int) -> bool:
        """Whether there is a record: every `evaluate_every` epochs, and after some of the exact ones."""
        return super().is_due(position) or position - self.plan.n_descent in EXACT_RECORDS

    def advance(self, position: int) -> None:
        """Take the steps of an epoch, and let the graphs choose their edges anew where that is due; or complete X."""
        with self._held():
            if position >= self.plan.n_descent:
                self._stepper.forget(for_good=True)
                exact_epoch(self.objective, first=position == self.plan.n_descent)
            else:
                self._descend(position)
        self._has_gradients = False

    def _descend(self, position: int) -> None:
        n_batches = len(self.objective.batches)
        for batch in range(n_batches):
            rate = self._learning_rate(position + batch / n_batches)
            self._stepper.step(batch, rate, evaluated=self._has_gradients)
        reached = position + 1
        if reached < self.plan.n_descent and reached % self.plan.graph_refresh == 0:
            self._refresh_graphs()

    def shorten(self, share: float) -> None:
        """Train for a share of the epochs of the plan, and all of its exact ones.

        The step size falls to their end. The logits travel as far as in the whole training, and the edges are chosen
        anew as often, but no more than every tenth epoch.
        """
        n_descent = max(1, math.ceil(share * self.plan.n_descent))
        share, n_epochs = n_descent / self.plan.n_descent, n_descent + self.plan.exact_epochs
        refresh = max(int(share * self.plan.graph_refresh), min(self.plan.graph_refresh, LEAST_REFRESH))
        self.plan, self.n_steps = replace(self.plan, n_epochs=n_epochs, graph_refresh=refresh), n_epochs
        if self.objective.logits():
            self.optimizer.param_groups[-1]["rate"] /= share

    def _refresh_graphs(self) -> None:
        refreshed = self.objective.refresh_graphs()
        if refreshed:
            self._stepper.forget()
        for logits, carry in refreshed:
            for moment in self.optimizer.state[logits].values():
                if isinstance(moment, torch.Tensor) and moment.shape == logits.shape:
                    moment.copy_(carry(moment))

    def _learning_rate(self, epoch: float) -> float:
        n_descent = self.plan.n_descent
        if epoch > n_descent:
            return math.nan
        return self.plan.learning_rate * SCHEDULES[self.plan.schedule](epoch / n_descent)

    def measure(self, position: int) -> Measures:
        """The terms of the objective; with one batch the gradients of the next step are there afterwards."""
        with self._held():
            terms = self._stepper.evaluate_all().tolist()
        self._has_gradients = len(self.objective.batches) == 1
        return Measures(*terms, learning_rate=self._learning_rate(position))

    def validation_error(self) -> float:
        """The root mean squared error on the held-out entries, NaN where there are none."""
        return math.nan if self._validation is None else float(self.squared_errors().mean().sqrt())

    def squared_errors(self) -> Tensor:
        """The squared errors on the held-out entries, in row-major order."""
        assert self._validation is not None
        error = self.objective.predict_pairs(self._validation.pattern) - self._validation.values
        return error.mul_(self._validation_unit).square_()

    def problem(self, record: Record, first: Record | None) -> str | None:
        """The sign that the descent has diverged, and what to do; None where there is none."""
        start, finite = math.inf if first is None else first.objective, self._has_finite_logits()
        if math.isfinite(record.objective) and record.objective <= _DIVERGED * max(start, 1.0) and finite:
            return None
        what = f"the objective is {record.objective:g}" if finite else "the logits of a graph are not finite"
        rate = self.plan.learning_rate
        return f"{what} at epoch {record.epoch} with learning_rate={rate:g}; lower learning_rate (try {rate / 10:g})"

    def _has_finite_logits(self) -> bool:
        # The objective does not show logits that are not due: of a graph that is kept for some epochs, or of a part.
        # The processes of a group see their own parts only, and have to end together.
        finite = [logits.isfinite().all() for logits in self.objective.logits()] if self.alone else []
        return not finite or bool(torch.stack(finite).all())

    def has_settled(self, measures: Measures) -> bool:
        """Whether the objective changed by less than `stopping_delta` in the last epoch, times m n."""
        if self.plan.stopping_delta is None:
            return False
        value = measures.objective * self.objective.size
        change, self._previous_objective = abs(self._previous_objective - value), value
        return change < self.plan.stopping_delta

    def adjacencies(self) -> Adjacencies:
        """The present graphs."""
        present = iter(self.objective.laplacians)
        sides = [
            None if graph is None else next(present).adjacency()
            for graph in (self.objective.row_graph, self.objective.column_graph)
        ]
        return [*sides, *(laplacian.adjacency() for laplacian in present)]

    def state(self) -> State:
        """Copies of factors, biases and graphs."""
        return self.objective.state()

    def load_state(self, state: State) -> None:
        """Go back to what `state` returned, perhaps read from a file since."""
        self.objective.load_state(state)
        self._stepper.forget()
        self._has_gradients = False

    def step_state(self) -> dict[str, Any]:
        """The moments of the optimiser, and the objective of the last epoch."""
        moments = [dict(self.optimizer.state[tensor]) for tensor in self._trained()]
        return {"optimizer": moments, "previous_objective": self._previous_objective}

    def load_step_state(self, state: dict[str, Any]) -> None:
        """Go back to what `step_state` returned, perhaps read from a file since."""
        for tensor, moments in zip(self._trained(), state["optimizer"], strict=True):
            self.optimizer.state[tensor] = moments_of(moments, tensor)
        self._stepper.forget()
        self._previous_objective = float(state["previous_objective"])

    def _trained(self) -> Sequence[Tensor]:
        return [tensor for group in self.optimizer.param_groups for tensor in group["params"]]


def _numbers(objective: Objective) -> int:
    """The numbers that the products of a step go through."""
    return objective.model_parameters()[0].shape[1] * max(batch.values.numel() for batch in objective.batches)
