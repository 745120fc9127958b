"""Libraries of compounds: SMILES with or without names, a line each, read in blocks."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

from air_recsys.data.readers.sources import open_text, regular
from air_recsys.data.readers.tables import existing
from air_recsys.exceptions import DataFileError, quoted

_SMILES = ("smiles", "canonical_smiles", "structure")
_NAMES = ("id", "name", "title", "compound", "drug", "zinc_id", "molecule_chembl_id")


class Block(NamedTuple):
    """Some lines of a library."""

    ids: list[str]  # the names, or the numbers of the lines where it has none
    texts: list[str]


def library_blocks(path: str | Path, is_structure: Callable[[str], bool], size: int = 2048) -> Iterator[Block]:
    r"""Yield the compounds of a file, some at a time, packed by gzip or not.

    Parameters
    ----------
    path : str or Path
        Lines of SMILES and a name behind blanks or a tab (``.smi``), or a table of commas. A first line in which
        nothing is a structure is the header; its columns named smiles and id (or name) count, else the first two.
    is_structure : callable
        Whether a text is SMILES.
    size : int
        Compounds of a block.

    Raises
    ------
    DataFileError
        If the file is missing, or its first lines hold no structure.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "library.smi")
    >>> _ = path.write_text("CCO ethanol\nCCC\n")
    >>> next(library_blocks(path, lambda text: text.startswith("C")))
    Block(ids=['ethanol', '2'], texts=['CCO', 'CCC'])
    >>> folder.cleanup()
    """
    with regular(path) as source:
        file = existing(source, "compounds")
        with open_text(file, None) as content:
            ids: list[str] = []
            texts: list[str] = []
            for id, text in _compounds(file, content, is_structure):
                ids.append(id)
                texts.append(text)
                if len(ids) == size:
                    yield Block(ids, texts)
                    ids, texts = [], []
            if ids:
                yield Block(ids, texts)


def _compounds(file: Path, content: TextIO, is_structure: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    first = content.readline().rstrip("\r\n")
    separator = next((sign for sign in ("\t", ",", ";") if sign in first), None)
    fields = _fields(first, separator)
    found = [place for place, field in enumerate(fields) if is_structure(field)]
    lower = [field.strip().casefold() for field in fields]
    has_header = not found or any(name in lower for name in _SMILES)
    if has_header:
        smiles = next((lower.index(name) for name in _SMILES if name in lower), 0)
        names = next((lower.index(name) for name in _NAMES if name in lower), None)
        name = names if names is not None else next((place for place in range(len(fields)) if place != smiles), 1)
    else:
        smiles = found[0]
        name = next((place for place in range(len(fields)) if place != smiles), 1)
    for number, line in enumerate(content if has_header else _again(first, content), 2 if has_header else 1):
        fields = _fields(line.rstrip("\r\n"), separator)
        if not any(fields):
            continue
        text = fields[smiles] if smiles < len(fields) else ""
        if number <= 2 and has_header and not is_structure(text):
            found_text = f"found {quoted(first)} and {quoted(line.strip())}"
            raise DataFileError(f"{file}: expected SMILES in the first or the second line, {found_text}")
        yield (fields[name].strip() if name < len(fields) and fields[name].strip() else str(number)), text


def _again(first: str, content: TextIO) -> Iterator[str]:
    yield first
    yield from content


def _fields(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split(maxsplit=1)
    return next(csv.reader([line], delimiter=separator), [])
