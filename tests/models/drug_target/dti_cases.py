"""Interactions of groups of drugs with groups of targets, as the tests of `DrugTargetAIR` share them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

DRUGS, TARGETS = [f"drug {k}" for k in range(8)], [f"t{k}" for k in range(6)]
GROUPS = np.kron(np.eye(2), np.ones((4, 3)))
WIDE = pd.DataFrame(GROUPS, DRUGS, TARGETS)
SIMILARITY = pd.DataFrame(np.kron(np.eye(2), np.full((4, 4), 0.7)) + 0.3 * np.eye(8), DRUGS, DRUGS)


def wide(*hidden: tuple[int, int] | int) -> pd.DataFrame:
    """Two groups, without some pairs and drugs."""
    values = GROUPS.copy()
    for place in hidden:
        values[place] = np.nan
    return pd.DataFrame(values, DRUGS, TARGETS)


def planted(wrong: float = 0.08, missing: float = 0.1) -> pd.DataFrame:
    """Three groups of drugs and targets, with some wrong records and some missing ones."""
    rng = np.random.default_rng(0)
    values = np.kron(np.eye(3), np.ones((8, 6)))
    values = np.where(rng.random(values.shape) < wrong, 1 - values, values)
    values[rng.random(values.shape) < missing] = np.nan
    return pd.DataFrame(values, [f"d{k}" for k in range(24)], [f"t{k}" for k in range(18)])


def alike(ids: Any) -> pd.DataFrame:
    """The similarity of three groups."""
    groups = np.kron(np.eye(3), np.full((len(ids) // 3,) * 2, 0.6)) + 0.4 * np.eye(len(ids))
    return pd.DataFrame(groups, ids, ids)


def long_of(table: Any) -> Any:
    """A wide table as a long one, with its missing pairs."""
    return table.stack().rename_axis(["drug", "target"]).rename("interaction").reset_index()
