"""Files of a laboratory: pairs of drugs and targets, square tables of similarities, structures and sequences."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from air_recsys.data.columns import named_column, time_column, usual_column
from air_recsys.data.readers.forms import Writing, first_line
from air_recsys.data.readers.ratings_text import as_integers
from air_recsys.data.readers.sources import open_text, regular
from air_recsys.data.readers.tables import existing, is_parquet, read_names, read_table
from air_recsys.exceptions import DataFileError, DataWarning, quoted

TARGETS = ("target", "protein", "gene")
"""Names of a first column, or an index, that has no drugs."""
_TEXT = re.compile(  # SMILES with more than letters, and sequences
    r"(?=.*[=#()\[\]@\d])(?:[BCNOPSFIHbcnops\d@+\-=#%/\\.()\[\]:*]|Cl|Br|Na|Si|Se){5,}|[A-Z*]{20,}"
)


def read_pairs(
    path: str | Path,
    *,
    drug: str = "drug",
    target: str = "target",
    value: str | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    quote: bool | None = None,
    transpose: bool = False,
) -> pd.DataFrame:
    r"""Read recorded pairs from a long table, with one pair per row, or a wide one, with one drug per row.

    Parameters
    ----------
    path : str or Path
        A table of text or of Parquet (needs the extra ``data``), as for `air_recsys.datasets.read_ratings`.
    drug, target : str
        The columns of a long table. A table without them is wide, with the names of the drugs in its first column.
    value : str, optional
        The column of 0 and 1 of a long table, if its name is not interaction.
    sep, encoding, quote : optional
        How text is written, see `air_recsys.datasets.read_ratings`.
    transpose : bool
        Whether a wide table has one target per row.

    Returns
    -------
    DataFrame
        For `air_recsys.dti.DrugTargetAIR.fit`.

    Raises
    ------
    DataFileError
        If the file is missing or not such a table, and for pairs without an id.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "pairs.csv")
    >>> _ = path.write_text("compound,COX1,A1\naspirin,1,0\ncaffeine,,1\n")
    >>> read_pairs(path)
              COX1  A1
    aspirin    1.0   0
    caffeine   NaN   1
    >>> folder.cleanup()
    """
    with regular(path) as source:
        file = existing(source, "pairs")
        writing = Writing(sep, encoding, quote)
        header = read_names(file, writing)
        drug, target = (str(named_column(name, header) or name) for name in (drug, target))
        names = [name for name in (drug, target) if name]
        table = read_table(file, "pairs", [0, *names], writing)
    if drug not in table or target not in table:
        if value is not None or not {*names} <= {"drug", "target", *table.columns}:
            raise DataFileError(f"{file}: expected the columns {quoted(names)}, found {quoted(list(table.columns))}")
        wide = _by_first_column(file, table)
        first = str(table.columns[0])
        return wide.T if transpose else wide.rename_axis(first if first.casefold() in TARGETS else None)
    if transpose:
        raise DataFileError(f"{file}: expected a wide table to transpose, found the columns {quoted(names)}")
    lacking = np.flatnonzero(table[names].isna().any(axis=1))
    if lacking.size:
        raise DataFileError(f"{file}: expected a drug and a target in each row, found row {lacking[0] + 1} without")
    if value is None:
        return _named(table, {drug: "drug", target: "target"})
    if value not in table:
        raise DataFileError(f"{file}: expected the column {value!r}, found {quoted(list(table.columns))}")
    others = [usual_column("relation", "relation", list(table.columns)), time_column(list(table.columns))]
    kept = [drug, target, value, *(name for name in others if name is not None)]
    return _named(table.filter(kept), {drug: "drug", target: "target", value: "interaction"})


def read_square(path: str | Path, *, sep: str | None = None, encoding: str | None = None) -> pd.DataFrame:
    r"""Read similarities: a square table with ids in its first column and as names of the others.

    Raises
    ------
    DataFileError
        If the file is missing or no such table.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "alike.csv")
    >>> _ = path.write_text(",a,b\na,1,0.5\nb,0.5,1\n")
    >>> read_square(path).loc["a", "b"]
    np.float64(0.5)
    >>> folder.cleanup()
    """
    with regular(path) as source:
        file = existing(source, "similarities")
        square = _by_first_column(file, read_table(file, "similarities", [0], Writing(sep, encoding)))
    if square.shape[0] != square.shape[1] or set(square.index) != set(square.columns):
        raise DataFileError(
            f"{file}: expected a square table with the ids of its first column as the names of the others, found "
            f"{square.shape[0]} rows and {square.shape[1]} columns"
        )
    return square


def read_texts(path: str | Path, *, sep: str | None = None, encoding: str | None = None) -> pd.Series:
    r"""Read one text per id, such as SMILES or sequences: a table with ids and texts as its first columns, or FASTA.

    Parameters
    ----------
    path : str or Path
        A table as for `read_pairs`; or FASTA, whose ids end at the first space.
    sep, encoding : optional
        How text is written, see `air_recsys.datasets.read_ratings`.

    Raises
    ------
    DataFileError
        If the file is missing or not such a table, and for an id that is missing or repeated.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "targets.fasta")
    >>> _ = path.write_text(">P23219 COX1\nMSRSL\nLLWF\n>P30542\nMPPSI\n")
    >>> read_texts(path).to_dict()
    {'P23219': 'MSRSLLLWF', 'P30542': 'MPPSI'}
    >>> folder.cleanup()
    """
    with regular(path) as source:
        file = existing(source, "texts")
        is_fasta = _is_fasta(file, encoding)
        ids, texts = _of_fasta(file, encoding) if is_fasta else _of_table(file, Writing(sep, encoding))
    found = pd.Series(texts, pd.Index(as_integers(ids)), dtype=object)
    twice = found.index[found.index.duplicated()]
    if len(twice):
        raise DataFileError(f"{file}: expected each id once, found again: {twice[0]!r}")
    return found


def _is_fasta(file: Path, encoding: str | None) -> bool:
    return not is_parquet(file) and first_line(file, encoding).lstrip().startswith(">")


def _of_table(file: Path, writing: Writing) -> tuple[list[str], list[str]]:
    table = read_table(file, "texts", [0, 1], writing)
    if table.shape[1] < 2:
        raise DataFileError(f"{file}: expected a column of ids and one of texts, found {table.shape[1]}")
    id, text, *others = map(str, table.columns)
    if _TEXT.fullmatch(text):
        raise DataFileError(f"{file}, line 1: expected a header line such as id,text, found the text {quoted(text)}")
    if re.search("smiles|seq|fasta", " ".join(others).casefold()):
        told = f"{file}: reads {quoted(text)} of {quoted(id)}, but does not read {quoted(others)}"
        warnings.warn(told, DataWarning, stacklevel=3)
    lacking = np.flatnonzero(table.iloc[:, :2].isna().any(axis=1))
    if lacking.size:
        raise DataFileError(f"{file}: expected an id and a text in each row, found row {lacking[0] + 1} without")
    return list(map(str, table.iloc[:, 0])), table.iloc[:, 1].tolist()


def _of_fasta(file: Path, encoding: str | None) -> tuple[list[str], list[str]]:
    ids, texts = [], []
    with open_text(file, encoding) as content:
        lines = content.read().splitlines()
    for line in map(str.strip, lines):
        if line.startswith(">"):
            ids.append(line[1:].split(maxsplit=1)[0] if line[1:].strip() else "")
            texts.append("")
        elif line:
            texts[-1] += line
    if not all(ids):
        raise DataFileError(f"{file}: expected an id after each >, found none in one of {len(ids)}")
    return ids, texts


def _by_first_column(file: Path, table: pd.DataFrame) -> pd.DataFrame:
    if table.shape[1] < 2 or table.empty:
        raise DataFileError(f"{file}: expected a column of names and columns of values, found {table.shape}")
    names = table.iloc[:, 0]
    if names.isna().any():
        raise DataFileError(f"{file}: expected a name in the first column of each row, found a row without")
    values = table.iloc[:, 1:]
    index, columns = as_integers(list(map(str, names))), as_integers(list(map(str, values.columns)))
    return values.set_axis(index, axis=0).set_axis(columns, axis=1)


def _named(table: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    named = table.rename(columns=names)
    for side in ("drug", "target"):
        named[side] = as_integers(list(map(str, named[side])))
    return named
