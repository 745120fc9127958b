"""The learned graph of a side: all edges of a small one, the strongest of a large one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from air_recsys.models.drug_target import similarities as graphs
from air_recsys.models.drug_target.completion import affinity


def test_a_large_graph_keeps_the_strongest_edges_of_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_WHOLE", 20)
    monkeypatch.setattr(graphs, "_KEPT", 4)
    profiles = np.random.default_rng(0).random((30, 6))
    dense = affinity(torch.from_numpy(profiles), None, 0.5).fill_diagonal_(0).numpy()
    assert isinstance(graphs.adjacency_of(profiles[:20], None, 0.5), np.ndarray)
    found = graphs.adjacency_of(profiles, None, 0.5)
    assert isinstance(found, sp.csr_array)
    kept = found.toarray()
    np.testing.assert_allclose(kept, kept.T)
    np.testing.assert_allclose(kept[kept > 0], dense[kept > 0])
    strongest = np.sort(dense, axis=1)[:, -4:]
    np.testing.assert_allclose(np.sort(kept, axis=1)[:, -4:], strongest)
    assert ((kept > 0).sum(axis=1) < 29).any()
