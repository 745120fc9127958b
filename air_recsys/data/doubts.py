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
_LIST = re.compile(r"[^;|,]+([;|,])[^;|,]+(\1[^;|,]+)+|\S*\d\S*( \S*\d\S*){2,}")  # of three or more
_OF_TITLES, _TITLED = re.compile(r"\b(the|of|and)\b|\(\d{4}\)", re.IGNORECASE), 0.2  # and their least share
_SHOWN = 5  # new ids that are told
_SOME = 10_000  # ratings that stand for all
_DECADES = 1e4  # between the least and the largest of ratings that are no grades
_NO_ANSWERS, _OFTEN = (7, 8, 9, 66, 77, 88, 97, 98, 99), 0.02  # values, and their least share
_GRADES, _PART = 3, 0.1  # of one scale the fewest grades, and their least share
_ALIKE = 5  # users, or ratings of one, that chance makes alike no more
_TWICE = 1_000_000  # rows up to which those of each user are compared
_FULL = 0.95  # density of a table whose gaps are filled
_ALL_ONCE = 1000  # rows in which every id would occur once by chance in huge tables alone
_MORE = 11  # values that few, and no grades have


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
    """Ratings of a caller's table, as rows where `is_long`, else as a matrix, which stores them where `is_sparse`."""

    users: IdIndex
    items: IdIndex
    user_index: np.ndarray
    item_index: np.ndarray
    ratings: np.ndarray
    times: np.ndarray | None
    is_long: bool
    is_sparse: bool

    def side_of(self, values: np.ndarray, kept: Any = slice(None)) -> str:
        """Return the side of which each has one of the kept values, which differ and repeat; "" where none has."""
        for index, places in ((self.items, self.item_index[kept]), (self.users, self.user_index[kept])):
            last = np.zeros(len(index), values.dtype)
            last[places] = values[kept]
            if (last[places[:_SOME]] != values[kept][:_SOME]).any():  # no copy of all where some tell enough
                continue
            if (last[places] == values[kept]).all() and 2 * np.unique(places).size <= places.size:
                return index.kind if np.ptp(last[places]) else ""
        return ""


def doubts_about_ratings(read: Read, *, on_scale: bool) -> Iterator[str]:
    """Yield lines about rows that are no ratings, and where no scale is stated about ratings that are none of one."""
    grades, counts = np.unique(read.ratings[:: max(1, read.ratings.size // _SOME)], return_counts=True)
    if read.ratings.size >= _FEW and read.is_long:
        yield from _doubts_about_rows(read, grades.size > _GRADES)
    if read.ratings.size < _FEWEST or on_scale:
        return
    density = read.ratings.size / (len(read.users) * len(read.items))
    if not read.is_long and len(read.items) == 2 and _are_whole(read.ratings):
        columns = (read.ratings[read.item_index == place] for place in (0, 1))
        if all(_MORE < np.unique(column).size <= column.size / 2 for column in columns):
            yield "two columns of many whole numbers: if these are ids, name them, as columns user and item of a frame"
    yield from _doubts_about_zeros(read, grades[grades != 0], is_full=density == 1 and not read.is_long)
    yield from _doubts_about_answers(read.ratings, grades, counts)
    yield from _doubts_about_scales(read, grades, counts)
    if density > _FULL:
        yield from _doubts_about_gaps(read, grades, counts)


def _doubts_about_rows(read: Read, has_grades: bool) -> Iterator[str]:
    """Yield lines about exchanged ids, a column in an order of its own, one value a side, copies and placeholders."""
    users, ratings = read.user_index, read.ratings
    if read.users.ids.dtype == read.items.ids.dtype == object:
        rows = (read.items.lookup(read.users.ids) >= 0)[users]
        rows &= (read.users.lookup(read.items.ids) >= 0)[read.item_index]
        if 0 < np.count_nonzero(rows) < rows.size / 2:
            found = quoted(read.users.ids[users[rows.argmax()]])
            yield f"ids such as {found} are users of some rows and items of others: are some rows exchanged?"
    is_sorted, are_next = _in_order(ratings) or _in_order(-ratings), (np.diff(ratings[:_SOME]) == 1).all()
    if has_grades and is_sorted and (are_next or _in_order(users) or _in_order(read.item_index)):
        yield "ratings are in order, as other columns are: was one sorted by itself, or are they row numbers?"
    for name, values in (("rating", ratings), ("time", read.times)):
        if values is not None and (side := read.side_of(values)):
            yield f"each {side} has the same {name} in all rows: a mean, a year, ... of the {side} is no {name}"
    if has_grades and ratings.size <= _TWICE:
        marks = np.random.default_rng(0).random(len(read.items))[read.item_index] * (1 + ratings)
        sums = np.bincount(users, marks).round(6)[np.bincount(users) >= _ALIKE]
        alike = np.unique(sums, return_counts=True)[1]
        if (n_again := alike[alike > 1].sum()) >= max(_ALIKE, sums.size / 2):
            yield f"{n_again} users have the same ratings as another: is the table there twice, under two ids?"
    n_last = int((ratings[::-1] != ratings[-1]).argmax())
    if _FEWEST <= n_last == np.count_nonzero(ratings == ratings[-1]) and not is_sorted:
        yield f"the last {n_last} rows are rated {ratings[-1]:g}, and no other: drop them if they are to be predicted"


def _doubts_about_zeros(read: Read, some: np.ndarray, *, is_full: bool) -> Iterator[str]:
    """Yield a line about zeros below others: of all pairs, stored, or of whole ratings many or far below."""
    ratings, n_zeros = read.ratings, read.ratings.size - np.count_nonzero(read.ratings)
    is_small = ratings.size < _FEW
    if not n_zeros or ((is_small or not is_full) and not _are_whole((1 + read.is_sparse) * ratings)):
        return
    share = n_zeros / ratings.size
    is_far = some.size > 2 and (read.is_sparse or some[0] > 2 * np.diff(some).min())
    is_many = share >= 0.5 or (share >= 0.2 and n_zeros > 3 * np.count_nonzero(ratings == 1))
    if some.size > 1 + is_small and some[0] > 0 and (is_full or is_far or is_many):
        found = "every pair has a rating" if is_full else f"{100 * share:.0f} % of the ratings are 0"
        yield f"{found}: a 0 counts as a rating; missing=0 (in the shell --missing 0) if it does not"


def _doubts_about_answers(ratings: np.ndarray, values: np.ndarray, counts: np.ndarray) -> Iterator[str]:
    """Yield a line about 9, 99, ..., which stand for no answer in questionnaires, well above all other grades."""
    n_grades = 1 + int(np.argmax(np.append(np.diff(values) != 1, True)))
    grades, codes, n_codes = values[:n_grades], values[n_grades:], counts[n_grades:].sum()
    if n_grades < 3 or grades[0] not in (0, 1) or not 0 < codes.size <= 3 or n_codes < max(2, _OFTEN * counts.sum()):
        return
    if np.isin(codes, _NO_ANSWERS).all() and codes[0] >= grades[-1] + 3:
        found = f"{np.count_nonzero(ratings >= codes[0])} ratings are {', '.join(f'{code:g}' for code in codes)}"
        yield (
            f"{found}, the others in {grades[0]:g}..{grades[-1]:g}: drop those that mean no answer (in the shell "
            f"--missing {codes[0]:g}), or state rating_scale=({grades[0]:g}, {codes[-1]:g})"
        )


def _doubts_about_scales(read: Read, grades: np.ndarray, counts: np.ndarray) -> Iterator[str]:
    """Yield lines about ratings of two scales, of a scale for each user, as ranks are, and of times."""
    ratings, n_users, low, high = read.ratings, len(read.users), grades[0], grades[-1]
    if grades.size >= 2 * _GRADES and low >= 0 and _are_whole(2 * grades):
        place = _GRADES + int((grades[_GRADES : 1 - _GRADES] / grades[_GRADES - 1 : -_GRADES]).argmax())
        top, start, share = grades[place - 1], grades[place], counts[:place].sum() / counts.sum()
        if start - top > top - low and _PART < share < 1 - _PART:
            found = f"{100 * share:.0f} % of the ratings lie in {low:g}..{top:g}, the others in {start:g}..{high:g}"
            yield f"{found}: are these two scales? Bring all to one"
    if (low, high) == (0, 1) and n_users >= _ALIKE and np.ptp(np.diff(grades)) > _PART / grades.size:
        ends = [np.bincount(read.user_index[ratings == end], minlength=n_users) > 0 for end in (0, 1)]
        if (ends[0] & ends[1] | (np.bincount(read.user_index, minlength=n_users) < _GRADES)).all():
            yield "each user has ratings of 0 and of 1: were they scaled user by user, which loses who rates high?"
    if high >= _GRADES and ratings.size >= _FEW and np.count_nonzero(ratings == 1) == n_users:
        n_rows, *sums = (np.bincount(read.user_index, ratings**power) for power in range(3))
        if np.allclose(sums, [n_rows * (n_rows + 1) / 2, n_rows * (n_rows + 1) * (2 * n_rows + 1) / 6]):
            yield "each user's ratings are 1, 2, 3, ...: if these are ranks, the best has the lowest rating"
    if 5e8 <= low < high < 5e12 and _are_whole(ratings):
        yield f"ratings lie between {low:g} and {high:g}, as times do: is another column that of ratings?"


def _doubts_about_gaps(read: Read, grades: np.ndarray, counts: np.ndarray) -> Iterator[str]:
    """Yield lines about a table without gaps that may hold similarities, or in which a value may fill gaps."""
    ratings, shape, place = read.ratings, (len(read.users), len(read.items)), int(counts.argmax())
    if not read.is_long and _ALIKE <= shape[0] == shape[1] and ratings.size == shape[0] ** 2 and grades.size > _GRADES:
        matrix = np.zeros(shape)
        matrix[read.user_index, read.item_index] = ratings
        if np.allclose(matrix, matrix.T) and (np.diag(matrix) == matrix.max()).all():
            yield "the matrix is symmetric, its diagonal the largest: are these similarities and no ratings?"
    found = ""
    for unit in (2, 1):  # half and whole grades
        rest = unit * ratings != np.trunc(unit * ratings)
        n_rest, n_grades = np.count_nonzero(rest), np.count_nonzero(unit * grades % 1 == 0)
        if min(n_rest, ratings.size - n_rest) >= _FEWEST and n_grades >= _GRADES:
            one = f"{ratings[rest][0]:g}" if np.ptp(ratings[rest]) == 0 else ""
            side = read.side_of(ratings, rest)
            found = f"{n_rest} ratings are {one or 'one value of each ' + side}" if one or side else found
    stands_out = grades.size > _MORE and _PART * counts.sum() < counts[place] > 3 * np.sort(counts)[-2]
    if stands_out and 0 < place < grades.size - 1:
        found = f"{100 * counts[place] / counts.sum():.0f} % of the ratings are {grades[place]:g}"
    if found:
        yield f"every pair has a rating, and {found}: if these fill gaps, leave them out"


def doubts_about_span(ratings: np.ndarray) -> Iterator[str]:
    """Yield a line about ratings of which the largest would decide alone: over many decades, or counts."""
    low, high = float(ratings.min()), float(ratings.max())
    if ratings.size < _FEW or low <= 0 or high < min(_DECADES * low, _MORE) or high <= 1:  # pictures are in 0..1
        return
    are_low = low == 1 and 4 * np.median(ratings) <= high and _are_whole(ratings)
    if high >= _DECADES * low or (are_low and np.count_nonzero(ratings == 1) >= np.count_nonzero(ratings == 2)):
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


def _in_order(values: np.ndarray) -> bool:
    return all((np.diff(part) >= 0).all() for part in (values[:_SOME], values))


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
    parts = {id: re.split(r"\s*[|;]\s*", id) for id in texts if "|" in id or ";" in id}
    known, lists = set(texts), [id for id in texts if _LIST.fullmatch(id)]
    several = [id for id, each in parts.items() if not known.isdisjoint(each)]
    odd = {
        "hold several, but count as one each": several or (lists if len(lists) > max(_ALIKE, len(texts) / 2) else []),
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
