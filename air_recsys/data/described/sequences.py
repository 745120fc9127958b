"""Similarities by sequences of amino acids or bases."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.described.kernels import words_of
from air_recsys.data.described.tables import square, texts_of
from air_recsys.exceptions import DataError, DataWarning, quoted
from air_recsys.storage.validation import check_choice, check_integer, import_extra

_SHOWN = 3
_OPEN, _FURTHER = 11, 1  # what gaps cost
_RARE = str.maketrans("UOJ", "CKL")  # what BLOSUM62 lacks, as what it is like
_MOST_UNKNOWN = 0.1  # of a sequence: more of it makes sequences alike
_BASES = re.compile("[ACGTUNacgtun]{30,}")
_THREE_LETTERS = re.compile(
    "(?:(?:ala|arg|asn|asp|cys|gln|glu|gly|his|ile|leu|lys|met|phe|pro|ser|thr|trp|tyr|val)[\\s-]*){4,}", re.IGNORECASE
)


def sequence_similarity(
    sequences: Mapping[Any, str] | pd.Series, k: int = 3, *, aligned: bool = False
) -> pd.DataFrame:
    r"""Return the spectrum kernel: the cosine of the counts of all words of k letters in two sequences.

    Parameters
    ----------
    sequences : mapping or Series
        Sequence of amino acids or bases for each id; upper and lower case are equal, blanks and a last * do not count.
        X counts as a letter, with a warning where a tenth is X; bases beside amino acids are told too.
    k : int
        Number of letters of a word, at most 12.
    aligned : bool
        In place of it the scores s of local alignments of amino acids (Smith-Waterman by BLOSUM62, a gap costs 11 and
        its further letters 1), as :math:`s_{ij} / \sqrt{s_{ii} s_{jj}}`. Needs the extra ``alignment``, and about half
        a millisecond for two sequences of 1,000 letters.

    Raises
    ------
    DataError
        For a sequence that has other signs than letters or is shorter than k, and for a repeated id.

    Notes
    -----
    Leslie, Eskin, Noble, The Spectrum Kernel: A String Kernel for SVM Protein Classification, PSB 2002. Alignments
    are better for distant relatives: give them as ``target_similarity`` beside ``target_sequences``.

    Examples
    --------
    >>> sequence_similarity({"a": "MKVLMKV", "b": "MKVL", "c": "GGGGG"}).round(2).loc["a"].tolist()
    [1.0, 0.8, 0.0]
    """
    check_integer("k", k, minimum=1, maximum=12)
    check_choice("aligned", aligned, (True, False))
    given = letters_of("sequences", texts_of("sequences", sequences), stacklevel=3)
    short = given.index[given.str.len() < k]
    if len(short):
        raise DataError(f"expected sequences of {k} letters or more, found {given[short[0]]!r} for {short[0]!r}")
    found = _aligned(given.to_list()) if aligned else words_of(given.to_list(), k).similarity()
    return square(found, given.index)


def _aligned(sequences: list[str]) -> np.ndarray:
    parasail: Any = import_extra("parasail", "alignment")
    texts = [each.upper().translate(_RARE) for each in sequences]
    scores = np.zeros((len(texts), len(texts)))
    for row, text in enumerate(texts):
        profile = parasail.profile_create_sat(text, parasail.blosum62)
        for column in range(row + 1):
            scores[row, column] = parasail.sw_striped_profile_sat(profile, texts[column], _OPEN, _FURTHER).score
    scores += np.tril(scores, -1).T
    own = np.sqrt(np.maximum(np.diag(scores), 1))
    return scores / np.outer(own, own)


def letters_of(name: str, texts: pd.Series, stacklevel: int = 2) -> pd.Series:
    """Sequences of letters alone; the name is for messages."""
    if coded := [id for id, text in texts.items() if _THREE_LETTERS.fullmatch(text)]:
        found = f"found codes of three in that of {coded[0]!r}, {quoted(texts[coded[0]])}"
        raise DataError(f"expected {name} of one letter for each amino acid, {found}")
    given = texts.map(lambda text: "".join(text.split()).removesuffix("*"))
    strange = given.str.extract("([^A-Za-z])", expand=False).dropna()
    if len(strange):
        raise DataError(f"expected {name} of letters, found {strange.iloc[0]!r} in that of {strange.index[0]!r}")
    masked = given.index[given.str.count("[Xx]") > _MOST_UNKNOWN * given.str.len()].tolist()
    if masked:
        told = f"{len(masked)} {name} are more than a tenth X, which makes them alike: {quoted(masked[:_SHOWN])}"
        warnings.warn(told, DataWarning, stacklevel=stacklevel)
    bases = given.str.fullmatch(_BASES).to_numpy(bool)
    if 0 < np.count_nonzero(bases) < len(given):
        found = f"{np.count_nonzero(bases)} of {len(given)} {name} are bases, the others amino acids"
        told = f"{found}: {quoted(given.index[bases].tolist()[:_SHOWN])}; translate them"
        warnings.warn(told, DataWarning, stacklevel=stacklevel)
    return given
