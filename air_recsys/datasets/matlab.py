"""MATLAB 7.3 files, which are HDF5: dense matrices and sparse ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import DataFileError
from air_recsys.validation import import_extra


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
        Where the file is not HDF5, lacks one of the variables, or holds one that is not a real matrix.
    """
    h5py = import_extra("h5py", "data")
    try:
        with h5py.File(path, "r") as file:
            absent = [name for name in names if name not in file]
            if absent:
                raise DataFileError(f"{path}: expected the variable(s) {absent}, found {sorted(file)}")
            return {name: _read_matrix(file[name], h5py) for name in names}
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(f"{path}: expected a MATLAB 7.3 (HDF5) file of real matrices, found: {error}") from None


def _read_matrix(variable: Any, h5py: Any) -> Any:
    if isinstance(variable, h5py.Group):
        indptr = variable["jc"][()].astype(np.int64)
        indices = variable["ir"][()].astype(np.int64)
        shape = (int(variable.attrs["MATLAB_sparse"]), indptr.size - 1)
        matrix = sp.csc_array((variable["data"][()].astype(np.float64), indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
        return matrix.tocsr()
    dense = np.asarray(variable[()], dtype=np.float64).T
    if dense.ndim != 2:
        raise ValueError(f"{dense.ndim} dimension(s) in {variable.name}")
    return dense


def read_observed(path: Path, values: np.ndarray, masks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Check 0/1 masks of a matrix that no entry may be in twice; return them as boolean arrays.

    Parameters
    ----------
    path : Path
        The file, for messages.
    values : ndarray, shape (n_users, n_items)
    masks : sequence of ndarray, shape (n_users, n_items)

    Raises
    ------
    DataFileError
        Where a mask has another shape or other values, masks overlap, or a masked value is not finite.
    """
    for mask in masks:
        if mask.shape != values.shape or not np.isin(mask, (0, 1)).all():
            raise DataFileError(f"{path}: expected masks of 0 and 1, shape {values.shape}, found shape {mask.shape}")
    booleans = [mask.astype(bool) for mask in masks]
    counts = np.sum(booleans, axis=0)
    if (counts > 1).any():
        raise DataFileError(f"{path}: expected disjoint masks, found {(counts > 1).sum()} entries in several")
    if not np.isfinite(values[counts > 0]).all():
        raise DataFileError(f"{path}: expected finite ratings, found NaN or infinity")
    return booleans
