"""The edges of sparse learned graphs: lists of neighbours as patterns, as a matrix, and from old to new ones."""

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
    """The map from the per-edge state of a part before a refresh to that after."""

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
    """Return the graph (m, m) whose edges weigh the sum of both ends' `halves` (m, k), given to `others` (m, k)."""
    m, k = others.shape
    values, columns = (tensor.flatten().cpu().numpy() for tensor in (halves, others))
    half = sp.csr_array((values, columns, np.arange(0, m * k + 1, k)), shape=(m, m))
    return sp.csr_array(half + half.T)


def positions(old: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """Return where each entry of `new` is in the same row of `old`, both ascending, and whether it is there."""
    places = torch.searchsorted(old.contiguous(), new.contiguous()).clamp_(max=old.shape[1] - 1)
    return places, old.gather(1, places) == new


def enter_edges(logits: Tensor, old: Tensor, new: Tensor, ranges: Sequence[slice]) -> Carry:
    """Move logits from old to new neighbours in place, and return what moves other per-edge state of a range.

    An edge that survives keeps its logit; a new one enters at its row's largest logit. Column 0 of all three, shape
    (m, k + 1), is the row itself.
    """
    places, kept = positions(old[:, 1:], new[:, 1:])  # (m, k)
    source, survives = functional.pad(places.add_(1), (1, 0)), functional.pad(kept, (1, 0), value=True)
    entry = logits.max(dim=1, keepdim=True).values  # (m, 1)
    logits.copy_(torch.where(survives, logits.gather(1, source), entry))

    def carry(state: Tensor, part: int = 0) -> Tensor:
        rows = ranges[part]
        return state.gather(1, source[rows]).mul_(survives[rows])

    return carry
