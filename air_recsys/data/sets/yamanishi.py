"""The drug-target gold standard of Yamanishi et al. (2008)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.data.sets.drug_target import DrugTargetData, symmetrised
from air_recsys.data.sets.files import build_interactions, read_named_matrix, read_records, require
from air_recsys.data.sets.folders import find_file
from air_recsys.exceptions import DataFileError
from air_recsys.storage.validation import check_choice

YamanishiName = Literal["nr", "gpcr", "ic", "e"]

_ROUNDED = "e_simmat_dg_sparse_1dp.txt"
_MOST_TARGETS = 5000  # of rounded similarities, whose file lists few of the pairs; enzymes have 664


def load_yamanishi(root: str | Path, name: YamanishiName) -> DrugTargetData:
    """Load one of the four sets of drug-target interactions of Yamanishi et al.

    The files hold targets x drugs; here drugs are the users and targets the items, so matrices are transposed.
    A 1 is a known interaction. A 0 is a pair without a known interaction, which is not the same as no
    interaction; all pairs count as observed, as in the matrix completion of the AIR paper, and a protocol hides
    some of them.

    Parameters
    ----------
    root : str or Path
        The folder with ``nr_admat_dgc.txt`` and the like, or a folder above it.
    name : {"nr", "gpcr", "ic", "e"}
        Nuclear receptors (54 drugs x 26 targets, 90 interactions), G-protein-coupled receptors (223 x 95, 635),
        ion channels (210 x 204, 1,476) or enzymes (445 x 664, 2,926).

    Returns
    -------
    DrugTargetData
        `drug_similarity` (SIMCOMP) and `target_similarity` (normalised Smith-Waterman) are (S + S^T) / 2 of the
        files, because the drug similarities are not symmetric there (differences up to 0.185); diagonals stay as
        they are, for some drugs below 1. Where the folder lacks ``e_simmat_dg.txt``, the target similarity of
        enzymes is that of ``e_simmat_dg_sparse_1dp.txt``: rounded to one decimal, unit diagonal, 0 for pairs that
        are not listed; and None where it lacks that too.

    References
    ----------
    Y. Yamanishi et al., "Prediction of drug-target interaction networks from the integration of chemical and
    genomic spaces", Bioinformatics 24(13), 2008.

    Examples
    --------
    >>> from air_recsys.datasets import fetch, load_yamanishi
    >>> load_yamanishi(fetch("yamanishi"), "nr").interactions.ratings.sum()  # doctest: +SKIP
    90.0
    """
    check_choice("name", name, ("nr", "gpcr", "ic", "e"))
    path = find_file(root, "yamanishi", [f"{name}_admat_dgc.txt"])
    matrix = read_named_matrix(path)
    require(path, [True, *matrix.isin((0, 1)).all(axis=1)], "values 0 or 1", [None, *matrix.index])
    by_drug = matrix.T
    interactions = build_interactions(
        path, lambda: Interactions.from_dense(by_drug.to_numpy(), by_drug.index, by_drug.columns)
    )
    drug_path = find_file(root, "yamanishi", [f"{name}_simmat_dc.txt"])
    return DrugTargetData(
        interactions,
        symmetrised(drug_path, read_named_matrix(drug_path), interactions.user_ids),
        _target_similarity(root, name, interactions.item_ids),
    )


def _target_similarity(root: str | Path, name: str, targets: np.ndarray) -> pd.DataFrame | None:
    names = [f"{name}_simmat_dg.txt", *([_ROUNDED] if name == "e" else [])]
    try:
        path = find_file(root, "yamanishi", names)
    except DataFileError:
        if name == "e":
            return None
        raise
    matrix = _read_rounded(path, targets) if path.name == _ROUNDED else read_named_matrix(path)
    return symmetrised(path, matrix, targets)


def _read_rounded(path: Path, targets: np.ndarray) -> pd.DataFrame:
    table = read_records(path, "\t", {"first": str, "second": str, "similarity": float})
    index = pd.Index(targets)
    first, second = (index.get_indexer(pd.Index(table[side])) for side in ("first", "second"))
    require(path, (first >= 0) & (second >= 0), "two targets of the interaction file", table.to_numpy())
    if len(targets) > _MOST_TARGETS:
        raise DataFileError(f"{path}: expected at most {_MOST_TARGETS:,} targets, found {len(targets):,}")
    similarity = np.eye(len(targets))
    similarity[first, second] = table["similarity"]
    return pd.DataFrame(similarity, index=index, columns=index)
