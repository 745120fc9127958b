"""Measured affinities as BindingDB and ChEMBL export them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.affinities import ROLES, as_affinities, as_p_affinity
from air_recsys.data.interactions import Interactions
from air_recsys.data.readers.forms import FOUND
from air_recsys.data.readers.sources import regular
from air_recsys.data.readers.tables import existing, read_names, read_table
from air_recsys.exceptions import DataFileError, DataWarning, quoted
from air_recsys.storage.validation import check_choice

ENDPOINTS = ("Kd", "Ki", "IC50", "EC50")
_BINDINGDB = {
    "user": ("bindingdb monomerid", "ligand inchi key"),
    "item": (
        "uniprot (swissprot) primary id of target chain",
        "uniprot (swissprot) primary id of target chain 1",
        "target name",
        "target name assigned by curator or datasource",
    ),
    "smiles": ("ligand smiles",),
    "sequence": ("bindingdb target chain sequence", "bindingdb target chain sequence 1"),
    "chains": ("number of protein chains in target (>1 implies a multichain complex)",),
    "year": ("date of publication", "date in bindingdb"),
}
_CHEMBL = {
    "user": ("molecule chembl id",),
    "item": ("target chembl id",),
    "value": ("standard value",),
    "unit": ("standard units",),
    "relation": ("standard relation",),
    "endpoint": ("standard type",),
    "smiles": ("smiles", "canonical smiles"),
    "year": ("document year",),
    "doubt": ("data validity comment", "data validity description"),
}
_OWN = {
    **{"value" if role == "rating" else role: tuple(name.replace("_", " ") for name in ROLES[role]) for role in ROLES},
    "smiles": ("smiles", "canonical smiles"),
    "sequence": ("sequence", "sequences"),
    "year": ("year", "date"),
}


class Measurements(NamedTuple):
    """What a file of measurements holds."""

    table: pd.DataFrame
    """A row a pair: user, item, rating (pKd, pKi, ...), relation, weight where pairs are repeated, and year."""
    smiles: pd.Series
    """The structures of the drugs, by id."""
    sequences: pd.Series
    """The sequences of the targets, by id; none in files of ChEMBL."""

    def interactions(self) -> Interactions:
        """Return the pairs with what is known of them."""
        return as_affinities(self.table, ("user", "item"))


def read_measurements(path: str | Path, endpoint: str | Iterable[str] | None = None) -> Measurements:
    r"""Read a table of BindingDB (TSV), of activities of ChEMBL (CSV), or of your own, whose columns tell which it is.

    One of your own has a row a measurement: columns drug, target, value and unit, and relation, smiles, sequence and
    year where it knows them.

    Units, limits and repetitions are taken as `air_recsys.dti.as_p_affinity` does. Left out, with a line that counts
    them, are rows without a drug, a target or a value, targets of several chains (of which BindingDB names one), and
    values that ChEMBL doubts (a data validity comment).

    Parameters
    ----------
    path : str or Path
        Text, also packed, or Parquet.
    endpoint : {"Kd", "Ki", "IC50", "EC50"}, or several of them, optional
        What counts; needed where the file has more than one.

    Raises
    ------
    DataFileError
        If the file is missing or no such table, or holds nothing of the endpoint.
    DataError
        For values that are not positive and units of no concentration.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "made.csv")
    >>> names = "Molecule ChEMBL ID;Smiles;Standard Type;Standard Relation;Standard Value;Standard Units"
    >>> names += ";Target ChEMBL ID"
    >>> _ = path.write_text(f"{names}\nC1;CCO;Ki;'>';10000;nM;T1\nC2;CCN;Ki;'=';10;nM;T1\n")
    >>> found = read_measurements(path)
    >>> found.table.to_numpy().tolist(), found.smiles.to_dict()
    ([['C1', 'T1', 5.0, '<'], ['C2', 'T1', 8.0, '=']], {'C1': 'CCO', 'C2': 'CCN'})
    >>> folder.cleanup()
    """
    asked = None if endpoint is None else (endpoint,) if isinstance(endpoint, str) else tuple(endpoint)
    for each in asked or ():
        check_choice("endpoint", each, ENDPOINTS)
    with regular(path) as source:
        file = existing(source, "measurements")
        header = _header(file)
        values = {each: header[f"{each.lower()} (nm)"] for each in ENDPOINTS if f"{each.lower()} (nm)" in header}
        columns = _found(file, header, _BINDINGDB if values else _OWN if not _lacks(header, _OWN) else _CHEMBL)
        wanted = [*columns.values(), *values.values()]
        table = read_table(file, "measurements", wanted, only=wanted)
    table = table.rename(columns={name: role for role, name in columns.items()})
    if values:
        long = table.melt([*columns], list(values.values()), "endpoint", "value").assign(unit="nM")
        table = long.replace({"endpoint": {name: each for each, name in values.items()}})
    if "endpoint" in table:
        table = _chosen(file, table.loc[table["endpoint"].isin(ENDPOINTS) & table["value"].notna()], asked)
    table = _with_years(_usable(file, table))
    pairs = table.filter(["user", "item", "value", "unit", "relation", "year"])
    return Measurements(as_p_affinity(pairs), _texts(table, "user", "smiles"), _texts(table, "item", "sequence"))


def is_measurements(file: Path) -> bool:
    """Return whether a file has the columns that `read_measurements` reads: with units, as ratings have none."""
    try:
        header = _header(file)
    except DataFileError:  # which other readers tell
        return False
    of_bindingdb = not _lacks(header, _BINDINGDB) and any(f"{each.lower()} (nm)" in header for each in ENDPOINTS)
    return of_bindingdb or not _lacks(header, _CHEMBL) or not _lacks(header, _OWN)


def _header(file: Path) -> dict[str, str]:
    return {_plain(name): name for name in reversed(read_names(file, FOUND))}


def _with_years(table: pd.DataFrame) -> pd.DataFrame:
    """A table with years as numbers; without that column where some have none."""
    if "year" not in table:
        return table
    found = table["year"].astype(str).str.extract(r"((?:19|20)\d\d)")[0]
    return table.drop(columns="year") if found.isna().any() else table.assign(year=found.astype(int))


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).lower()


def _found(file: Path, header: dict[str, str], known: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """The columns by role; `DataFileError` without those that a table must have."""
    if absent := _lacks(header, known):
        raise DataFileError(
            f"{file}: expected a TSV of BindingDB or activities of ChEMBL, found no columns {quoted(absent)}"
        )
    return _named(header, known)


def _named(header: dict[str, str], known: dict[str, tuple[str, ...]]) -> dict[str, str]:
    found = {role: next((header[name] for name in names if name in header), None) for role, names in known.items()}
    return {role: name for role, name in found.items() if name is not None}


def _lacks(header: dict[str, str], known: dict[str, tuple[str, ...]]) -> list[str]:
    """The columns that a table must have and lacks."""
    needed = {"user", "item", "value", "unit", "endpoint"} & {*known}
    return [known[role][0] for role in sorted(needed - _named(header, known).keys())]


def _chosen(file: Path, table: pd.DataFrame, asked: tuple[str, ...] | None) -> pd.DataFrame:
    """The rows of the endpoints asked for, of the only one where none is."""
    counts = table["endpoint"].value_counts()
    if asked is None and len(counts) > 1:
        found = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        raise DataFileError(f"{file}: expected one endpoint, found {found}: name it, {_named_as(counts.index[0])}")
    chosen = table if asked is None else table.loc[table["endpoint"].isin(asked)]
    if chosen.empty:
        raise DataFileError(f"{file}: expected values of {quoted(list(asked or ENDPOINTS))}, found none")
    return chosen


def _named_as(endpoint: Any) -> str:
    return f"as endpoint={endpoint!r} (in the shell --rating-column {endpoint}, of dti --value-column)"


def _usable(file: Path, table: pd.DataFrame) -> pd.DataFrame:
    """The rows that say what was measured of which pair; what is left out is told."""
    for told, left_out in {
        "without a drug or a target": table["user"].isna() | table["item"].isna(),
        "without a relation": table["relation"].isna() if "relation" in table else None,
        "of targets of several chains": pd.to_numeric(table["chains"]) != 1 if "chains" in table else None,
        "that ChEMBL doubts": table["doubt"].notna() if "doubt" in table else None,
    }.items():
        gone = left_out is not None and left_out.loc[table.index]
        if np.any(gone):
            warnings.warn(f"{file}: {np.count_nonzero(gone)} values {told} are left out", DataWarning, stacklevel=3)
            table = table.loc[~np.asarray(gone)]
    if table.empty:
        raise DataFileError(f"{file}: expected values of drugs and targets, found none")
    return table


def _texts(table: pd.DataFrame, side: str, text: str) -> pd.Series:
    """The first text of each id that has one."""
    if text not in table:
        return pd.Series(dtype=object, name=text)
    known = table.loc[table[text].notna()].drop_duplicates(side)
    return pd.Series(known[text].to_numpy(), pd.Index(known[side], name=side), name=text).sort_index()
