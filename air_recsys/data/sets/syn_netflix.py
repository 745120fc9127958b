"""Syn-Netflix: ratings that are constant on hidden groups of users and items, from the file or generated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.sets.monti import SPLIT, check_split, read_matlab
from air_recsys.data.sets.planted import check_groups
from air_recsys.data.sets.registry import find_file
from air_recsys.exceptions import DataFileError
from air_recsys.storage.validation import RandomState, as_generator

_SMALLEST_GROUP = 0.8  # of an even share; the file's smallest groups have 0.80 (users) and 0.84 (items)
_OBSERVED_SHARE = 0.15  # in train and in test each, as in the file
_N_DRAWS = 10


@dataclass(frozen=True, eq=False)
class SynNetflix:
    """A full rating matrix, the groups behind it, and a split.

    Attributes
    ----------
    matrix : ndarray of float, shape (n_users, n_items)
        Ratings in 1..5, not rounded.
    user_groups : ndarray of int, shape (n_users,)
        Users of one group have identical rows, users of two groups different ones; groups are numbered in order
        of appearance.
    item_groups : ndarray of int, shape (n_items,)
        The same for items and columns.
    train_mask, test_mask : ndarray of bool, shape (n_users, n_items)
        Disjoint random shares of the entries.
    user_graph, item_graph : csr_array, shape (n_users, n_users) and (n_items, n_items)
        Symmetric graphs that join members of the same group.

    Examples
    --------
    >>> import numpy as np
    >>> from air_recsys import Interactions
    >>> data = make_syn_netflix(random_state=0)
    >>> Interactions.from_dense(np.where(data.train_mask, data.matrix, np.nan)).n_ratings
    4500
    """

    matrix: np.ndarray
    user_groups: np.ndarray
    item_groups: np.ndarray
    train_mask: np.ndarray
    test_mask: np.ndarray
    user_graph: sp.csr_array
    item_graph: sp.csr_array


def load_syn_netflix(path: str | Path) -> SynNetflix:
    """Load Syn-Netflix from its MATLAB file (needs the extra ``data``).

    Parameters
    ----------
    path : str or Path
        The file ``synthetic_netflix.mat``, its folder, or the folder above.

    Returns
    -------
    SynNetflix
        150 users in 15 groups, 200 items in 12 groups, rank 12; 4,500 train and 4,500 test entries. The graphs
        are those of the file, unchanged: `user_graph` has weights between 0 and 1, `item_graph` only 0 and 1,
        both join some pairs of each group and have some self-loops, and `user_graph` has a few weak edges between
        groups.

    References
    ----------
    F. Monti, M. M. Bronstein and X. Bresson, "Geometric Matrix Completion with Recurrent Multi-Graph Neural
    Networks", NIPS 2017.

    Examples
    --------
    >>> from air_recsys.datasets import fetch, load_syn_netflix
    >>> load_syn_netflix(fetch("syn-netflix")).matrix.shape  # doctest: +SKIP
    (150, 200)
    """
    given = Path(path).expanduser()
    file = given if given.is_file() else find_file(given, "syn-netflix", ["synthetic_netflix.mat"])
    variables = read_matlab(file, [*SPLIT, "Wrow", "Wcol"])
    matrix, train_mask, test_mask = check_split(file, variables)
    user_graph, item_graph = (sp.csr_array(variables[name]) for name in ("Wrow", "Wcol"))
    n_users, n_items = matrix.shape
    if user_graph.shape != (n_users, n_users) or item_graph.shape != (n_items, n_items):
        raise DataFileError(f"{file}: expected graphs of {n_users} users and {n_items} items, found other shapes")
    return SynNetflix(
        matrix,
        _labels_of_identical(matrix),
        _labels_of_identical(matrix.T),
        train_mask,
        test_mask,
        user_graph,
        item_graph,
    )


def make_syn_netflix(
    n_users: int = 150,
    n_items: int = 200,
    n_user_groups: int = 15,
    n_item_groups: int = 12,
    random_state: RandomState = 0,
) -> SynNetflix:
    r"""Generate ratings of the structure of Syn-Netflix.

    The group-level table is :math:`T = a + b\, U V` with the entries of :math:`U` (user groups x k) and :math:`V`
    (k x item groups) uniform in 0..1, :math:`k` the smaller number of groups, and :math:`a, b` such that the
    smallest entry is 1 and the largest 5. Matched to the file: the sizes and numbers of groups (each with at
    least 0.8 of an even share), members of a group side by side, values exactly spanning 1..5, rank 12, the
    spread (standard deviation 0.8, in the file 0.74, most of it between rows and between columns) and the decay of
    the singular values, 15 % of the entries in train and 15 % in test. Of ten tables the one is chosen whose closest
    two groups are furthest apart. Unlike in the file, the graphs join *all* pairs of a group, with weight 1 and
    without self-loops.

    Parameters
    ----------
    n_users, n_items : int
        Shape of the matrix.
    n_user_groups, n_item_groups : int
        Numbers of groups, at least 2.
    random_state : int, RandomState, Generator or None
        The same seed gives the same data.

    Returns
    -------
    SynNetflix

    Raises
    ------
    ParameterError
        If a number is too small, or there are more groups than members.

    Examples
    --------
    >>> data = make_syn_netflix(n_users=30, n_items=20, n_user_groups=3, n_item_groups=2, random_state=0)
    >>> data.matrix.shape, float(data.matrix.min()), float(data.matrix.max())
    ((30, 20), 1.0, 5.0)
    >>> len(np.unique(data.matrix, axis=0)), len(np.unique(data.matrix.T, axis=0))
    (3, 2)
    """
    check_groups("user", n_users, n_user_groups, minimum=2)
    check_groups("item", n_items, n_item_groups, minimum=2)
    generator = as_generator(random_state)
    user_groups = _draw_groups(n_users, n_user_groups, generator)
    item_groups = _draw_groups(n_items, n_item_groups, generator)
    table = max((_draw_table(n_user_groups, n_item_groups, generator) for _ in range(_N_DRAWS)), key=_separation)
    rank = generator.permutation(n_users * n_items).reshape(n_users, n_items)
    n_observed = max(1, round(_OBSERVED_SHARE * rank.size))
    return SynNetflix(
        table[np.ix_(user_groups, item_groups)],
        user_groups,
        item_groups,
        rank < n_observed,
        (rank >= n_observed) & (rank < 2 * n_observed),
        _same_group_graph(user_groups),
        _same_group_graph(item_groups),
    )


def _draw_groups(n_members: int, n_groups: int, generator: np.random.Generator) -> np.ndarray:
    smallest = max(1, int(_SMALLEST_GROUP * n_members / n_groups))
    others = generator.multinomial(n_members - smallest * n_groups, np.full(n_groups, 1 / n_groups))
    return np.repeat(np.arange(n_groups), smallest + others)


def _draw_table(n_user_groups: int, n_item_groups: int, generator: np.random.Generator) -> np.ndarray:
    rank = min(n_user_groups, n_item_groups)
    table = generator.random((n_user_groups, rank)) @ generator.random((rank, n_item_groups))
    return np.interp(table, (table.min(), table.max()), (1, 5))


def _separation(table: np.ndarray) -> float:
    """Return the root mean square difference of the two closest groups, of users or of items."""
    from scipy.spatial.distance import pdist

    return min(pdist(side).min() / np.sqrt(side.shape[1]) for side in (table, table.T))


def _same_group_graph(groups: np.ndarray) -> sp.csr_array:
    return sp.csr_array((groups[:, None] == groups).astype(float) - np.eye(groups.size))


def _labels_of_identical(matrix: np.ndarray) -> np.ndarray:
    codes = np.unique(matrix, axis=0, return_inverse=True)[1]
    return pd.factorize(codes.ravel())[0]
