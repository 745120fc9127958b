"""The edges of sparse learned graphs: what every form of them does with lists of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional

from air_recsys.nn.pattern import SparsePattern


class Carry(Protocol):
    """From the per-edge state of a part before a refresh to that after."""

    def __call__(self, state: Tensor, part: int = 0) -> Tensor:
        """Return the state (rows, k + 1), 0 for new edges."""
        ...


def edge_patterns(others: Tensor, ranges: Sequence[slice], n_nodes: int) -> list[SparsePattern]:
    """Return the positions of the edges of each range of rows, given the neighbours of all rows (m, k)."""
    k = others.shape[1]
    return [
        SparsePattern(torch.arange(0, chosen.numel() + 1, k, device=others.device), chosen.flatten(), n_nodes)
        for chosen in (others[rows] for rows in ranges)
    ]


def symmetric_graph(halves: Tensor, others: Tensor) -> sp.csr_array:
    """Return the graph (m, m) whose edges weigh what both of their ends give, `halves` (m, k) to `others` (m, k)."""
    m, k = others.shape
    values, columns = (tensor.flatten().cpu().numpy() for tensor in (halves, others))
    half = sp.csr_array((values, columns, np.arange(0, m * k + 1, k)), shape=(m, m))
    return sp.csr_array(half + half.T)


def positions(old: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """Find each entry of `new` in the same row of `old`, both ascending; return places, and whether it is there."""
    found = torch.searchsorted(old.contiguous(), new.contiguous()).clamp_(max=old.shape[1] - 1)
    return found, old.gather(1, found) == new


def enter_edges(logits: Tensor, old: Tensor, new: Tensor, ranges: Sequence[slice]) -> Carry:
    """Move logits from old to new neighbours in place, and return what moves other per-edge state of a range along.

    An edge that survives keeps its logit; a new one enters at its row's largest logit. Column 0 of all three, shape
    (m, k + 1), is the row itself.
    """
    found, there = positions(old[:, 1:], new[:, 1:])  # (m, k)
    source, survives = functional.pad(found.add_(1), (1, 0)), functional.pad(there, (1, 0), value=True)
    entry = logits.max(dim=1, keepdim=True).values  # (m, 1)
    logits.copy_(torch.where(survives, logits.gather(1, source), entry))

    def carry(state: Tensor, part: int = 0) -> Tensor:
        rows = ranges[part]
        return state.gather(1, source[rows]).mul_(survives[rows])

    return carry
