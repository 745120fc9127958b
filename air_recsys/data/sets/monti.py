"""The sub-matrices of Monti, Bronstein and Bresson (2017): fixed splits and given graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.data.readers.lines import build_interactions
from air_recsys.data.sets.registry import find_file
from air_recsys.exceptions import DataFileError
from air_recsys.storage.reading import checked_csr
from air_recsys.storage.validation import check_choice, import_extra

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


SPLIT = ("M", "Otraining", "Otest")  # variables of a rating matrix and its masks
_MOST_ENTRIES = 2**25  # the largest published matrices have 9 million


def read_matlab(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Read matrices of a MATLAB 7.3 file (needs the extra ``data``), in MATLAB's orientation: HDF5 turns dense ones.

    Raises
    ------
    DataFileError
        If the file is not HDF5, lacks one of the variables, or holds one that is not a real matrix, is larger
        than 32 million entries, or lies in another file.
    """
    h5py = import_extra("h5py", "data")
    try:
        with h5py.File(path, "r") as file:
            absent = [name for name in names if file.get(name, getlink=True) is None]
            if absent:
                raise DataFileError(f"{path}: expected the variable(s) {absent}, found {sorted(file)}")
            return {name: _read_matrix(_own(file, name, h5py), h5py) for name in names}
    except DataFileError:
        raise
    except (OSError, RuntimeError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DataFileError(f"{path}: expected a MATLAB 7.3 (HDF5) file of real matrices, found: {error}") from None


def _read_matrix(variable: Any, h5py: Any) -> Any:
    if isinstance(variable, h5py.Group):
        jc, ir, data = (_values(_own(variable, name, h5py), h5py) for name in ("jc", "ir", "data"))
        indptr, indices = jc.astype(np.int64), ir.astype(np.int64)
        shape = (int(variable.attrs["MATLAB_sparse"]), indptr.size - 1)
        if max(shape) > _MOST_ENTRIES:
            raise ValueError(f"shape {shape} of {variable.name}")
        by_column = checked_csr(data.astype(np.float64), indices, indptr, (shape[1], shape[0]))
        return by_column.T.tocsr()
    dense = np.asarray(_values(variable, h5py), dtype=np.float64).T
    if dense.ndim != 2:
        raise ValueError(f"{dense.ndim} dimension(s) in {variable.name}")
    return dense


def _own(group: Any, name: str, h5py: Any) -> Any:
    """Return a member of a group that lies in this file, not in a file that a link names."""
    link = group.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise ValueError(f"a link in place of {name}")
    return group[name]


def _values(dataset: Any, h5py: Any) -> np.ndarray:
    """Return the numbers of a dataset that are stored in this file, up to `_MOST_ENTRIES`."""
    if not isinstance(dataset, h5py.Dataset) or dataset.dtype.kind not in "biuf":
        raise ValueError(f"{getattr(dataset, 'dtype', 'a group')} in place of numbers in {dataset.name}")
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"values of {dataset.name} in another file")
    if dataset.size is None or dataset.size > _MOST_ENTRIES:
        raise ValueError(f"shape {dataset.shape} of {dataset.name}")
    return dataset[()]


def check_split(path: Path, variables: dict[str, Any]) -> list[np.ndarray]:
    """Return the matrix M and its masks Otraining and Otest, as booleans, each of shape (n_users, n_items)."""
    values, *masks = (variables[name] for name in SPLIT)
    if any(map(sp.issparse, (values, *masks))):
        raise DataFileError(f"{path}: expected dense matrices {', '.join(SPLIT)}, found a sparse one")
    for mask in masks:
        if mask.shape != values.shape or not np.isin(mask, (0, 1)).all():
            raise DataFileError(f"{path}: expected masks of 0 and 1, shape {values.shape}, found shape {mask.shape}")
    train_mask, test_mask = (mask.astype(bool) for mask in masks)
    n_shared = np.count_nonzero(train_mask & test_mask)
    if n_shared:
        raise DataFileError(f"{path}: expected disjoint masks, found {n_shared} entries in several")
    if not np.isfinite(values[train_mask | test_mask]).all():
        raise DataFileError(f"{path}: expected finite ratings, found NaN or infinity")
    return [values, train_mask, test_mask]
