"""`DrugTargetData`: drug-target values with similarities, structures and sequences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.data.readers.lines import (
    build_interactions,
    read_lines,
    read_matrix,
    read_named_matrix,
    read_records,
    require,
)
from air_recsys.data.sets.registry import find_file
from air_recsys.exceptions import DataFileError
from air_recsys.storage.reading import parse_json
from air_recsys.storage.validation import check_choice


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
    """Return (S + S^T) / 2 with rows and columns in the order of `ids`."""
    for axis, names in (("row", matrix.index), ("column", matrix.columns)):
        if set(names) != set(ids) or len(names) != len(ids):
            raise DataFileError(f"{path}: expected the {len(ids)} ids as {axis} names, found {len(names)} others")
    similarity = matrix.loc[ids, ids].to_numpy()
    return pd.DataFrame((similarity + similarity.T) / 2, index=ids, columns=ids)


_AFFINITIES = "drug-target_interaction_affinities_Kd__Davis_et_al.2011v1.txt"
_DRUG_SIMILARITY = "drug-drug_similarities_2D.txt"
_TARGET_SIMILARITY = "target-target_similarities_WS.txt"


def load_davis(root: str | Path) -> DrugTargetData:
    r"""Load the affinities of 68 kinase inhibitors for 442 kinases.

    The value of a pair is :math:`\mathrm{pKd} = 9 - \log_{10} K_d` with Kd in nM: larger is stronger, 5 (Kd =
    10,000 nM, 69.6 % of the pairs) means no observed binding.

    Parameters
    ----------
    root : str or Path
        The folder with the files of the DeepDTA repository (``ligands_can.txt``, ``proteins.txt``,
        ``folds/test_fold_setting1.txt`` and the like), or a folder above it.

    Returns
    -------
    DrugTargetData
        Drugs have their PubChem CIDs as ids, targets their gene names, both text. `drug_similarity` is that of
        the file; `target_similarity` holds the Smith-Waterman scores normalised as
        :math:`s_{ij} / \sqrt{s_{ii} s_{jj}}`. Five training folds and a test fold are given as positions.

    References
    ----------
    M. I. Davis et al., "Comprehensive analysis of kinase inhibitor selectivity", Nature Biotechnology 29, 2011.
    H. Öztürk, A. Özgür and E. Ozkirimli, "DeepDTA: deep drug-target binding affinity prediction",
    Bioinformatics 34(17), 2018.

    Examples
    --------
    >>> from air_recsys.datasets import fetch, load_davis
    >>> data = load_davis(fetch("davis"))  # doctest: +SKIP
    >>> data.interactions.n_users, data.interactions.select(data.test_fold).n_ratings  # doctest: +SKIP
    (68, 5010)
    """
    smiles, sequences = (_read_texts(root, name) for name in ("ligands_can.txt", "proteins.txt"))
    path = find_file(root, "davis", [_AFFINITIES])
    affinities = _read_shaped(path, (len(smiles), len(sequences)))
    require(path, (affinities > 0).all(axis=1), "positive Kd in nM", affinities.min(axis=1))
    ids = smiles.index, sequences.index
    interactions = Interactions.from_dense(9 - np.log10(affinities), *ids, allow_negative=True)
    train_folds, test_fold = _read_folds(root, interactions.n_ratings)
    return DrugTargetData(
        interactions,
        _read_similarity(root, _DRUG_SIMILARITY, interactions.user_ids, normalise=False),
        _read_similarity(root, _TARGET_SIMILARITY, interactions.item_ids, normalise=True),
        smiles,
        sequences,
        train_folds,
        test_fold,
    )


def _read_similarity(root: str | Path, name: str, ids: np.ndarray, *, normalise: bool) -> pd.DataFrame:
    path = find_file(root, "davis", [name])
    similarity = _read_shaped(path, (ids.size, ids.size))
    if normalise:
        require(path, similarity.diagonal() > 0, "a positive self score", similarity.diagonal())
        scale = np.sqrt(similarity.diagonal())
        similarity = similarity / np.outer(scale, scale)
    return symmetrised(path, pd.DataFrame(similarity, index=ids, columns=ids), ids)


def _read_shaped(path: Path, shape: tuple[int, int]) -> np.ndarray:
    matrix = read_matrix(path)
    if matrix.shape != shape:
        raise DataFileError(f"{path}: expected {shape[0]} rows of {shape[1]} numbers, found {matrix.shape}")
    return matrix


def _read_texts(root: str | Path, name: str) -> pd.Series:
    path, texts = _read_json(root, name)
    if not isinstance(texts, dict) or not texts or not all(isinstance(text, str) for text in texts.values()):
        raise DataFileError(f"{path}: expected a JSON object of texts by id, found {type(texts).__name__}")
    return pd.Series(texts)


def _read_json(root: str | Path, name: str) -> tuple[Path, Any]:
    path = find_file(root, "davis", [name])
    text = "\n".join(read_lines(path))
    try:
        return path, parse_json(text)
    except ValueError as error:
        raise DataFileError(f"{path}: expected JSON, found: {error}") from None


def _read_folds(root: str | Path, size: int) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    train_path, train = _read_json(root, "folds/train_fold_setting1.txt")
    test_path, test = _read_json(root, "folds/test_fold_setting1.txt")
    if not isinstance(train, list):
        raise DataFileError(f"{train_path}: expected a list of lists, found {type(train).__name__}")
    return tuple(_as_positions(train_path, fold, size) for fold in train), _as_positions(test_path, test, size)


def _as_positions(path: Path, values: Any, size: int) -> np.ndarray:
    valid = isinstance(values, list) and all(type(value) is int and 0 <= value < size for value in values)
    if not valid or len(set(values)) != len(values):
        raise DataFileError(f"{path}: expected a list of distinct positions 0..{size - 1}, found something else")
    return np.array(values, dtype=np.int64)


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
