"""Ratings in tables of text, read some rows at a time."""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.readers.forms import Form, Writing, check_spans, check_width, first_line, forms_of, widest
from air_recsys.data.readers.lines import is_finite_number, malformed
from air_recsys.data.readers.rating_columns import ColumnNames, Passed, RatingColumns
from air_recsys.data.readers.sources import open_lines, undecodable
from air_recsys.exceptions import AirRecsysError, DataFileError, DataWarning, ParameterError, quoted
from air_recsys.storage.reading import ARCHIVE_ERRORS

_ROWS_AT_ONCE = 1_000_000
MORE = "..."
_SIGNED = re.compile(r"'\s*[<>=~]")  # a text that pandas cannot read as a number
_SEVERAL = re.compile(r".*\w[\t,;|]\w.*|\d+:[\d.]+")  # ids with another separator, or values as in SVMlight


class TextForm(NamedTuple):
    """How a file of text holds ratings."""

    form: Form
    names: ColumnNames  # as the header writes them
    header: list[str] | None = None  # names of all fields, of a file without a header line
    has_signs: bool = False  # whether ratings may have a relation in front

    def check_fields(self, path: Path) -> None:
        """Raise for the first line that does not keep to the form."""
        _check_fields(path, self.form, self.names, self.header)

    def of_pandas(self) -> dict[str, Any]:
        """Return the form as `pandas.read_csv` takes it."""
        names = self.names
        # Ids are read as text, so they stay as written, and "NA" is an id.
        kinds: Any = dict.fromkeys((names.user, names.item, names.kind, names.relation), str)
        kinds[names.rating] = str if self.has_signs else np.float64
        kinds.pop(None, None)
        header = {} if self.header is None else {"names": self.header, "header": None}
        return header | self.form.of_pandas() | {"dtype": kinds, "chunksize": _ROWS_AT_ONCE}


def choose_form(path: Path, names: ColumnNames, columns: Sequence[str] | None, writing: Writing) -> TextForm:
    """Return how a file holds the named columns, after a check that each is there once."""
    first = first_line(path, writing.encoding)
    forms = forms_of(path, writing, first)
    if columns is not None:
        return _named_form(path, names, list(columns), forms, first)
    for form in forms:
        header = form.split(first)
        found = names.among(header)
        if found is not None:
            names.tell(found, header)
            return TextForm(form, found)
    form = widest(forms, first)
    lacking = f"{names.lacking(form.split(first))} (separated by {form.separator!r})"
    raise DataFileError(f"{path}, line 1: {with_hint(lacking, names)}")


def is_of_lists(names: ColumnNames, columns: Sequence[str] | None) -> bool:
    """Return whether `columns` end in "...": a user and its items per line, without ratings."""
    if columns is None or columns[-1:] != [MORE]:
        return False
    if list(columns[:-1]) != [names.user, names.item] or names.given != [names.user, names.item]:
        expected = f"columns that end in {MORE!r} to be a user, its items and no ratings (in the shell with --ranking)"
        raise ParameterError(f"expected {expected}, found {list(columns)} for {names.given}")
    return True


def read_lists(path: Path, names: ColumnNames, writing: Writing, passed: Passed) -> RatingColumns:
    """Read a file with a user and then its items per line, as those of NGCF and LightGCN."""
    first = first_line(path, writing.encoding)
    form = widest(forms_of(path, writing, first), first)
    users, items, alone = [], [], 0
    for line, (user, *liked) in form.records(path):
        if not (user and all(liked)):
            raise malformed(path, line, "a user and its items", form.separator.join([user, *liked]))
        users += [user] * len(liked)
        items += liked
        alone += not liked
    if alone:
        warnings.warn(f"{path}: {alone} lines with a user and no items are left out", DataWarning, stacklevel=5)
    columns = RatingColumns(path, names, convert=as_integers)
    for ids, texts in ((columns.users, users), (columns.items, items)):
        codes, distinct = pd.factorize(np.array(texts, dtype=object))
        several = [each for each in distinct if _SEVERAL.fullmatch(each)]
        if 2 * len(several) > len(distinct):
            expected = f"ids without values, separated by {form.separator!r} (sep= or --sep states another sign)"
            raise DataFileError(f"{path}: expected {expected}, found {quoted(several[0])}")
        ids.append(codes, distinct)
    columns.size = len(users)
    passed(path.stat().st_size)
    return columns


def with_hint(lacking: str, names: ColumnNames) -> str:
    """Return what a header lacks, with a hint at files without one unless other columns are meant."""
    given = f"columns={names.given} (in the shell --columns {','.join(names.given)})"
    if names.given == [names.user, names.item]:
        given += f", with {MORE!r} as the last where a line has a user and all its items"
    return lacking if " meant" in lacking else f"{lacking}; a file without a header line needs {given}"


def _named_form(path: Path, names: ColumnNames, columns: list[str], forms: list[Form], first: str) -> TextForm:
    found = names.among(columns)
    if twice := [name for name in columns if columns.count(name) > 1]:
        raise ParameterError(f"expected columns of different names (in the shell --columns), found {twice[0]!r} twice")
    if found is None:
        raise ParameterError(f"columns (in the shell --columns) name the fields of a line: {names.lacking(columns)}")
    for form in forms:
        n_fields = len(form.split(first))
        if n_fields >= max(len(columns), 2):
            others = (f"field {place}" for place in range(len(columns) + 1, n_fields + 1))
            return TextForm(form, found, [*columns, *others])
    expected = f"{len(columns)} fields separated by {forms[0].separator!r}, one for each of {columns}"
    raise malformed(path, 1, expected, first)


def read_text(path: Path, text: TextForm, passed: Passed) -> RatingColumns:
    """Read a table, unpacked where it is packed."""
    check_width(path, text.form)
    try:
        columns, is_broken = _read_parts(path, text, passed)
    except UnicodeError as error:
        raise undecodable(path, text.form.encoding, error) from None
    except AirRecsysError:
        raise
    except (zlib.error, *ARCHIVE_ERRORS) as error:  # pandas' parser errors are ValueErrors
        if not text.has_signs and isinstance(error, ValueError) and _SIGNED.search(str(error)):
            return read_text(path, text._replace(has_signs=True), passed)
        text.check_fields(path)
        raise DataFileError(f"{path}: expected a table of text, found: {' '.join(str(error).split())}") from None
    if is_broken:
        text.check_fields(path)
        raise DataFileError(f"{path}: expected one rating per line, found lines that cannot be read as such")
    if not columns.size:
        raise DataFileError(f"{path}: expected at least one rating, found the header only")
    return columns


def as_integers(names: list[str]) -> np.ndarray:
    """Return texts as integers where all are such as integers are written."""
    texts = np.array(names, dtype=object)
    try:
        integers = texts.astype(np.int64)
    except (ValueError, OverflowError):
        return texts
    return integers if (integers.astype(str) == texts).all() else texts


def _read_parts(path: Path, text: TextForm, passed: Passed) -> tuple[RatingColumns, bool]:
    """Return all rows, or those before the first part that is broken, and whether there is one.

    A file of many rows without content is so not read to its end.
    """
    names = text.names
    part, columns, has_short_lines = pd.DataFrame(), RatingColumns(path, names, convert=as_integers), False
    with open_lines(path, text.form.encoding, text.form.separator) as lines:
        opened: Any = pd.read_csv(lines, **text.of_pandas())
        with opened as reader:
            for part in reader:
                passed(lines.passed())
                if _is_broken(part, names):
                    return columns, True
                has_short_lines |= part.iloc[:, -1].isna().any()  # pandas fills up lines that are too short
                for ids, name in ((columns.users, names.user), (columns.items, names.item)):
                    ids.append(*pd.factorize(part[name]))
                columns.append(part)
    if has_short_lines:
        text.check_fields(path)
    if names.rating is not None and columns.size:
        _tell_flags(path, text, names.rating)
    if lines.lacks_end and names.rating == list(part.columns)[-1]:
        _tell_cut(path, part[names.rating].to_numpy())
    if lines.n_lines > columns.size + (text.header is None):
        check_spans(path, text.form)
    return columns, False


def _tell_flags(path: Path, text: TextForm, rating: str) -> None:
    """Warn where the first rating is true or false, which pandas takes as 1 and 0."""
    records = text.form.records(path)
    header = next(records)[1] if text.header is None else text.header
    if (found := next(records)[1][header.index(rating)]).casefold() in ("true", "false"):
        told = f"{path}: ratings of True and False are taken as 1 and 0, the first is {found}"
        warnings.warn(told, DataWarning, stacklevel=6)


def _tell_cut(path: Path, ratings: np.ndarray) -> None:
    """Warn where the last rating, behind which the file ends within its line, is no other's, and begins another."""
    others, last = np.unique(ratings[:-1]), f"{ratings[-1]:g}"
    whole = [each for each in others if f"{each:g}".startswith(last)]
    if whole and ratings[-1] not in others and ratings.size > others.size + 1:
        told = f"the last line has no end, and the rating {last} of no other: was {whole[0]:g} cut off?"
        warnings.warn(f"{path}: {told}", DataWarning, stacklevel=6)


def _is_broken(part: pd.DataFrame, names: ColumnNames) -> bool:
    shifted = not isinstance(part.index, pd.RangeIndex)  # pandas moves surplus fields into the index
    if shifted or part[names.given].isna().to_numpy().any():
        return True
    if names.rating is None or part[names.rating].dtype.kind != "f":
        return names.rating is not None and not all(map(_is_rating, part[names.rating]))
    return not np.isfinite(part[names.rating]).all()


def _is_rating(field: str) -> bool:
    """Whether a field is a finite number, which may have a relation in front."""
    return is_finite_number(field.lstrip(" <>=~"))


def _check_fields(path: Path, form: Form, names: ColumnNames, header: Sequence[str] | None) -> None:
    """Raise for the first line with a wrong number of fields, an empty field or a rating that is no number."""
    origin = "in the first line" if header is not None else "in the header"
    records = form.records(path, strict=True)
    header = next(records, (1, []))[1] if header is None else header
    for line, fields in records:
        text = form.separator.join(fields)
        if len(fields) != len(header):
            expected = f"{len(header)} fields separated by {form.separator!r}, as {origin}"
            raise malformed(path, line, expected, text)
        record = dict(zip(header, fields, strict=True))
        for name in names.given:
            if not record[name]:
                raise malformed(path, line, f"a value as {name!r}", text)
        if names.rating is not None and not _is_rating(record[names.rating]):
            raise malformed(path, line, f"a finite number as {names.rating!r}", record[names.rating])
