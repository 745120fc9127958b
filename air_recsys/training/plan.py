"""How to train by gradient descent: the plan, schedules of the learning rate, and steps to look at the graphs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

LEAST_REFRESH = 10
"""Epochs below which edges are not chosen anew, where nobody says how often."""
_FIRST = 0.01  # of the training: before that the graphs hardly move


@dataclass(frozen=True)
class Plan:
    """How to train by gradient descent."""

    n_epochs: int  # most passes over all observations: one step each, or one for every batch of the objective
    learning_rate: float  # Adam's step size for factors and biases
    exact_epochs: int = 0  # how many of the epochs, the last, complete the matrix exactly
    schedule: str = "constant"  # a key of `SCHEDULES`
    graph_rate: float = 1.0  # step size of the graphs' logits as a multiple of `learning_rate`
    graph_refresh: int = 100  # epochs between two choices of a sparse graph's edges
    evaluate_every: int = 50  # epochs between two records
    stopping_delta: float | None = None  # the paper's rule: stop once m n |F(t+1) - F(t)| falls below it

    @property
    def n_descent(self) -> int:
        """The epochs of Adam's steps."""
        return self.n_epochs - self.exact_epochs


def constant(progress: float) -> float:
    """Keep the learning rate: the paper's setting."""
    return 1.0


def cosine(progress: float) -> float:
    """Fall slowly, then fast, then slowly to zero: (1 + cos(pi progress)) / 2."""
    return (1 + math.cos(math.pi * progress)) / 2


def linear(progress: float) -> float:
    """Fall evenly to zero."""
    return 1 - progress


def cooldown(progress: float) -> float:
    """Keep the learning rate for the first 60 %, then fall to zero along a cosine."""
    return cosine(max(0.0, (progress - 0.6) / 0.4))


SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": constant,
    "cosine": cosine,
    "linear": linear,
    "cooldown": cooldown,
}


def spread_steps(n_steps: int, count: int) -> tuple[int, ...]:
    """0 and fewer than `count` further steps before the last one, in a geometric sequence.

    Examples
    --------
    >>> spread_steps(10_000, 5)
    (0, 100, 316, 1000, 3162)
    >>> spread_steps(3, 100)
    (0, 1, 2)
    """
    steps = np.geomspace(max(1.0, _FIRST * n_steps), n_steps, count)[:-1]
    return 0, *(step for step in np.unique(np.round(steps).astype(int)).tolist() if step < n_steps)
