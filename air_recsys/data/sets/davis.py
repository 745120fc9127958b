"""The kinase inhibitor affinities of Davis et al. (2011)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.data.sets.drug_target import DrugTargetData, symmetrised
from air_recsys.data.sets.files import read_lines, read_matrix, require
from air_recsys.data.sets.folders import find_file
from air_recsys.exceptions import DataFileError
from air_recsys.storage.reading import parse_json

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
    interactions = _read_affinities(root, smiles.index, sequences.index)
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


def _read_affinities(root: str | Path, drugs: pd.Index, targets: pd.Index) -> Interactions:
    path = find_file(root, "davis", [_AFFINITIES])
    affinities = _read_shaped(path, (len(drugs), len(targets)))
    require(path, (affinities > 0).all(axis=1), "positive Kd in nM", affinities.min(axis=1))
    return Interactions.from_dense(9 - np.log10(affinities), drugs, targets, allow_negative=True)


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
