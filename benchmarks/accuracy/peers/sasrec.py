"""SASRec, written from its paper, to stand beside the library's ranker on the next item of a user."""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.folds import holdout_of_last
from air_recsys.metrics import user_measures
from air_recsys.metrics.ranking import lists_of_scores

_BATCH, _RATE, _BETAS = 128, 1e-3, (0.9, 0.98)
_EVERY, _PATIENCE = 5, 6  # epochs between two measurements, and measurements without a gain
_OTHERS = 2000  # items that the softmax compares with
_JUDGED, _LENGTH = 5000, 10  # users and list length of these
_DROPOUTS = (0.2, 0.5)


class SASRec:
    """A transformer over the latest items of a user, whose last state scores what comes next.

    Each epoch takes every user once. Dropout and the number of epochs are those with the best NDCG@10 on the last
    item of each user in the training; then the model is trained once more on all of it.

    Source: Kang and McAuley, Self-Attentive Sequential Recommendation, ICDM 2018: two blocks, one head, width 50, a
    random item beside each next one. With `softmax` the loss is over all items, or 2,000 at random of more, which
    Klenitskiy and Vasilev, Turning Dross Into Gold Loss, RecSys 2023, found to be better.

    Parameters
    ----------
    length : int
        How many of the latest items are read.
    softmax : bool
        Whether the loss compares the next item with many others, or with one.
    epochs : int
        At most.
    random_state : int
        Of the start, the order and the random items.

    Attributes
    ----------
    settings_ : dict
        What was chosen.
    """

    def __init__(self, length: int = 200, *, softmax: bool = False, epochs: int = 400, random_state: int = 0) -> None:
        self.length, self.softmax, self.epochs, self.random_state = length, softmax, epochs, random_state

    def fit(self, interactions: Interactions) -> Self:
        """Choose dropout and epochs on the last item of each user, and train on all."""
        fold = holdout_of_last(interactions)
        users = np.flatnonzero(np.diff(fold.test.to_csr().indptr))
        users = np.random.default_rng(self.random_state).permutation(users)[:_JUDGED]
        relevant = sp.csr_array(fold.test.to_csr())[users]
        best, self.settings_ = -1.0, {"dropout": _DROPOUTS[0], "epochs": 1}
        for dropout in _DROPOUTS:
            self._start(fold.train, dropout)
            since = 0
            for epoch in range(1, self.epochs + 1):
                self._epoch()
                if epoch % _EVERY:
                    continue
                lists = self.lists(users, _LENGTH)
                found = float(user_measures(lists, relevant, _LENGTH)["ndcg_at_k"].mean())
                since = 0 if found > best else since + 1
                if found > best:
                    best, self.settings_ = found, {"dropout": dropout, "epochs": epoch}
                if since == _PATIENCE:
                    break
        self._start(interactions, self.settings_["dropout"])
        for _ in range(int(self.settings_["epochs"])):
            self._epoch()
        return self

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """The best n unseen items of some users, by positions; (b, n)."""
        return lists_of_scores(self._scores, self.pattern, users, n)

    def _start(self, data: Interactions, dropout: float) -> None:
        generator = torch.Generator().manual_seed(self.random_state)
        self.generator = generator
        self.pattern = sp.csr_array(data.to_csr(), dtype=np.float32, copy=True)
        self.sequences = torch.as_tensor(latest_items(data, self.length + 1))  # (n_users, length + 1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            self.network = _Network(data.n_items, self.length, dropout)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=_RATE, betas=_BETAS)

    def _epoch(self) -> None:
        self.network.train()
        order = torch.randperm(len(self.sequences), generator=self.generator)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**31, (1,), generator=self.generator)))  # of dropout
            for users in order.split(_BATCH):
                read, following = self.sequences[users, :-1], self.sequences[users, 1:]  # (b, length)
                kept = read >= 0
                if not kept.any():
                    continue
                self.optimizer.zero_grad()
                self._loss(self.network(read)[kept], following[kept]).backward()
                self.optimizer.step()

    def _loss(self, states: Tensor, following: Tensor) -> Tensor:
        """The loss of states, (p, d), before items, (p,)."""
        items = self.network.items.weight[1:]
        right = (states * items[following]).sum(dim=-1)
        if self.softmax:
            others = torch.randperm(len(items), generator=self.generator)[:_OTHERS]
            wrong = (states @ items[others].T).masked_fill(following[:, None] == others, -torch.inf)  # (p, o)
            return functional.softplus(wrong.logsumexp(dim=1) - right).mean()
        others = torch.randint(len(items), following.shape, generator=self.generator)
        return functional.softplus(-right).mean() + functional.softplus((states * items[others]).sum(dim=-1)).mean()

    @torch.no_grad()
    def _scores(self, users: np.ndarray) -> np.ndarray:
        self.network.eval()
        read = self.sequences[torch.as_tensor(users), 1:]
        states = self.network(read)[:, -1]
        return (states @ self.network.items.weight[1:].T).numpy()


def latest_items(data: Interactions, length: int) -> np.ndarray:
    """The latest items of each user, the last one at the right, (n_users, length); -1 where there are fewer.

    Examples
    --------
    >>> pairs = np.array([0, 0, 1]), np.array([1, 0, 1])
    >>> data = Interactions(*pairs, np.ones(3), ["a", "b"], ["x", "y"], timestamps=np.array([2, 1, 1]))
    >>> latest_items(data, 2).tolist()
    [[0, 1], [-1, 1]]
    """
    assert data.timestamps is not None
    order = np.lexsort((data.timestamps, data.user_index))
    users, items = data.user_index[order], data.item_index[order]
    ends = np.cumsum(np.bincount(users, minlength=data.n_users))
    places = length - (ends[users] - np.arange(users.size))
    found = np.full((data.n_users, length), -1, dtype=np.int64)
    kept = places >= 0
    found[users[kept], places[kept]] = items[kept]
    return found


class _Network(nn.Module):
    def __init__(self, n_items: int, length: int, dropout: float, width: int = 50, blocks: int = 2) -> None:
        super().__init__()
        self.items = nn.Embedding(n_items + 1, width, padding_idx=0)
        self.places = nn.Embedding(length, width)
        for table in (self.items, self.places):
            nn.init.normal_(table.weight, std=0.02)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(_Block(width, dropout) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)

    def forward(self, read: Tensor) -> Tensor:
        """The states after each item of sequences, (b, length) -> (b, length, width)."""
        kept, length = (read >= 0).unsqueeze(-1), read.shape[1]
        places = torch.arange(length)
        hidden = (places[:, None] < places) | (~kept.mT & (places[:, None] != places))  # (b, length, length)
        states = self.items(read + 1) * self.items.embedding_dim**0.5 + self.places.weight
        states = self.dropout(states) * kept
        for block in self.blocks:
            states = block(states, hidden) * kept
        return self.norm(states)


class _Block(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = nn.MultiheadAttention(width, 1, dropout=dropout, batch_first=True)
        self.network = nn.Sequential(
            *(nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, width), nn.Dropout(dropout))
        )

    def forward(self, states: Tensor, hidden: Tensor) -> Tensor:
        query = self.norms[0](states)
        states = query + self.attention(query, states, states, attn_mask=hidden, need_weights=False)[0]
        states = self.norms[1](states)
        return states + self.network(states)
