"""`DrugTargetData`: drug-target values with similarities, structures and sequences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataFileError


@dataclass(frozen=True, eq=False)
class DrugTargetData:
    """Values of drug-target pairs, similarities, and other data of a published set.

    Drugs are the users and targets the items of `interactions`, so matrices are drugs x targets.

    Attributes
    ----------
    interactions : Interactions
        All pairs, row by row: 0/1 for Yamanishi's sets, pKd for Davis.
    drug_similarity : DataFrame, shape (n_drugs, n_drugs)
        Symmetric, rows and columns in the order of the drug ids.
    target_similarity : DataFrame, shape (n_targets, n_targets), or None
        Symmetric, rows and columns in the order of the target ids; None where the folder has none.
    smiles : Series of str, shape (n_drugs,), or None
        Structures of the drugs.
    sequences : Series of str, shape (n_targets,), or None
        Amino acids of the targets.
    train_folds : tuple of ndarray of int
        Published training folds: positions in `interactions`, for `Interactions.select`.
    test_fold : ndarray of int, or None
        Published test fold, likewise.

    Examples
    --------
    >>> pairs = Interactions.from_dense([[1, 0]], ["D00040"], ["hsa190", "hsa2099"])
    >>> DrugTargetData(pairs, pd.DataFrame([[1.0]], index=pairs.user_ids), None).interactions.n_items
    2
    """

    interactions: Interactions
    drug_similarity: pd.DataFrame
    target_similarity: pd.DataFrame | None
    smiles: pd.Series | None = None
    sequences: pd.Series | None = None
    train_folds: tuple[np.ndarray, ...] = ()
    test_fold: np.ndarray | None = None


def symmetrised(path: Path, matrix: pd.DataFrame, ids: np.ndarray) -> pd.DataFrame:
    """Return (S + S^T) / 2 with rows and columns in the order of `ids`.

    Raises
    ------
    DataFileError
        If the names of rows or columns are not exactly the ids.
    """
    for axis, names in (("row", matrix.index), ("column", matrix.columns)):
        if set(names) != set(ids) or len(names) != len(ids):
            raise DataFileError(f"{path}: expected the {len(ids)} ids as {axis} names, found {len(names)} others")
    similarity = matrix.loc[ids, ids].to_numpy()
    return pd.DataFrame((similarity + similarity.T) / 2, index=ids, columns=ids)
