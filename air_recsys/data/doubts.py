"""What a caller's table may mean otherwise than it is read: its ids, its zeros, its times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from air_recsys.data.columns import usual_column
from air_recsys.data.ids import IdIndex, folded_text, plain_text
from air_recsys.exceptions import quoted

_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
_FEW, _FEWEST = 25, 9  # ratings, of which zeros tell nothing, also in a full table of them
_NO_IDS = {"total", "totals", "grand total", "subtotal"}
_BESIDE = {"all", "sum", "mean", "average", "avg", "median", "std", "count", "age", "sex", "gender", "zip", "zipcode"}
"""Names that rows and columns of a wide table have where these are no users and items."""
MISSING = frozenset(
    ("nan", "NaN", "None", "NULL", "N/A", "n/a", "#N/A", "<NA>", "NaT", "undefined", "(not set)", "\\N", "null")
)
"""Texts that other programs write for what is missing."""
_OF_TITLES, _TITLED = re.compile(r"\b(the|of|and)\b|\(\d{4}\)", re.IGNORECASE), 0.2  # and their least share
_SHOWN = 5  # new ids that are told
_SOME = 10_000  # ratings that stand for all
_DECADES = 1e4  # between the least and the largest of ratings that are no grades
_NO_ANSWERS, _OFTEN = (7, 8, 9, 66, 77, 88, 97, 98, 99), 0.02  # values, and their least share
_GRADES, _PART = 3, 0.1  # of one scale the fewest grades, and their least share
_FULL = 0.95  # density of a table whose gaps are filled
_ALL_ONCE = 1000  # rows in which every id would occur once by chance in huge tables alone
_MANY, _MOST = 100, 0.3  # a value that no grade has, and the share of the lowest from which values are counts


def doubts_about_rows(users: IdIndex, items: IdIndex, n_ratings: int) -> Iterator[str]:
    """Yield a line about ids that have one rating each, as the numbers of rows or of reviews."""
    for index, others in ((users, items), (items, users)):
        numbers = index.ids.dtype != object and len(index) == index.ids.max() - index.ids.min() + 1
        if 1 < len(others) < len(index) == n_ratings > (_FEW if numbers else _ALL_ONCE):
            yield f"each {index.kind} has one rating: are the {index.kind} ids numbers of rows?"


def doubts_about_ids(users: IdIndex, items: IdIndex, header: Sequence[Hashable]) -> Iterator[str]:
    """Yield lines about ids that another program may have changed, or made; `header` names the columns of ids."""
    for index in (users, items):
        for doubt, found in _odd(index.ids.tolist() if index.ids.dtype == object else []).items():
            if found:
                yield f"ids such as {quoted(found[0])} {doubt}"
        if index.ids.dtype != object and index.ids.size > 1 and index.ids[0] in (np.iinfo(np.int64).min, -1):
            yield f"the {index.kind} id {index.ids[0]} is what becomes of a missing one: are ids missing?"
        named = _NO_IDS if header else _NO_IDS | _BESIDE
        for each in (id for id in index.ids.tolist() if isinstance(id, str) and id.casefold() in named):
            yield f"{each!r} counts as {'a user' if index is users else 'an item'}: leave out totals and other columns"
    names = set() if header else set(items.ids.tolist())
    for each in (id for id in names if isinstance(id, str) and id.endswith(".1") and id[:-2] in names):
        yield f"{each!r} beside {each[:-2]!r} is what pandas makes of a second column of one name, and is another item"
    if not header and (found := _turned(users, items)):
        yield f"{found}: users stand in rows and items in columns; otherwise transpose the table (frame.T)"
    if header and users.lookup(header[:1])[0] >= 0 and items.lookup(header[1:])[0] >= 0:
        yield f"the names of the columns, {header[0]!r} and {header[1]!r}, are ids: is the header there twice?"


class Read(NamedTuple):
    """Ratings of a caller's table as they were read, with positions of their users and items.

    `is_long` where a row is one rating, `is_sparse` where a matrix stores those that are there.
    """

    users: np.ndarray
    items: np.ndarray
    ratings: np.ndarray
    shape: tuple[int, int]
    is_long: bool
    is_sparse: bool

    @property
    def density(self) -> float:
        """Share of the pairs that are rated."""
        return self.ratings.size / (self.shape[0] * self.shape[1])

    @property
    def some(self) -> np.ndarray:
        """Ratings that stand for all."""
        return self.ratings[:: max(1, self.ratings.size // _SOME)]


def doubts_about_ratings(read: Read) -> Iterator[str]:
    """Yield a line for each way in which ratings on no stated scale may be none, or of no one scale."""
    if read.ratings.size >= _FEWEST:
        yield from filter(None, (hazard(read) for hazard in _HAZARDS))


def _zeros(read: Read) -> str | None:
    """Zeros below other ratings: all pairs of a matrix have one, a sparse one stores them, or they are many or far."""
    ratings, n_zeros = read.ratings, read.ratings.size - np.count_nonzero(read.ratings)
    is_full, is_small = not read.is_long and read.density == 1, ratings.size < _FEW
    if not n_zeros or ((is_small or not is_full) and not _are_whole(2 * ratings if read.is_sparse else ratings)):
        return None
    some, share = np.unique(read.some[read.some != 0]), n_zeros / ratings.size
    is_far = some.size > 2 and some[0] > 2 * np.diff(some).min()
    is_many = share >= 0.5 or (share >= 0.2 and n_zeros > 3 * np.count_nonzero(ratings == 1))
    is_stored = read.is_sparse and some.size > 2
    if some.size <= 1 + is_small or some[0] < 0 or not (is_full or is_far or is_many or is_stored):
        return None
    found = "every pair has a rating" if is_full else f"{100 * share:.0f} % of the ratings are 0"
    return f"{found}: a 0 counts as a rating; missing=0 (in the shell --missing 0) if it does not"


def _answers(read: Read) -> str | None:
    """9, 99, ..., which stand for no answer in questionnaires, well above all other grades."""
    values, counts = np.unique(read.some, return_counts=True)
    n_grades = 1 + int(np.argmax(np.append(np.diff(values) != 1, True)))
    grades, codes, n_codes = values[:n_grades], values[n_grades:], counts[n_grades:].sum()
    if n_grades < 3 or grades[0] not in (0, 1) or not 0 < codes.size <= 3 or n_codes < max(2, _OFTEN * counts.sum()):
        return None
    if not np.isin(codes, _NO_ANSWERS).all() or codes[0] < grades[-1] + 3:
        return None
    found = f"{np.count_nonzero(read.ratings >= codes[0])} ratings are {', '.join(f'{code:g}' for code in codes)}"
    return (
        f"{found}, the others in {grades[0]:g}..{grades[-1]:g}: drop those that mean no answer (in the shell "
        f"--missing {codes[0]:g}), or state rating_scale=({grades[0]:g}, {codes[-1]:g})"
    )


def _two_scales(read: Read) -> str | None:
    """Grades of two scales, three or more of each: 1..5, and above a gap that is wider than these, 20..100."""
    values, counts = np.unique(read.some, return_counts=True)
    if values.size < 2 * _GRADES or values[0] < 0:
        return None
    jumps = values[_GRADES : 1 - _GRADES] / values[_GRADES - 1 : -_GRADES]
    place = _GRADES + int(jumps.argmax())
    low, high, share = values[:place], values[place:], counts[:place].sum() / counts.sum()
    if high[0] - low[-1] <= low[-1] - low[0] or not _PART < share < 1 - _PART:
        return None
    return (
        f"{100 * share:.0f} % of the ratings lie in {low[0]:g}..{low[-1]:g}, the others in {high[0]:g}..{high[-1]:g}: "
        "are these two scales? Bring all to one"
    )


def _rows_to_predict(read: Read) -> str | None:
    """A value of the last rows alone, as 0 is where rows to predict stand behind those that are rated."""
    others = np.flatnonzero(read.ratings != read.ratings[-1])
    start = others[-1] + 1 if others.size else 0
    n_rows, before = read.ratings.size - start, read.ratings[:start]
    if not read.is_long or n_rows < _FEWEST or start < _FEWEST or others.size < start:
        return None
    steps = np.diff(before)
    if (steps >= 0).all() or (steps <= 0).all():  # a table in the order of its ratings
        return None
    return (
        f"the last {n_rows} rows are rated {read.ratings[-1]:g}, and no other: drop them if they are to be predicted"
    )


def _filled(read: Read) -> str | None:
    """A table without gaps in which each item, or each user, has one value that is no grade, as means are."""
    is_none = 2 * read.ratings != np.trunc(2 * read.ratings)
    n_filled = np.count_nonzero(is_none)
    if read.density < _FULL or not _FEWEST <= n_filled <= (1 - _OFTEN) * read.ratings.size:
        return None
    for name, index in (("item", read.items[is_none]), ("user", read.users[is_none])):
        n_values = np.unique(np.stack([index, read.ratings[is_none]]), axis=1).shape[1]
        if n_values == np.unique(index).size <= n_filled / 2:
            return f"{n_filled} ratings are one value of each {name}: if means fill gaps, leave these out"
    return None


def _ranks(read: Read) -> str | None:
    """Ratings that are 1, 2, ..., one each of all ratings of a user."""
    n_rows, most = np.bincount(read.users), read.ratings.max()
    if most < _GRADES or most != n_rows.max() or read.ratings.size < _FEW:
        return None
    sums = (np.bincount(read.users, read.ratings**power) for power in (1, 2))
    expected = n_rows * (n_rows + 1) / 2, n_rows * (n_rows + 1) * (2 * n_rows + 1) / 6
    if any((found != sum).any() for found, sum in zip(sums, expected, strict=True)):
        return None
    return "each user's ratings are 1, 2, 3, ...: if these are ranks, the best has the lowest rating"


_HAZARDS = _zeros, _answers, _two_scales, _rows_to_predict, _filled, _ranks


def doubts_about_span(ratings: np.ndarray) -> Iterator[str]:
    """Yield a line about ratings of which the largest would decide alone: over many decades, or counts."""
    low, high = float(ratings.min()), float(ratings.max())
    if ratings.size < _FEW or low <= 0 or high < min(_DECADES * low, _MANY) or high <= 1:  # pictures are in 0..1
        return
    are_counts = low == 1 and np.mean(ratings == 1) > _MOST and _are_whole(ratings)
    if high >= _DECADES * low or are_counts:
        yield (
            f"ratings lie between {low:g} and {high:g}: of affinities take air_recsys.dti.as_p_affinity, counts as of "
            "plays are likes, AIR.for_likes (in the shell --ranking), or take their logarithm"
        )


def doubts_about_times(times: np.ndarray) -> Iterator[str]:
    """Yield lines about times that tell no order, are dates written as numbers, or of which some are of no such year.

    The latter where most are seconds since 1970, or thousandths, ..., of the years 1985 to 2128.
    """
    low, high, some = float(times.min()), float(times.max()), times[:: max(1, times.size // _SOME)].astype(float)
    if low == high and times.size >= _FEW:
        yield f"all timestamps are {low:g}: they tell no order"
    middle = float(np.median(some))
    for unit in (1000.0**power for power in range(4) if 5e8 <= middle / 1000.0**power < 5e9):
        if low < 5e8 * unit or high >= 5e9 * unit:
            yield (
                f"timestamps lie between {low:g} and {high:g}, most near {middle:g}: are some missing, or in another "
                "unit, some seconds, and some milliseconds?"
            )
    days = some if low > 1e6 else 100 * some + 1  # of a month the first
    are_dates = days.min() > 19e6 and days.max() < 22e6 and np.isin(days % 100, range(1, 32)).all()
    if are_dates and np.isin(days // 100 % 100, range(1, 13)).all() and np.unique(days).size > 4:
        yield f"timestamps such as {low:.0f} look like dates, and count as numbers: pd.to_datetime makes them dates"


def _are_whole(numbers: np.ndarray) -> bool:
    return bool((numbers == np.trunc(numbers)).all())


def doubts_about_new(known: IdIndex, ids: np.ndarray) -> Iterator[tuple[bool, str]]:
    """Yield lines about unknown ids that are near another, and first, with True, those of blanks and Unicode alone."""
    new = [each for each in dict.fromkeys(ids[known.lookup(ids) < 0].tolist()) if isinstance(each, str)]
    added, near = {}, []
    for each in new:
        key, texts = folded_text(each), known.by_folded_text
        other = texts[key] if key in texts else added.setdefault(key, each)
        near += [(plain_text(each) != plain_text(other), each, other)] if other != each else []
    for is_other, each, other in sorted(near)[:_SHOWN]:
        differs = f"differs from {quoted(other)} only in case, blanks, leading zeros or forms of Unicode"
        yield not is_other, f"the new {known.kind} id {quoted(each)} {differs}: is that one meant?"


def _turned(users: IdIndex, items: IdIndex) -> str | None:
    """Return which id, a title or one such as "user 7", tells that a wide table has items in rows; None without."""
    titles, others = (
        [id for id in index.ids.tolist() if isinstance(id, str) and _OF_TITLES.search(id)] for index in (users, items)
    )
    if len(titles) >= max(2, _TITLED * len(users)) and not others:
        return f"the row {quoted(titles[0])} looks like an item"
    for index, role, place in ((items, "user", "column"), (users, "item", "row")):
        names = (str(id) for id in index.ids.tolist())
        if all(name[-1:].isdigit() and usual_column(role, role, [name.rstrip("0123456789")]) for name in names):
            return f"the {place} {quoted(index.ids.item(0))} looks like {'a user' if role == 'user' else 'an item'}"
    return None


def _odd(ids: list[Any]) -> dict[str, list[Any]]:
    """Return ids that look as if another program changed them, by what is odd."""
    texts = [each for each in ids if isinstance(each, str)]
    escaped = [id for id in texts if "\\" in id and '"' in id]
    others = [each for each in ids if not isinstance(each, str)]
    written, folded = set(map(str, others)), [folded_text(each) for each in texts]
    twice = {each for each, n in Counter(folded).items() if n > 1}
    whole = [id for id in ids if not isinstance(id, str) or id.isdigit()]
    strange = [id for id in texts if not any(map(str.isdigit, id))]
    odd = {
        "are there as text and as number, which are two ids": [id for id in texts if id in written],
        "begin or end with a blank, which counts": [id for id in texts if id.strip().strip("\ufeff\u200b") != id],
        "differ from others only in case, blanks, leading zeros or forms of Unicode or HTML, and are other ids": [
            id for id, each in zip(texts, folded, strict=True) if each in twice
        ],
        "stand for missing ones elsewhere, and count as ids": [
            id for id in texts if id in MISSING or not id.strip("-")
        ],
        "are lists that were saved as text": [id for id in texts if re.match(r"\[.*\]$|\{['\"]", id)],
        "have quotes behind backslashes, which both stay: in files double the quotes": escaped,
        "are written for spreadsheets, and stay so": [id for id in texts if id[:2] == '="'],
    }
    if all(map(_NUMBER.fullmatch, texts)):
        odd["have a point or an exponent, and stay text"] = [id for id in texts if not id.lstrip("+-").isdigit()]
    if len(strange) in (1, 2) and len(whole) == len(ids) - len(strange) > 4:
        odd["are the only ones that are no integers, so that all are text"] = strange
    if not texts and all(isinstance(each, float) and each.is_integer() for each in others):
        odd["are floating point numbers that may have lost digits, so that two ids are one"] = others
    if not texts and all(isinstance(each, bytes) for each in others):
        odd["are bytes and no text"] = others
    return odd
