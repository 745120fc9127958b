"""How tables are written as text: separators, quotes, encodings; what is not stated is found in the first line."""

from __future__ import annotations

import csv
import itertools
import string
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from air_recsys.data.readers.lines import malformed
from air_recsys.data.readers.sources import ONE_SIGN, open_text
from air_recsys.exceptions import DataFileError, DataWarning, ParameterError, quoted

MOST_COLUMNS = 1000
MOST_EMPTY_LINES = 1000  # in a row
BLANKS = " "
_TWO_SIGNS = "::"
_SIGNS = frozenset(string.punctuation + BLANKS + "\t") - {'"'}
_FIRST = {".csv": ",", ".dat": _TWO_SIGNS}
_SEPARATORS = ("\t", ",", ";", "|", _TWO_SIGNS, BLANKS)
_QUOTED = (",", ";")  # others have quotes where their header has some, or where only so all lines are alike
_LOOKED_AT = 50  # lines


class Writing(NamedTuple):
    """How a caller says that a file of text is written; None where that is to be found."""

    sep: str | None = None
    encoding: str | None = None
    quote: bool | None = None


FOUND = Writing()
"""All is to be found."""


class Form(NamedTuple):
    """How a file of text is written."""

    separator: str
    has_quotes: bool
    encoding: str | None
    states_quotes: bool  # the caller does: a field may then span lines

    def split(self, line: str) -> list[str]:
        """Return the fields of one line."""
        try:
            return next(self._reader([line]), [])
        except csv.Error:
            return [line]

    def _reader(self, lines: Any, strict: bool = False) -> Any:
        if self.separator == BLANKS and not self.has_quotes:
            return _Blanks(lines)
        quoting = csv.QUOTE_MINIMAL if self.has_quotes else csv.QUOTE_NONE
        shown, sign = lines, self.separator
        if len(sign) > 1:
            shown, sign = (line.replace(self.separator, ONE_SIGN) for line in lines), ONE_SIGN
        return csv.reader(shown, delimiter=sign, quoting=quoting, skipinitialspace=sign == BLANKS, strict=strict)

    def of_pandas(self) -> dict[str, Any]:
        """Return the form as `pandas.read_csv` takes it; only an empty field is a missing value."""
        separator = r"\s+" if self.separator == BLANKS else self.separator if len(self.separator) == 1 else ONE_SIGN
        quoting = csv.QUOTE_MINIMAL if self.has_quotes else csv.QUOTE_NONE
        missing = {"keep_default_na": False, "na_values": [""]}
        return missing | {"sep": separator, "quoting": quoting, "low_memory": False, "compression": None}

    def records(self, path: Path, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Yield the line on which each record starts, and its fields; empty lines are left out."""
        with open_text(path, self.encoding) as lines:
            reader, line, n_empty = self._reader(lines, strict), 1, 0
            try:
                for fields in reader:
                    n_empty = 0 if fields else n_empty + 1
                    if fields:
                        yield line, fields
                    elif n_empty > MOST_EMPTY_LINES:
                        raise DataFileError(f"{path}, line {line}: expected fields, found {n_empty:,} empty lines")
                    line = reader.line_num + 1
            except csv.Error as error:
                raise DataFileError(
                    f"{path}, line {line}: expected fields with closed quotes, found: {error}{_HINT_AT_QUOTES}"
                ) from None


_HINT_AT_QUOTES = '; quote=False takes " as any other sign (in the shell --no-quote)'


class _Blanks:
    """Fields between runs of blanks, as `csv.reader` gives those of other separators."""

    def __init__(self, lines: Any) -> None:
        self._lines, self.line_num = iter(lines), 0

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        fields = next(self._lines).split()
        self.line_num += 1
        return fields


def check_separator(sep: str | None) -> None:
    """Raise `ParameterError` where a separator is none that can be told from the fields."""
    if sep is not None and sep not in _SIGNS | {_TWO_SIGNS}:
        raise ParameterError(f"sep must be one ASCII sign, blank, tab or ::, but no quote, found {sep!r}")


def forms_of(path: Path, writing: Writing, first: str) -> list[Form]:
    """Return the forms that a file with this first line may have, the most probable first."""
    check_separator(writing.sep)
    usual = _FIRST.get(ending_of(path), "\t")
    separators = [writing.sep] if writing.sep else list(dict.fromkeys((usual, *_SEPARATORS)))
    with open_text(path, writing.encoding) as lines:
        some = [line.strip("\r\n") for line in itertools.islice(lines, _LOOKED_AT) if line.strip()]
    return [_form(separator, writing, first, some) for separator in separators]


def _form(separator: str, writing: Writing, first: str, some: list[str]) -> Form:
    if writing.quote is not None:
        return Form(separator, writing.quote, writing.encoding, states_quotes=True)
    plain, with_quotes = (Form(separator, each, writing.encoding, states_quotes=False) for each in (False, True))
    if separator in _QUOTED or _is_quoted(first, separator):
        return with_quotes
    return with_quotes if not _all_alike(plain, some) and _all_alike(with_quotes, some) else plain


def _all_alike(form: Form, lines: list[str]) -> bool:
    """Return whether all lines have as many fields as the first."""
    return len({len(form.split(line)) for line in lines}) == 1


def _is_quoted(line: str, separator: str) -> bool:
    """Return whether a field of a line is wholly within quotes."""
    fields = line.split() if separator == BLANKS else line.split(separator)
    return any(len(field) > 1 and field[0] == field[-1] == '"' for field in map(str.strip, fields))


def widest(forms: Sequence[Form], line: str) -> Form:
    """Return the form in which a line has most fields, of several the first; blanks count where no other sign does."""
    signs = [form for form in forms if form.separator != BLANKS]
    found = max(signs or forms, key=lambda form: len(form.split(line)))
    return found if len(found.split(line)) > 1 else max(forms, key=lambda form: len(form.split(line)))


def ending_of(file: Path) -> str:
    """Return the suffix that tells the kind of a table, in lower case, without that of a packed file."""
    return (file.with_suffix("") if file.suffix.lower() in (".gz", ".zip") else file).suffix.lower()


def first_line(path: Path, encoding: str | None = None) -> str:
    """Return the first line with text, the header of most files."""
    with open_text(path, encoding) as lines:
        first = itertools.islice(lines, MOST_EMPTY_LINES)
        header = next((line.strip("\r\n") for line in first if line.strip("\r\n")), "")
        more = next(lines, "")
    if not header or "\0" in header:
        empty = f"no text in the first {MOST_EMPTY_LINES} lines" if more else "an empty file"
        fault = "a NUL byte; is it encoding='utf-16' (in the shell --encoding utf-16)?" if header else empty
        raise DataFileError(f"{path}: expected text that starts with a header line, found {fault}")
    if header[:4].casefold() == "sep=":
        raise DataFileError(f"{path}, line 1: expected the names of columns, found {header!r} for Excel: leave it out")
    return header


def check_width(path: Path, form: Form, most: int = MOST_COLUMNS) -> None:
    """Raise where a table has more than so many columns, or its first row is wider than its header or split otherwise.

    pandas takes the surplus for an index of as many levels, which costs minutes for a file of a megabyte.
    """
    records = form.records(path)
    header = next(records, (1, []))[1]
    if len(header) > most:
        raise DataFileError(f"{path}, line 1: expected at most {most:,} columns, found {len(header):,}")
    are_blanks = form.separator == BLANKS  # between which no field can be empty
    for line, fields in itertools.islice(records, _LOOKED_AT if are_blanks else 1):
        if len(fields) > len(header) or (are_blanks and len(fields) < len(header)):
            expected = f"{len(header)} fields separated by {form.separator!r}, as in the header"
            raise malformed(path, line, expected, form.separator.join(fields))


def check_spans(path: Path, form: Form) -> None:
    """Raise `DataFileError` where a quote swallows lines that look like records; warn of other fields that span lines.

    A caller who states that there are quotes means them.
    """
    if form.states_quotes or not form.has_quotes:
        return
    told, n_fields = False, None
    for line, fields in form.records(path):
        n_fields = len(fields) if n_fields is None else n_fields
        for field in fields:
            inner = field.split("\n")[1:]
            if any(part.count(form.separator) >= max(n_fields - 1, 1) for part in inner):
                raise DataFileError(
                    f"{path}, line {line}: expected each record on a line of its own, found a quote that holds "
                    f"{len(inner)} more lines, {quoted(field, 60)}{_HINT_AT_QUOTES}, quote=True (--quote) keeps it"
                )
            if inner and not told:
                told = True
                warnings.warn(
                    f"{path}, line {line}: a field in quotes spans {len(inner) + 1} lines", DataWarning, stacklevel=2
                )
