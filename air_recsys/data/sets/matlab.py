"""Reading of dense and sparse matrices from MATLAB 7.3 files, which are HDF5."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import DataFileError
from air_recsys.storage.reading import checked_csr
from air_recsys.storage.validation import import_extra

SPLIT = ("M", "Otraining", "Otest")  # variables of a rating matrix and its masks
_MOST_ENTRIES = 2**25  # the largest published matrices have 9 million


def read_matlab(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Read matrices of a MATLAB 7.3 file (needs the extra ``data``).

    Parameters
    ----------
    path : Path
    names : sequence of str
        Names of the variables.

    Returns
    -------
    dict of str to ndarray or csr_array
        In MATLAB's orientation; HDF5 shows dense matrices transposed.

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
    """Return the matrix M and its masks Otraining and Otest, as booleans, each of shape (n_users, n_items).

    Parameters
    ----------
    path : Path
        The file, for messages.
    variables : dict of str to ndarray or csr_array
        As from `read_matlab`.

    Raises
    ------
    DataFileError
        If a variable is sparse, a mask has another shape or other values, the masks overlap, or a masked value is
        not finite.
    """
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
