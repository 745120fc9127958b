"""MATLAB 7.3 files, which are HDF5: dense matrices and sparse ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from air_recsys.exceptions import DataFileError
from air_recsys.reading import checked_csr
from air_recsys.validation import import_extra

_MOST_ENTRIES = 2**25  # the largest of the published matrices have 9 million


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
        Where the file is not HDF5, lacks one of the variables, or holds one that is not a real matrix, is larger
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
        return checked_csr(
            data.astype(np.float64), indices, indptr, (shape[1], shape[0])
        ).T.tocsr()  # columns, as rows of T
    dense = np.asarray(_values(variable, h5py), dtype=np.float64).T
    if dense.ndim != 2:
        raise ValueError(f"{dense.ndim} dimension(s) in {variable.name}")
    return dense


def _own(group: Any, name: str, h5py: Any) -> Any:
    """Return a member of a group that lies in this very file, not in one that a link names."""
    link = group.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise ValueError(f"a link in place of {name}")
    return group[name]


def _values(dataset: Any, h5py: Any) -> np.ndarray:
    """Return the numbers of a dataset of this file; what is not stored would be filled up without bounds."""
    if not isinstance(dataset, h5py.Dataset) or dataset.dtype.kind not in "biuf":
        raise ValueError(f"{getattr(dataset, 'dtype', 'a group')} in place of numbers in {dataset.name}")
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"values of {dataset.name} in another file")
    if dataset.size is None or dataset.size > _MOST_ENTRIES:
        raise ValueError(f"shape {dataset.shape} of {dataset.name}")
    return dataset[()]


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
