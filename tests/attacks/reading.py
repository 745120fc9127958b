"""Tables as people have them, with a known truth: separators, quotes, encodings, headers and names by chance."""

from __future__ import annotations

import gzip
import io
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from air_recsys.data.readers.titles import read_titles, titles_of
from air_recsys.datasets import read_features, read_ratings
from air_recsys.exceptions import AirRecsysError, DataWarning

Truth = dict[Any, str]
_HEADERS = {
    "ratings": (
        "user,item,rating",
        "userId,movieId,rating",
        "user_id:token,item_id:token,rating:float",
        "User,Item,Rating",
    ),
    "likes": ("user,item", "user_id,item_id", "USER,ITEM", "uid,iid"),
    "titles": ("id,title", "movieId,title", "item_id,title,genres", "ID,Title"),
    "features": ("item,year", "movieId,year", "item_id:token,year:float", "Item,Year"),
}
_STRANGE = {"ratings": "usuario,pelicula,nota", "likes": "wer,was", "titles": "film,nombre", "features": "film,anno"}
_IDS: tuple[Callable[[int], str], ...] = (
    lambda number: str(number + 1),
    lambda number: f"{number:04d}",
    lambda number: ("NA", "null", "None", "nan")[number] if number < 4 else f"id{number}",
    lambda number: f"Käse {number}",
    lambda number: (
        f'"Weird" {number}' if number % 3 == 0 else f'5" disc {number}' if number % 3 == 1 else f"o'{number}"
    ),
    lambda number: f"a, b; {number}",
)
_SEPARATORS = (",", ",", "\t", "\t", ";", "|", "::", " ")
_SUFFIXES = (".csv", ".csv", ".tsv", ".txt", ".dat", ".inter", ".base", ".rating", "", ".data")
_OUTCOMES = ("right", "refused", "told", "silent")


class Written(NamedTuple):
    """A file, what it holds, and how it was written."""

    name: str
    content: bytes
    truth: Truth
    traits: list[str]


def misread_files(n_files: int, seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Write tables, read each without options, and count the outcomes by door; with a note on each misread one."""
    rng, counts, notes = np.random.default_rng(seed), Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(n_files):
            door = tuple(_HEADERS)[number % len(_HEADERS)]
            written = write_by_chance(door, rng)
            path = Path(folder, f"{number}{written.name}")
            path.write_bytes(written.content)
            outcome, found = outcome_of(door, path, written.truth)
            counts[door, outcome] += 1
            if outcome in ("told", "silent"):
                notes.append(f"{door} {path.name}: {outcome}, {', '.join(written.traits)}; {found}")
            path.unlink()
    rows = [{"door": door} | {outcome: counts[door, outcome] for outcome in _OUTCOMES} for door in _HEADERS]
    return rows, notes


def outcome_of(door: str, path: Path, truth: Truth) -> tuple[str, str]:
    """Return what became of a file, and what was read where that is wrong."""
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", DataWarning)
            found = _READERS[door](path, truth)
    except AirRecsysError as error:
        return "refused", str(error)
    if found == truth:
        return "right", ""
    return ("told" if told else "silent"), repr(found)[:200]


def write_by_chance(door: str, rng: np.random.Generator) -> Written:
    """Return a table with everything about it drawn by chance."""
    rows, truth = _rows(door, rng)
    header: list[str] | None = _pick(rng, _HEADERS[door]).split(",")
    traits = []
    if rng.random() < 0.04:
        header = _STRANGE[door].split(",")
    elif rng.random() < 0.04:
        header = None
    more = len(header) - len(rows[0]) if header else 0
    rows = [[*row, *["Drama|War"] * more] for row in rows]
    if header and rng.random() < 0.3:
        header, rows = [*header, "timestamp"], [[*row, str(978300000 + place)] for place, row in enumerate(rows)]
    table = rows if header is None else [header, *rows]
    separator = _pick(rng, _SEPARATORS)
    text, quoted = _joined(table, separator, rng)
    end = _pick(rng, ("\n", "\n", "\r\n"))
    text = end.join(text) + _pick(rng, (end, end, "", end + end))
    content, encoding = _encoded(text, rng)
    name, content = _packed(_pick(rng, _SUFFIXES), content, rng)
    traits = [f"header {header}", f"separator {separator!r}", f"quotes {quoted}", encoding, name, f"end {end!r}"]
    return Written(name, content, truth, traits)


def _rows(door: str, rng: np.random.Generator) -> tuple[list[list[str]], Truth]:
    size = int(rng.integers(6, 40))
    first, second = _pick(rng, _IDS), _pick(rng, _IDS)
    if door in ("ratings", "likes"):
        pairs = rng.choice(size * 8, size, replace=False)
        ids = [(first(int(pair) // 8), second(int(pair) % 8)) for pair in pairs]
        values = [str(each) for each in rng.integers(1, 11, size) / 2]
        if door == "likes":
            return [list(pair) for pair in ids], dict.fromkeys(ids, "1.0")
        return [[*pair, value] for pair, value in zip(ids, values, strict=True)], dict(zip(ids, values, strict=True))
    ids = [first(number) for number in range(size)]
    values = [f"Film {each}" for each in ids] if door == "titles" else [str(1950 + each) for each in range(size)]
    return [list(row) for row in zip(ids, values, strict=True)], dict(zip(ids, values, strict=True))


def _joined(table: list[list[str]], separator: str, rng: np.random.Generator) -> tuple[list[str], str]:
    """Return the lines of a table, with quotes as programs write them: where they must be, or around all fields."""
    around_all = rng.random() < 0.15
    by_rule = around_all or separator in (",", ";") or any(separator in cell for row in table for cell in row)

    def cell_of(cell: str) -> str:
        needs = around_all or separator in cell or cell.startswith('"')
        return '"' + cell.replace('"', '""') + '"' if by_rule and needs else cell

    style = "all" if around_all else "where needed" if by_rule else "none"
    return [separator.join(map(cell_of, row)) for row in table], style


def _encoded(text: str, rng: np.random.Generator) -> tuple[bytes, str]:
    encoding = _pick(rng, ("utf-8", "utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"))
    return text.encode(encoding), encoding


def _packed(suffix: str, content: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    how = _pick(rng, ("plain", "plain", "plain", "plain", "gzip", "zip"))
    if how == "gzip":
        return suffix + _pick(rng, (".gz", "")), gzip.compress(content)
    if how == "plain":
        return suffix, content
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"table{suffix}", content)
    return f"{suffix}.zip", target.getvalue()


def _pick(rng: np.random.Generator, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _of_ratings(path: Path, truth: Truth, **how: Any) -> Truth:
    frame = read_ratings(path, **how).to_frame()
    rows = zip(frame["user"], frame["item"], frame["rating"], strict=True)
    return {(str(user), str(item)): str(float(rating)) for user, item, rating in rows}


def _of_titles(path: Path, truth: Truth) -> Truth:
    known = np.array([int(each) for each in truth] if all(map(_is_integer, truth)) else list(truth), dtype=None)
    titles = titles_of(read_titles(path, known if known.dtype.kind == "i" else known.astype(object)))
    return {str(key): str(value) for key, value in titles.items()}


def _is_integer(text: str) -> bool:
    return text.isdigit() and str(int(text)) == text


def _of_features(path: Path, truth: Truth) -> Truth:
    table = read_features(path, "item")
    return {str(key): str(int(value)) for key, value in table.iloc[:, 0].items()}


_READERS: dict[str, Callable[[Path, Truth], Truth]] = {
    "ratings": _of_ratings,
    "likes": lambda path, truth: _of_ratings(path, truth, rating=None, duplicates="first"),
    "titles": _of_titles,
    "features": _of_features,
}
