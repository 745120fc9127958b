"""Similarities of drugs and targets from features, fingerprints, sequences or structures."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from air_recsys.data.columns import as_float, without_index
from air_recsys.exceptions import DataError, DataWarning, quoted
from air_recsys.storage.validation import check_choice, check_integer, import_extra

Kind = Literal["auto", "tanimoto", "cosine", "rbf"]
_KINDS = ("auto", "tanimoto", "cosine", "rbf")
_RADIUS, _BITS = 2, 2048  # of Morgan fingerprints
_SHOWN = 3
_MOST_UNKNOWN = 0.1  # of a sequence: more of it makes sequences alike
_LEAST_OF_BITS = 1e9
_THREE_LETTERS = re.compile(
    "(?:(?:ala|arg|asn|asp|cys|gln|glu|gly|his|ile|leu|lys|met|phe|pro|ser|thr|trp|tyr|val)[\\s-]*){4,}", re.IGNORECASE
)


def feature_similarity(features: pd.DataFrame, kind: Kind = "auto") -> pd.DataFrame:
    r"""Return the similarity of all pairs of rows of a table of numbers, in [0, 1].

    Parameters
    ----------
    features : DataFrame, shape (n, n_features)
        One row per drug or target, named by the index.
    kind : {"auto", "tanimoto", "cosine", "rbf"}
        Tanimoto, :math:`x^\top y / (|x|^2 + |y|^2 - x^\top y)`, for fingerprints and counts; the cosine, with 0 for
        negative ones; or :math:`\exp(-|x - y|^2 / m)` of standardised columns, m the median over the pairs. "auto" is
        Tanimoto if all numbers are 0 or 1, else "rbf".

    Returns
    -------
    DataFrame, shape (n, n)
        Rows without any feature are similar only to themselves.

    Raises
    ------
    DataError
        For text, missing numbers, a repeated id, and negative numbers with "tanimoto".

    Examples
    --------
    >>> bits = pd.DataFrame([[1, 1, 0], [1, 0, 0]], index=["aspirin", "ibuprofen"])
    >>> feature_similarity(bits)
               aspirin  ibuprofen
    aspirin        1.0        0.5
    ibuprofen      0.5        1.0
    """
    check_choice("kind", kind, _KINDS)
    if not isinstance(features, pd.DataFrame):
        raise DataError(f"expected a DataFrame of features, found {type(features).__name__}")
    features = without_index(features, "features", stacklevel=2)
    rows = as_float(features, "features")
    if rows.size == 0 or not np.isfinite(rows).all():
        raise DataError(f"expected finite features of each row, found {np.sum(~np.isfinite(rows))} that are not")
    for name, column in zip(features.columns, rows.T, strict=True):
        if column.max() > _LEAST_OF_BITS and all(set(f"{each:.9e}".split("e")[0]) <= set("01.") for each in column):
            raise DataError(f"expected a column for each bit, found {name!r} that has all bits in one: {column[0]:g}")
    if kind == "auto":
        others = np.flatnonzero(~np.isin(rows, (0, 1)).all(axis=0))
        kind = "rbf" if others.size else "tanimoto"
        if 0 < others.size < rows.shape[1]:
            told = f"takes kind='rbf': all columns but {quoted(features.columns[others].tolist())} are 0 or 1"
            warnings.warn(told, DataWarning, stacklevel=2)
    if kind == "tanimoto" and rows.min() < 0:
        raise DataError(f"expected features of at least 0 for kind='tanimoto', found {rows.min():g}")
    return _table({"tanimoto": _tanimoto, "cosine": _cosine, "rbf": _rbf}[kind](rows), features.index)


def sequence_similarity(sequences: Mapping[Any, str] | pd.Series, k: int = 3) -> pd.DataFrame:
    """Return the spectrum kernel: the cosine of the counts of all words of k letters in two sequences.

    Parameters
    ----------
    sequences : mapping or Series
        Sequence of amino acids or bases for each id; upper and lower case are equal, blanks and a last * do not count.
        X counts as a letter, with a warning where a tenth is X.
    k : int
        Number of letters of a word.

    Raises
    ------
    DataError
        For a sequence that has other signs than letters or is shorter than k, and for a repeated id.

    Notes
    -----
    Leslie, Eskin, Noble, The Spectrum Kernel: A String Kernel for SVM Protein Classification, PSB 2002. Alignment
    scores are better for distant relatives; `DrugTargetAIR.fit` accepts them if they are in [0, 1].

    Examples
    --------
    >>> sequence_similarity({"a": "MKVLMKV", "b": "MKVL", "c": "GGGGG"}).round(2).loc["a"].tolist()
    [1.0, 0.8, 0.0]
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.metrics.pairwise import cosine_similarity

    check_integer("k", k, minimum=1)
    texts = _texts("sequences", sequences)
    if coded := [id for id, text in texts.items() if _THREE_LETTERS.fullmatch(text)]:
        found = f"found codes of three in that of {coded[0]!r}, {quoted(texts[coded[0]])}"
        raise DataError(f"expected sequences of one letter for each amino acid, {found}")
    given = texts.map(lambda text: "".join(text.split()).removesuffix("*"))
    strange = given.str.extract("([^A-Za-z])", expand=False).dropna()
    if len(strange):
        raise DataError(f"expected sequences of letters, found {strange.iloc[0]!r} in that of {strange.index[0]!r}")
    masked = given.index[given.str.count("[Xx]") > _MOST_UNKNOWN * given.str.len()].tolist()
    if masked:
        told = f"{len(masked)} sequences are more than a tenth X, which makes them alike: {quoted(masked[:_SHOWN])}"
        warnings.warn(told, DataWarning, stacklevel=2)
    short = given.index[given.str.len() < k]
    if len(short):
        raise DataError(f"expected sequences of {k} letters or more, found {given[short[0]]!r} for {short[0]!r}")
    counted: Any = CountVectorizer(analyzer="char", ngram_range=(k, k))
    words = counted.fit_transform(given.to_list()).astype(np.float64)
    return _table(cosine_similarity(words), given.index)


def smiles_similarity(smiles: Mapping[Any, str] | pd.Series) -> pd.DataFrame:
    """Return the Tanimoto similarity of structures by their Morgan fingerprints (needs the extra ``chemistry``).

    Parameters
    ----------
    smiles : mapping or Series
        SMILES for each id. The fingerprints have a radius of 2 and 2048 bits.

    Raises
    ------
    DataError
        For SMILES that do not parse, and for a repeated id.

    Examples
    --------
    >>> found = smiles_similarity({"ethanol": "CCO", "propanol": "CCCO", "benzene": "c1ccccc1"})
    >>> bool(found.loc["ethanol", "propanol"] > found.loc["ethanol", "benzene"])
    True
    """
    given = _texts("smiles", smiles)
    if given.str.fullmatch(r"(\[[^\]]+\]){2,}").all():
        raise DataError(f"expected SMILES, found {quoted(given.iloc[0])}, as of SELFIES: selfies.decoder makes SMILES")
    chem = import_extra("rdkit.Chem", "chemistry")
    makers: Any = import_extra("rdkit.Chem.rdFingerprintGenerator", "chemistry")
    logs: Any = import_extra("rdkit.rdBase", "chemistry")
    with logs.BlockLogs():
        molecules = [chem.MolFromSmiles(text) for text in given]
    unread = [
        f"{text!r} of {id!r}" for id, text, read in zip(given.index, given, molecules, strict=True) if read is None
    ]
    if unread:
        raise DataError(f"expected SMILES, found {len(unread)} that do not parse: {', '.join(unread[:_SHOWN])}")
    maker = makers.GetMorganGenerator(radius=_RADIUS, fpSize=_BITS)
    bits = np.array([maker.GetFingerprintAsNumPy(molecule) for molecule in molecules], dtype=np.float64)
    return _table(_tanimoto(bits), given.index)


def _texts(name: str, given: Mapping[Any, str] | pd.Series) -> pd.Series:
    if not isinstance(given, pd.Series | Mapping):
        raise DataError(f"expected {name} as a Series by id or a mapping of ids, found {type(given).__name__}")
    texts = given if isinstance(given, pd.Series) else pd.Series(dict(given), dtype=object)
    if texts.empty:
        raise DataError(f"expected {name}, found none")
    other = [id for id, text in texts.items() if not isinstance(text, str) or not text]
    if other:
        raise DataError(f"expected {name} as text, found {texts[other[0]]!r} for {other[0]!r}")
    return texts


def _tanimoto(rows: np.ndarray) -> np.ndarray:
    products = rows @ rows.T
    squares = np.diag(products)
    union = squares[:, None] + squares - products
    return np.divide(products, union, out=np.zeros_like(products), where=union > 0)


def _cosine(rows: np.ndarray) -> np.ndarray:
    from sklearn.metrics.pairwise import cosine_similarity

    return cosine_similarity(rows).clip(0, 1)


def _rbf(rows: np.ndarray) -> np.ndarray:
    from sklearn.metrics.pairwise import euclidean_distances
    from sklearn.preprocessing import StandardScaler

    distances = euclidean_distances(StandardScaler().fit_transform(rows), squared=True)
    apart = distances[np.triu_indices(len(rows), 1)]
    return np.exp(-distances / (np.median(apart) if apart.any() else 1.0))


def _table(similarity: np.ndarray, ids: pd.Index) -> pd.DataFrame:
    twice = ids[ids.duplicated()].unique()
    if len(twice):
        raise DataError(f"expected each id once, found again: {quoted(list(twice[:_SHOWN]))}")
    similarity = (similarity + similarity.T) / 2  # products of both orders may differ in their last digits
    np.fill_diagonal(similarity, 1)
    return pd.DataFrame(np.minimum(similarity, 1), ids, ids)


_POWERS = {"M": 0, "mM": 3, "uM": 6, "nM": 9, "pM": 12}
_LEAST, _LARGEST = 1e-14, 1e-1  # mol/l: tighter and looser than what is measured
_OF_LOGARITHMS, _MANY = 12, 10  # the largest of values that are logarithms already, where they are so many
_NAMED = 5

Table = TypeVar("Table", pd.Series, pd.DataFrame)


def as_p_affinity(values: Table, unit: str = "nM") -> Table:
    r"""Return :math:`-\log_{10}` of affinities (Kd, Ki, IC50, EC50) in mol/l: pKd, pKi, ...

    Parameters
    ----------
    values : Series or DataFrame
        Positive; missing ones stay missing.
    unit : {"M", "mM", "uM", "nM", "pM"}

    Raises
    ------
    DataError
        For text, and numbers that are not positive.

    Warns
    -----
    DataWarning
        If rows are below 0.01 pM or above 0.1 M, as if units were mixed, or all are like logarithms already.

    Examples
    --------
    >>> as_p_affinity(pd.Series([10.0, 10_000.0], ["imatinib", "caffeine"])).to_dict()
    {'imatinib': 8.0, 'caffeine': 5.0}
    """
    check_choice("unit", unit, tuple(_POWERS))
    if not isinstance(values, pd.Series | pd.DataFrame):
        raise DataError(f"expected affinities as a Series or a DataFrame, found {type(values).__name__}")
    try:
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError) as error:
        raise DataError(f"expected affinities as numbers, found {error}") from None
    wrong = _rows(values.index, ~(np.isnan(numbers) | ((numbers > 0) & np.isfinite(numbers))))
    if wrong:
        found = f"found others, such as logarithms, in {len(wrong)} rows: {quoted(wrong[:_NAMED])}"
        raise DataError(f"expected positive affinities, {found}")
    molar = numbers / 10.0 ** _POWERS[unit]
    if strange := _rows(values.index, (molar < _LEAST) | (molar > _LARGEST)):
        warnings.warn(
            f"{len(strange)} rows have affinities below 0.01 pM or above 0.1 M, as if not all were in {unit}: "
            f"{quoted(strange[:_NAMED])}",
            DataWarning,
            stacklevel=2,
        )
    known = numbers[~np.isnan(numbers)]
    least = 0 if unit in ("nM", "pM") else 2  # in larger units logarithms are negative
    if known.size >= _MANY and least <= known.min() and known.max() <= _OF_LOGARITHMS:
        told = f"all values lie in {known.min():g}..{known.max():g}, as if they were pKd or another logarithm already"
        warnings.warn(told, DataWarning, stacklevel=2)
    found: Any = values.astype(np.float64)
    found[:] = -np.log10(molar)
    return found


def _rows(index: pd.Index, where: np.ndarray) -> list[Any]:
    wrong = where.reshape(len(index), -1).any(axis=1)
    return index[np.flatnonzero(wrong)].tolist()
