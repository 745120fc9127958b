"""Learning-rate schedules: the share of the learning rate in force at a share of the training."""

from __future__ import annotations

import math
from collections.abc import Callable


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
    """Keep the learning rate for the first 60 %, then fall to zero along a cosine.

    Examples
    --------
    >>> cooldown(0.5), cooldown(1.0)
    (1.0, 0.0)
    """
    return cosine(max(0.0, (progress - 0.6) / 0.4))


SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": constant,
    "cosine": cosine,
    "linear": linear,
    "cooldown": cooldown,
}
