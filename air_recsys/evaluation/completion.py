"""Completion of a fully known matrix of which a random part is hidden: Syn-Netflix and drug-target data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.storage.validation import check_real


class Hidden(NamedTuple):
    """A matrix of which some entries are shown to the model and some others are asked for."""

    observed: Interactions
    asked: np.ndarray  # (m, n) of bool
    truth: np.ndarray  # (m, n)


def hide(truth: np.ndarray, share: float, seed: int, validation: float = 0.0) -> Hidden:
    """Hide every entry with probability `share`; with `validation`, ask for that share of the rest instead.

    With ``validation > 0`` the hidden entries are neither shown nor asked for, so settings that are chosen there owe
    nothing to them.
    """
    check_real("share", share, strict=True, maximum=0.99)
    check_real("validation", validation, maximum=0.99)
    rng = np.random.default_rng(seed)
    hidden = rng.random(truth.shape) < share
    shown, asked = ~hidden, hidden
    if validation > 0:
        asked = shown & (rng.random(truth.shape) < validation)
        shown = shown & ~asked
    return Hidden(Interactions.from_dense(np.where(shown, truth, np.nan)), asked, truth)
