"""The sub-matrices of Monti, Bronstein and Bresson (2017): fixed splits and given graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.data.sets.files import build_interactions
from air_recsys.data.sets.folders import find_file
from air_recsys.data.sets.matlab import SPLIT, check_split, read_matlab
from air_recsys.exceptions import DataFileError
from air_recsys.storage.validation import check_choice

MontiName = Literal["flixster", "douban", "movielens"]

_DATASETS = {"flixster": "flixster", "douban": "douban", "movielens": "monti-movielens"}
_FILES = {
    "flixster": ["training_test_dataset.mat", "training_test_dataset_10_NNs.mat"],
    "douban": ["training_test_dataset.mat"],
    "movielens": ["split_1.mat"],
}


class MontiGraphs(NamedTuple):
    """The graphs that come with a set.

    Attributes
    ----------
    user_graph : csr_array, shape (n_users, n_users)
        Symmetric, weights 0 and 1.
    item_graph : csr_array, shape (n_items, n_items), or None
        The same for items; Douban has none.

    Examples
    --------
    >>> graphs = MontiGraphs(sp.csr_array([[0, 1], [1, 0]]), None)
    >>> graphs.user_graph.nnz
    2
    """

    user_graph: sp.csr_array
    item_graph: sp.csr_array | None


def load_monti(root: str | Path, name: MontiName) -> tuple[Interactions, Interactions]:
    """Load the train and test ratings of a sub-matrix of Monti et al. (needs the extra ``data``).

    Parameters
    ----------
    root : str or Path
        The folder of the set (with ``training_test_dataset.mat`` or ``split_1.mat``), or a folder above it.
    name : {"flixster", "douban", "movielens"}
        Flixster: 3000 x 3000, 23,556 + 2,617 ratings 0.5..5. Douban: 3000 x 3000, 123,202 + 13,689 ratings 1..5.
        MovieLens: the split u1 of MovieLens 100K, 943 x 1682, 80,000 + 20,000 ratings.

    Returns
    -------
    train, test : Interactions
        Over the same ids: every row and column of the matrix, also those without ratings. Ids are the row and
        column numbers from 0; for MovieLens those of GroupLens, from 1.

    References
    ----------
    F. Monti, M. M. Bronstein and X. Bresson, "Geometric Matrix Completion with Recurrent Multi-Graph Neural
    Networks", NIPS 2017.

    Examples
    --------
    >>> from air_recsys.datasets import fetch, load_monti
    >>> train, test = load_monti(fetch("douban"), "douban")  # doctest: +SKIP
    >>> train.n_ratings, test.n_ratings  # doctest: +SKIP
    (123202, 13689)
    """
    path = _find(root, name)
    values, train_mask, test_mask = check_split(path, read_matlab(path, SPLIT))
    first = 1 if name == "movielens" else 0
    return _to_interactions(path, values, train_mask, first), _to_interactions(path, values, test_mask, first)


def load_monti_graphs(root: str | Path, name: MontiName) -> MontiGraphs:
    """Load the user and item graphs of a sub-matrix of Monti et al. (needs the extra ``data``).

    Parameters
    ----------
    root : str or Path
        As in `load_monti`.
    name : {"flixster", "douban", "movielens"}

    Returns
    -------
    MontiGraphs
        As in the file; node k is row (column) k of the matrix. Douban has two self-loops and 1,831 users without
        neighbours.

    Examples
    --------
    >>> from air_recsys.datasets import fetch, load_monti_graphs
    >>> load_monti_graphs(fetch("douban"), "douban").item_graph is None  # doctest: +SKIP
    True
    """
    path = _find(root, name)
    names = ["W_users"] if name == "douban" else ["W_users", "W_movies"]
    variables = read_matlab(path, names)
    graphs = [_to_graph(path, graph, variables[graph]) for graph in names]
    return MontiGraphs(graphs[0], graphs[1] if len(graphs) == 2 else None)


def _find(root: str | Path, name: str) -> Path:
    check_choice("name", name, _DATASETS)
    return find_file(root, _DATASETS[name], _FILES[name])


def _to_interactions(path: Path, values: np.ndarray, mask: np.ndarray, first: int) -> Interactions:
    users, items = np.nonzero(mask)
    user_ids, item_ids = (np.arange(first, size + first) for size in values.shape)
    return build_interactions(path, lambda: Interactions(users, items, values[mask], user_ids, item_ids))


def _to_graph(path: Path, name: str, variable: Any) -> sp.csr_array:
    n_rows, n_columns = variable.shape
    graph = sp.csr_array(variable)
    if n_rows != n_columns or abs(graph - graph.T).nnz:
        raise DataFileError(f"{path}: expected {name} to be symmetric, found {n_rows} x {n_columns} that is not")
    return graph
