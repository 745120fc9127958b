"""Entries in blocks of rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import constant, drawn, observed

from air_recsys.nn.posterior.entries import Entries
from air_recsys.nn.posterior.exchange import Exchange, OwnEntries
from air_recsys.nn.posterior.posterior import Posterior


@pytest.mark.parametrize(("size", "side", "weighted"), [(1, 0, True), (6, 1, False), (7, 1, True), (29, 0, False)])
def test_blocks_have_the_sums_of_their_rows(size, side, weighted):
    data = drawn(m=30, n=20)
    data.seen[6:8] = data.seen[-1] = False  # a block may be empty
    weights = np.random.default_rng(0).uniform(0.5, 2, data.seen.shape) if weighted else None
    whole = Entries.of(observed(data, weights=weights), side)
    m = (30, 20)[side]
    table = torch.rand((20, 30)[side], 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    blocks = whole.cut(size)
    assert [row for rows, _ in blocks for row in range(m)[rows]] == list(range(m))
    assert max(rows.stop - rows.start for rows, _ in blocks) == min(size, m)
    for power in (0, 1):
        parts = torch.cat([entries.sum(table, power) for _, entries in blocks])
        torch.testing.assert_close(parts, whole.sum(table, power))
    torch.testing.assert_close(torch.cat([entries.counts() for _, entries in blocks]), whole.counts())


@pytest.mark.parametrize("size", [None, 30, 100])
def test_one_block_is_the_entries(size):
    whole = Entries.of(observed(drawn(m=30, n=20)), 0)
    ((rows, entries),) = whole.cut(size)
    assert rows == slice(0, 30)
    assert entries is whole


class Part(Exchange):
    """Some rows of each side; nobody asks it for the others."""

    def __init__(self, rows: slice) -> None:
        self.rows = rows

    def own(self, side: int, n_rows: int) -> slice:
        return slice(*self.rows.indices(n_rows))


@pytest.mark.parametrize(
    ("sample", "side", "cuts"),
    [(False, 0, (0, 20)), (False, 1, (0, 1, 13)), (True, 1, (0, 20)), (True, 0, (0, 1, 13))],
)
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
