"""Files of a laboratory: pairs of drugs and targets, square tables of similarities, structures and sequences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.columns import column_of_item_ids, named_column
from air_recsys.data.readers.ratings_text import (
    SEPARATORS,
    as_integers,
    check_width,
    ending_of,
    open_text,
    unknown_kind,
)
from air_recsys.exceptions import DataFileError, quoted

_FASTA = (".fasta", ".fa", ".faa")


def read_pairs(
    path: str | Path,
    *,
    drug: str = "drug",
    target: str = "target",
    value: str | None = None,
    sep: str | None = None,
) -> pd.DataFrame:
    r"""Read recorded pairs from a long table, with one pair per row, or a wide one, with one drug per row.

    Parameters
    ----------
    path : str or Path
        A ``.csv``, ``.tsv`` or ``.txt`` file (also with ``.gz``), or a ``.parquet`` file (needs the extra ``data``).
    drug, target : str
        The columns of a long table. A table without them is wide, with the names of the drugs in its first column.
    value : str, optional
        The column of 0 and 1 of a long table, if its name is not interaction.
    sep : str, optional
        The character between two fields; by default comma for ``.csv`` and tab for the others.

    Returns
    -------
    DataFrame
        For `air_recsys.dti.DrugTargetAIR.fit`.

    Raises
    ------
    DataFileError
        If the file is missing, of an unknown kind or not such a table, and for pairs without an id.

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
    file, ending = known_kind(path, "pairs")
    names = [name for name in (drug, target) if name]
    table = read_table(file, "pairs", dict.fromkeys([0, *names], str), ending, sep)
    if drug not in table or target not in table:
        if value is not None:
            raise DataFileError(f"{file}: expected the columns {quoted(names)}, found {quoted(list(table.columns))}")
        return _by_first_column(file, table)
    lacking = np.flatnonzero(table[names].isna().any(axis=1))
    if lacking.size:
        raise DataFileError(f"{file}: expected a drug and a target in each row, found row {lacking[0] + 1} without")
    if value is None:
        return _named(table, {drug: "drug", target: "target"})
    if value not in table:
        raise DataFileError(f"{file}: expected the column {value!r}, found {quoted(list(table.columns))}")
    return _named(table.filter([drug, target, value]), {drug: "drug", target: "target", value: "interaction"})


def read_square(path: str | Path, *, sep: str | None = None) -> pd.DataFrame:
    r"""Read similarities: a square table with ids in its first column and as names of the others.

    Raises
    ------
    DataFileError
        If the file is missing, of an unknown kind or no such table.

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
    file, ending = known_kind(path, "similarities")
    square = _by_first_column(file, read_table(file, "similarities", {0: str}, ending, sep))
    if square.shape[0] != square.shape[1] or set(square.index) != set(square.columns):
        raise DataFileError(
            f"{file}: expected a square table with the ids of its first column as the names of the others, found "
            f"{square.shape[0]} rows and {square.shape[1]} columns"
        )
    return square


def read_texts(path: str | Path, *, sep: str | None = None) -> pd.Series:
    r"""Read one text per id, such as SMILES or sequences: a table with ids and texts as its first columns, or FASTA.

    Parameters
    ----------
    path : str or Path
        A table as for `read_pairs`; or a ``.fasta``, ``.fa`` or ``.faa`` file, whose ids end at the first space.
    sep : str, optional

    Raises
    ------
    DataFileError
        If the file is missing, of an unknown kind or not such a table, and for a repeated id.

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
    file = Path(path).expanduser()
    if file.is_file() and file.suffix.lower() in _FASTA:
        ids, texts = _of_fasta(file)
    else:
        file, ending = known_kind(path, "texts")
        table = read_table(file, "texts", {0: str, 1: str}, ending, sep)
        if table.shape[1] < 2:
            raise DataFileError(f"{file}: expected a column of ids and one of texts, found {table.shape[1]}")
        ids, texts = list(map(str, table.iloc[:, 0])), table.iloc[:, 1].tolist()
    found = pd.Series(texts, pd.Index(as_integers(ids)), dtype=object)
    twice = found.index[found.index.duplicated()]
    if len(twice):
        raise DataFileError(f"{file}: expected each id once, found again: {twice[0]!r}")
    return found


def _of_fasta(file: Path) -> tuple[list[str], list[str]]:
    ids, texts = [], []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise DataFileError(f"{file}: expected sequences in FASTA, found {error}") from None
    for line in map(str.strip, lines):
        if line.startswith(">"):
            ids.append(line[1:].split(maxsplit=1)[0] if line[1:].strip() else "")
            texts.append("")
        elif line and not texts:
            raise DataFileError(f"{file}: expected a line with > and an id first, found {line[:20]!r}")
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


def known_kind(path: str | Path, content: str) -> tuple[Path, str]:
    """Return the file of a table and its ending, or raise `DataFileError` where there is none of a known kind."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataFileError(f"expected a file with {content}, found no file {str(file)!r}")
    kind = ending_of(file)
    if kind not in (*SEPARATORS, ".parquet"):
        raise unknown_kind(file)
    return file, kind


def read_table(file: Path, content: str, types: Any, kind: str, sep: str | None) -> pd.DataFrame:
    """Return a table as it is in a file; `types` as of `pandas.read_csv`."""
    try:
        if kind == ".parquet":
            return pd.read_parquet(file)
        return pd.read_csv(file, sep=sep or SEPARATORS[kind], dtype=types)
    except (ValueError, OSError, UnicodeError) as error:  # a parser's errors are ValueErrors
        raise DataFileError(f"{file}: expected a table of {content}, found {error}") from None


_LOOKED_AT = 1000  # rows that are compared with the model's ids where no column has a usual name


def read_titles(file: Path, item_ids: np.ndarray) -> pd.DataFrame:
    """Read a CSV with ids and attributes of the items, indexed by the model's item ids.

    The column of ids is called "id", or has a usual name of a column of items, such as "item", "movieId" or "isbn".
    """
    try:
        check_width(file, ",")
        with open_text(file) as lines:
            header = pd.read_csv(lines, nrows=0).columns.tolist()
        name = _column_of_ids(file, header, item_ids)
        with open_text(file) as lines:
            table = pd.read_csv(lines, dtype={name: str if item_ids.dtype == object else item_ids.dtype})
    except (DataFileError, OSError, ValueError, OverflowError) as error:
        raise DataFileError(f"expected a CSV with the model's item ids and titles in {file}, found: {error}") from None
    named = table.dropna(subset=[name]).set_index(name).rename_axis("id")
    if not named.index.is_unique:
        repeated = named.index[named.index.duplicated()].tolist()[0]
        raise DataFileError(f"the ids of {file} must be distinct, found {repeated!r} twice")
    if not named.index.isin(item_ids).any():
        raise DataFileError(
            f"expected titles of the model's items in {file}, found none of their ids in its column {name!r}: they "
            f"are such as {quoted(item_ids.tolist()[0])}, those of the file such as "
            f"{quoted(next(iter(named.index), None))}"
        )
    return named


def _column_of_ids(file: Path, header: list[str], item_ids: np.ndarray) -> str:
    """Return the column of ids, or raise `DataFileError` with the column that holds some where it has another name."""
    name = column_of_item_ids(header)
    if name is not None and len(header) > 1:
        return str(name)
    with open_text(file) as lines:
        some = pd.read_csv(lines, dtype=str, nrows=_LOOKED_AT)
    known = [str(each) for each in item_ids.tolist()]
    holding = [each for each in header if len(header) > 1 and bool(pd.Series(some[each]).isin(known).any())]
    hint = f"; rename {quoted(holding[0])}, which holds ids of the model, to id" if len(holding) == 1 else ""
    raise DataFileError(
        f"expected the column id (or item, movieId, ...) and at least one more, found {quoted(header)}{hint}"
    )


def titles_of(table: pd.DataFrame) -> pd.Series:
    """Return the column title of such a table, in any case, else its first."""
    name = named_column("title", list(table.columns))
    titles: pd.Series = table.iloc[:, 0] if name is None else table[name]  # type: ignore[assignment]
    return titles
