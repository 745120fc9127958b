"""Groups of alike drugs and targets, which a split hides together: scaffolds, and clusters of similarities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.described.molecules import structures
from air_recsys.exceptions import DataError
from air_recsys.storage.validation import check_real, import_extra


def scaffolds(smiles: Mapping[Any, str] | pd.Series) -> pd.Series:
    """Return the Bemis-Murcko scaffold of each structure, as SMILES (needs the extra ``chemistry``).

    They are standardised as by `DrugTargetAIR.fit`. Those without a ring, or that do not parse, are a group each.

    Examples
    --------
    >>> found = scaffolds({"toluene": "Cc1ccccc1", "phenol": "Oc1ccccc1", "ethanol": "CCO"})
    >>> found.to_dict()
    {'toluene': 'c1ccccc1', 'phenol': 'c1ccccc1', 'ethanol': 'CCO'}
    """
    murcko: Any = import_extra("rdkit.Chem.Scaffolds.MurckoScaffold", "chemistry")
    given = {id: text for id, text in dict(smiles).items() if isinstance(text, str)}
    texts = list(given.values())
    found = [each.molecule and murcko.MurckoScaffoldSmiles(mol=each.molecule) for each in structures(texts)]
    return pd.Series([own or text for own, text in zip(found, texts, strict=True)], list(given), dtype=object)


def similarity_clusters(similarity: pd.DataFrame, threshold: float = 0.5) -> pd.Series:
    """Return the number of the cluster of each row of a square table of similarities in [0, 1].

    Parameters
    ----------
    similarity : DataFrame
        Such as scores of alignments.
    threshold : float
        In (0, 1]. No two rows of different clusters are as similar: single linkage.

    Examples
    --------
    >>> table = pd.DataFrame([[1, 0.8, 0.1], [0.8, 1, 0.2], [0.1, 0.2, 1]], list("abc"), list("abc"))
    >>> similarity_clusters(table).to_dict()
    {'a': 1, 'b': 1, 'c': 2}
    """
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    check_real("threshold", threshold, maximum=1, strict=True)
    values = np.asarray(similarity, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not np.isfinite(values).all():
        raise DataError(f"expected a square table of finite similarities, found one of shape {values.shape}")
    apart = 1 - (values + values.T) / 2
    np.fill_diagonal(apart, 0)
    if len(apart) < 2:
        return pd.Series(1, similarity.index)
    tree = hierarchy.linkage(squareform(apart.clip(0), checks=False), "single")
    return pd.Series(hierarchy.fcluster(tree, 1 - threshold + 1e-12, "distance"), similarity.index)
