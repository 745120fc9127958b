"""Rows that are shared out: parts that are solved one by one are the rows of a posterior that solves all of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import constant, drawn, observed

from air_recsys.nn.posterior.exchange import Exchange, OwnEntries
from air_recsys.nn.posterior.posterior import Posterior


class Part(Exchange):
    """Some rows of each side; nobody asks it for the others."""

    def __init__(self, rows: slice) -> None:
        self.rows = rows

    def own(self, side: int, n_rows: int) -> slice:
        return slice(*self.rows.indices(n_rows))


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("cuts", [(0, 20), (0, 1, 13)], ids=["two", "three"])
def test_the_rows_of_all_parts_are_those_of_one_process(sample, side, cuts):
    """With the same numbers drawn: of Gaussians, and of draws."""
    entries = observed(drawn(m=40, n=30))
    parts = [Part(slice(*pair)) for pair in zip(cuts, (*cuts[1:], None), strict=True)]
    halves = []
    for exchange in (Exchange(), *parts):
        own = OwnEntries.of(entries, exchange)
        start = Posterior(own, constant(entries), 2, np.random.default_rng(0), sample=sample)
        halves.append(start._solved(side, start.sides[side].mean))
    whole, *shared = halves
    for name in ("means", "errors"):
        torch.testing.assert_close(torch.cat([getattr(half, name) for half in shared]), getattr(whole, name))
    for number, expected in enumerate(whole.rows):
        if expected is not None:
            torch.testing.assert_close(torch.cat([half.rows[number] for half in shared]), expected)
