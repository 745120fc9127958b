"""Sequences of amino acids or bases, as they are compared."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd

from air_recsys.exceptions import DataError, DataWarning, quoted

_SHOWN = 3
_MOST_UNKNOWN = 0.1  # of a sequence: more of it makes sequences alike
_BASES = re.compile("[ACGTUNacgtun]{30,}")
_THREE_LETTERS = re.compile(
    "(?:(?:ala|arg|asn|asp|cys|gln|glu|gly|his|ile|leu|lys|met|phe|pro|ser|thr|trp|tyr|val)[\\s-]*){4,}", re.IGNORECASE
)


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
