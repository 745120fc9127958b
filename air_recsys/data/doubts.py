"""What a caller's table may mean otherwise than it is read: its ids, its zeros, its times."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from air_recsys.data.ids import IdIndex
from air_recsys.exceptions import quoted

_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
_FEW = 25  # ratings, of which zeros tell nothing


def doubts_about_ids(users: IdIndex, items: IdIndex, header: Sequence[Hashable]) -> Iterator[str]:
    """Yield lines about ids that another program may have changed, or made; `header` names the columns of ids."""
    for index in (users, items):
        for doubt, found in _odd(index.ids.tolist() if index.ids.dtype == object else []).items():
            if found:
                yield f"ids such as {quoted(found[0])} {doubt}"
        if index.ids.dtype != object and index.ids.size and index.ids[0] == np.iinfo(np.int64).min:
            yield f"the {index.kind} id {index.ids[0]} is what becomes of a missing one: are ids missing?"
    if str(users.ids[-1]) == str(items.ids[-1]) == "All":
        yield "'All' counts as a user and as an item: leave out the margins of a pivot table"
    if header and users.lookup(header[:1])[0] >= 0 and items.lookup(header[1:])[0] >= 0:
        yield f"the names of the columns, {header[0]!r} and {header[1]!r}, are ids: is the header there twice?"


def doubts_about_zeros(ratings: np.ndarray, n_pairs: int) -> Iterator[str]:
    """Yield a line about zeros below other ratings, where all pairs have one, or most of whole ratings are 0."""
    share, is_full = 1 - np.count_nonzero(ratings) / ratings.size, ratings.size == n_pairs
    if share > 0 and (is_full or share >= 0.5) and ratings.size >= _FEW:
        some, is_whole = np.unique(ratings), (ratings == np.trunc(ratings)).all()
        if some[0] == 0 and some.size > 2 and (is_full or is_whole):
            found = "every pair has a rating" if is_full else f"{100 * share:.0f} % of the ratings are 0"
            yield f"{found}: a 0 counts as a rating; missing=0 (in the shell --missing 0) if it does not"


def doubts_about_times(times: np.ndarray) -> Iterator[str]:
    """Yield a line about times of which some are seconds since 1970, of the years 1985 to 2128, and others less."""
    ends = float(times.min()), float(times.max())
    if len({power for end in ends for power in range(4) if 5e8 <= end / 1000**power < 5e9}) > 1:
        yield f"timestamps lie between {ends[0]:g} and {ends[1]:g}: are some seconds, and some milliseconds?"


def _odd(ids: list[Any]) -> dict[str, list[Any]]:
    """Return ids that look as if another program changed them, by what is odd."""
    texts = [each for each in ids if isinstance(each, str)]
    others = [each for each in ids if not isinstance(each, str)]
    written = set(map(str, others))
    composed = {each: unicodedata.normalize("NFC", each) for each in texts if not each.isascii()}
    odd = {
        "are there as text and as number, which are two ids": [id for id in texts if id in written],
        "begin or end with a blank, which counts": [id for id in texts if id.strip().strip("\ufeff\u200b") != id],
        "are there in two forms of Unicode": [id for id, nfc in composed.items() if id != nfc and nfc in composed],
        "are lists that were saved as text": [id for id in texts if id[:1] == "[" and id[-1:] == "]"],
        "are written for spreadsheets, and stay so": [id for id in texts if id[:2] == '="'],
    }
    if all(map(_NUMBER.fullmatch, texts)):
        odd["have a point or an exponent, and stay text"] = [id for id in texts if not id.lstrip("+-").isdigit()]
    if not texts and all(isinstance(each, float) and each.is_integer() for each in others):
        odd["are floating point numbers that may have lost digits, so that two ids are one"] = others
    if not texts and all(isinstance(each, bytes) for each in others):
        odd["are bytes and no text"] = others
    return odd
