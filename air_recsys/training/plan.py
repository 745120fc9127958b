"""How to train by gradient descent."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_REFRESH = 10
"""Epochs below which edges are not chosen anew, where nobody says how often."""


@dataclass(frozen=True)
class Plan:
    """How to train by gradient descent.

    Parameters
    ----------
    n_epochs : int
        Most passes over all observations: one step each, or one for every batch of the objective.
    learning_rate : float
        Adam's step size for factors and biases.
    schedule : str
        A key of `air_recsys.training.schedules.SCHEDULES`.
    graph_rate : float
        Step size of the graphs' logits as a multiple of `learning_rate`.
    graph_refresh : int
        Epochs between two choices of a sparse graph's edges.
    evaluate_every : int
        Epochs between two records.
    stopping_delta : float, optional
        The paper's rule: stop once m n |F(t+1) - F(t)| falls below it.
    """

    n_epochs: int
    learning_rate: float
    schedule: str = "constant"
    graph_rate: float = 1.0
    graph_refresh: int = 100
    evaluate_every: int = 50
    stopping_delta: float | None = None
