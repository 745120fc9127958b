"""What the item graph carries from the items that users have rated to others: a part of the scores of a posterior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.graphs.agreement import (
    FEW_CANDIDATES,
    N_CANDIDATES,
    Agreement,
    agreement_graphs,
    agreement_with_known,
)
from air_recsys.metrics.checks import Csr
from air_recsys.models.learned import Factors
from air_recsys.models.rows import Side
from air_recsys.nn.residuals import RowProcesses
from air_recsys.storage.lazy import torch
from air_recsys.storage.threads import in_workers
from air_recsys.training.ranks import ALONE, Ranks

Covariance = Callable[[int, np.ndarray], np.ndarray]
_KEPT = 4_000_000  # ratings up to which the coefficients of all users are kept
LEAST_AGREEMENT = 3.0  # standard errors above 0 from which residuals are carried
_SEEN, _MOST_OF_USER = 30_000, 600  # ratings whose agreement is looked at
_WHOLE = 8_000_000  # pairs up to which all are kept where they are asked for one by one
_SHARE = 0.2  # of the users, asked for before they are made


class CarriedResiduals:
    """The residuals of all users, and what they say of other items.

    Parameters
    ----------
    data : Interactions
    residuals : ndarray, shape (n_ratings,)
        What factors and biases leave of the ratings of `data`.
    processes : RowProcesses
        Of users over the items.
    of_items : bool
        The same of items over the users: all below with the sides exchanged.

    Coefficients are made for the users who are asked for; of few ratings all are kept once many have been. They are
    the same to the bit.
    """

    def __init__(
        self, data: Interactions, residuals: np.ndarray, processes: RowProcesses, *, of_items: bool = False
    ) -> None:
        self.processes, self._residuals = processes, of_pairs(data, residuals, of_items=of_items)
        self._weights = None if data.weights is None else of_pairs(data, data.weights, of_items=of_items)
        lasts = bool(processes.lasting) and data.timestamps is not None
        self._times = of_pairs(data, np.asarray(data.timestamps)) if lasts else None
        self._kept: Csr | None = None
        self._whole: np.ndarray | None = None
        self._n_asked = 0
        self._unrated: Sequence[UnratedRows] = ()

    def towards(self, near: Csr, features: np.ndarray | None = None) -> CarriedResiduals:
        """The same for other items, by the known ones near each, (k, n_items), and by features, see `RowProcesses`."""
        other = copy(self)
        other.processes = replace(self.processes, near=near, near_features=features)
        other._whole, other._unrated = None, ()
        return other

    def beside(self, unrated: Sequence[UnratedRows]) -> CarriedResiduals:
        """The same, with what is added to the scores of rows without ratings in its place."""
        other = copy(self)
        other._whole, other._unrated = None, unrated
        return other

    def coefficients(self, users: np.ndarray) -> sp.csr_array:
        """The coefficients of some users at the items that they have rated, (b, n_items)."""
        self.expect(users.size)
        kept = self._kept
        return self._of(users) if kept is None else kept[users]

    def expect(self, n_asked: int) -> None:
        """Count users who are asked for, and make the coefficients of all where many have been."""
        self._n_asked += n_asked
        many = self._n_asked >= _SHARE * self._residuals.shape[0] and self._residuals.nnz <= _KEPT
        if many and self._kept is None:
            self._kept = self._of(np.arange(self._residuals.shape[0]))

    def _of(self, users: np.ndarray) -> sp.csr_array:
        weights, times = (None if each is None else each[users].data for each in (self._weights, self._times))
        return self.processes.coefficients(self._residuals[users], weights, times)

    def rows(self, users: np.ndarray) -> np.ndarray:
        """What is added to the scores of some users, for all items, (b, n_items)."""
        found = self.processes.of(self.coefficients(users))
        for each in self._unrated:
            each.fill_rows(users, found)
        return found

    def scores(self, users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None) -> np.ndarray:
        """What is added to the score of each pair of indices, at a time where given, (n,)."""
        different, place = np.unique(users, return_inverse=True)
        order = np.argsort(place, kind="stable")
        both = None if times is None or self._times is None else (self._times[different].data, times[order])
        found = np.empty(users.size)
        found[order] = self.processes.at(self.coefficients(different), place[order], items[order], both)
        for each in self._unrated:
            each.fill(users, items, times, found)
        return found

    def further_strengths(self) -> list[tuple[str, float]]:
        """The strengths of the parts beside the graph, in the unit of the variance of the noise, in words."""
        found, lasting = [], self.processes.lasting
        if self.processes.features is not None:
            mean = float(np.square(self.processes.features).sum(axis=1).mean())
            found.append(("residuals: strength of the features of an average item", mean))
        if lasting is not None:
            found.append(("residuals: strength of what lasts in time", lasting.strength))
            found.append(("residuals: how long it lasts (unit of the timestamps)", lasting.scale))
        return found

    def score(self, user: int, item: int) -> float:
        """What is added to the score of one pair: `scores` for hosts that ask pair by pair."""
        whole, (n_users, n_items) = self._whole, self._residuals.shape
        if whole is None:
            if n_users * n_items > _WHOLE:
                return float(self.scores(np.array([user]), np.array([item]))[0])
            self._whole = whole = self.rows(np.arange(n_users))
        return float(whole[user, item])

    def shares(self, user: int, item: int, rated: np.ndarray) -> np.ndarray:
        """What each rated item of a user adds to the score of an item, (k,): they sum to `scores`."""
        for each in self._unrated:
            if (of_unrated := each.shares(user, item, rated)) is not None:
                return of_unrated
        own = self.coefficients(np.array([user])).toarray()[0, rated]
        return own * self.processes.between(item, rated)


class UnratedRows(NamedTuple):
    """What is added to the scores of the rows of a side that have no ratings, see `air_recsys.models.unrated`."""

    side: Side
    rows: np.ndarray  # (k,), ascending
    carried: CarriedResiduals  # of the other side, towards these

    def fill_rows(self, users: np.ndarray, found: np.ndarray) -> None:
        """Write it into what is added to the scores of some users for all items, (b, n_items)."""
        if self.side == "item":
            found[:, self.rows] = self.carried.rows(users)
        elif (asked := np.isin(users, self.rows)).any():
            places, processes = np.searchsorted(self.rows, users[asked]), self.carried.processes
            towards = self.carried.towards(sp.csr_array(processes.asked[places]), processes.asked_features[places])
            found[asked] = towards.rows(np.arange(found.shape[1])).T

    def fill(self, users: np.ndarray, items: np.ndarray, times: np.ndarray | None, found: np.ndarray) -> None:
        """Write it into what is added to the scores of pairs, at a time where given, (n,)."""
        own, others = (users, items) if self.side == "user" else (items, users)
        if (asked := np.isin(own, self.rows)).any():
            at = None if times is None else times[asked]
            found[asked] = self.carried.scores(others[asked], np.searchsorted(self.rows, own[asked]), at)

    def shares(self, user: int, item: int, rated: np.ndarray) -> np.ndarray | None:
        """What each rated item of a user adds to the score of an item without ratings, (k,); None for others."""
        if self.side == "user" or item not in self.rows:
            return None
        return self.carried.shares(user, int(np.searchsorted(self.rows, item)), rated)


def of_pairs(data: Interactions, values: np.ndarray, *, of_items: bool = False) -> Csr:
    """Values of the ratings as a matrix of users and items, zeros included, or of items and users."""
    shape, pairs = (data.n_users, data.n_items), (data.user_index, data.item_index)
    shape, pairs = (shape[::-1], pairs[::-1]) if of_items else (shape, pairs)
    return sp.csr_array((values.astype(np.float64), pairs), shape=shape)


def agreements(
    data: Interactions,
    residuals: np.ndarray,
    factors: Factors,
    n_edges: tuple[int, int],
    ranks: Ranks = ALONE,
    device: torch.device | str = "cpu",
) -> tuple[Agreement | None, Agreement | None]:
    """The graphs of users and of items by agreement; ratings count by the root of their weights.

    `n_edges` are those that each user, and each item, chooses; with 0, and of one node, there is no graph. The `ranks`
    share the rows, and the device compares pairs of them.
    """
    rows = of_pairs(data, residuals if data.weights is None else residuals * np.sqrt(data.weights))
    of_users, of_items = (k if size > 1 else 0 for k, size in zip(n_edges, rows.shape, strict=True))
    where, users, items = (ranks.shared, device), None, None
    if of_users:
        users = agreement_graphs(factors.user_factors, rows, of_users, FEW_CANDIDATES, *where)
    if of_items:
        items = agreement_graphs(factors.item_factors, sp.csr_array(rows.T), of_items, N_CANDIDATES, *where)
    return users, items


def agreement_beyond_fit(blind: Csr, residuals: Csr, covariance: Covariance, ranks: Ranks = ALONE) -> float:
    r"""The agreement of the residuals of near items that the fit itself does not make, in standard errors.

    Under a posterior without anything left, two residuals of a user have the covariance :math:`-x_i^\top S_u x_j`, as
    the fit bends to both. So the mean over users of :math:`\sum_{ij} N_{ij} (r_i r_j + x_i^\top S_u x_j)` is 0, with
    the edges N of a graph that was chosen without a look at the residuals.

    Parameters
    ----------
    blind : csr_array, shape (n_items, n_items)
        See `air_recsys.graphs.agreement.Agreement`.
    residuals : csr_array, shape (n_users, n_items)
    covariance : callable
        Returns the covariances of the scores of a user at some items, (k, k).
    ranks : Ranks
        Which share the users.
    """
    edges, users = RowProcesses.of_graph(blind, 1.0).edges, np.random.default_rng(0).permutation(residuals.shape[0])
    sizes = np.diff(residuals.indptr).clip(max=_MOST_OF_USER)
    users = users[sizes[users] > 1]
    users = users[: np.searchsorted(sizes[users].cumsum(), _SEEN, side="right") + 1]

    def of_user(user: int) -> float:
        entries = slice(residuals.indptr[user], residuals.indptr[user] + sizes[user])
        own, left = residuals.indices[entries], residuals.data[entries]
        return (edges[own][:, own].toarray() * (np.outer(left, left) + covariance(user, own))).sum()

    def of_users(some: slice) -> np.ndarray:
        return np.array(in_workers(of_user, users[some].tolist()), dtype=np.float64)

    found = ranks.shared(of_users, users.size)
    size = np.sqrt(np.square(found).sum())
    return float(found.sum() / size) if size else 0.0


def with_new_items(
    carried: CarriedResiduals, item_factors: np.ndarray, rows: Csr, degrees: np.ndarray
) -> CarriedResiduals:
    """What is carried to known items, and to new ones after them by their edges to these.

    Parameters
    ----------
    carried : CarriedResiduals
    item_factors : ndarray, shape (n_known + k, r)
    rows : csr_array, shape (n_known + k, n_users)
        Residuals of the items.
    degrees : ndarray, shape (n_known,)
        Of the graph of the known items; one without edges is near no new item.
    """
    edges: Csr = agreement_with_known(item_factors, rows, degrees.size)
    own = np.asarray(edges.sum(axis=1), dtype=np.float64)
    of_new, of_known = (sp.diags_array(np.where(each > 0, each, np.inf) ** -0.5) for each in (own, degrees))
    scaled = sp.csr_array(of_new @ edges @ of_known)
    scaled.resize((own.size, carried.processes.edges.shape[1]))
    return carried.towards(sp.csr_array(sp.vstack([carried.processes.edges[: degrees.size], scaled])))
