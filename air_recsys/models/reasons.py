"""Reasons in words: how a person has rated an item, by the person's own scale, and an explanation in sentences."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd

LIKED, HIGHER, LOWER, DISLIKED = "liked", "rated higher than expected", "rated no higher than expected", "disliked"
CHOSEN, LEFT = "chose", "did not choose"  # of 0/1 data
TASTES = (LIKED, CHOSEN, HIGHER, LOWER, DISLIKED, LEFT)
NAMED = 3  # items in a sentence
_WIDTH = 100
_MOSTLY = 2 / 3  # of what sets a score apart from the user's usual one
_LITTLE = 0.01  # of the score: not told
Explained = Any
"""`Explanation`, or `ListExplanation` in `prose_of_list`: their modules import this one."""


def tastes(
    ratings: np.ndarray, deviations: np.ndarray, usual: float, scale: tuple[float, float], binary: bool
) -> np.ndarray:
    """The word for each of some ratings of a person, one of `TASTES`.

    A rating is liked if it is higher than expected, above the middle of the scale, or there and not below the person's
    usual rating. It is disliked if it is no higher than expected, and below both the middle and the usual rating.

    Parameters
    ----------
    ratings, deviations : ndarray, shape (n,)
        Ratings, and how far each is above what the model expects of user and item without the user's taste.
    usual : float
        The median of all ratings of the person.
    scale : tuple of float
        The smallest and the largest rating.
    binary : bool
        Whether ratings say 0 or 1.
    """
    if binary:
        return np.where(ratings > 0, CHOSEN, LEFT)
    middle, higher = sum(scale) / 2, deviations > 0
    liked = higher & ((ratings > middle) | ((ratings == middle) & (ratings >= usual)))
    disliked = ~higher & (ratings < min(usual, middle))
    return np.select([liked, disliked, higher], [LIKED, DISLIKED, HIGHER], LOWER)


def prose_of(found: Explained) -> str:
    """An explanation in sentences, see `Explanation.prose`."""
    sentences = [_start(found), _of_all(found)]
    sentences += [_of_items(found.items[found.items["taste"] == taste], taste) for taste in TASTES]
    n_others = found.rated_items.count - len(found.items)
    if n_others > 0:
        sentences.append(f"The {n_others} other rated items add {found.rated_items.others:+.2g}.")
    sentences.append(_further(found))
    if found.clipping:
        sentences.append(f"The scale of the ratings limits it by {found.clipping:+.2g}.")
    return textwrap.fill(" ".join(filter(None, sentences)), _WIDTH)


def _start(found: Explained) -> str:
    start = found.mean + found.user_bias + found.item_bias
    offsets = [
        f"the mean {found.mean:.3g}" if found.mean else "",
        f"the user's habit {found.user_bias:+.2g}" if found.user_bias else "",
        f"the item's popularity {found.item_bias:+.2g}" if found.item_bias else "",
    ]
    known = f": without the user's taste it would be {start:.3g} ({', '.join(filter(None, offsets))})" if start else ""
    named = f"item {found.item}" if found.label is None else found.label
    return f"User {found.user} is expected to rate {named} {found.score:.3g}{known}."


def _of_all(found: Explained) -> str:
    """What everybody thinks of the item, where that is most of what sets the score apart from the user's usual one."""
    apart = found.score - found.mean - found.user_bias
    if abs(apart) < _LITTLE * abs(found.score) or not found.item_bias / apart >= _MOSTLY:
        return ""
    share, way = found.item_bias / apart, "well" if apart > 0 else "low"
    told = _percent(share) if share < 1 else "all"
    return f"That is mostly because everybody rates it {way}: {told} of how far it is from the user's usual rating."


def _of_items(rows: pd.DataFrame, taste: str) -> str:
    """A sentence on items that the user has rated so; empty without any."""
    if rows.empty:
        return ""
    ratings = rows["rating"].iloc[:NAMED].tolist()
    named = [f"{name} (rated {rating:g})" for name, rating in zip(names_of(rows)[:NAMED], ratings, strict=True)]
    named += [f"{len(rows) - NAMED} more"] if len(rows) > NAMED else []
    return f"Items that the user {taste} add {rows['contribution'].sum():+.2g}: {listed(named)}."


def _further(found: Explained) -> str:
    """The parts of the score that are no rated items, those that count."""
    near, alike = found.near_items, found.similar_users
    parts = {
        "the user's own rating of it": found.own_rating,
        f"{near.count} near items that the user rated, such as {listed(names_of(near.rows)[:NAMED])}": near.total,
        "the features of the user": found.user_features.total,
        "the time": found.time,
        "the choice of rated items": found.pattern,
        f"the {alike.count} most similar users": alike.total,
        "what other users' ratings and the training leave": found.remainder,
    }
    told = [f"{name} ({part:+.2g})" for name, part in parts.items() if abs(part) > _LITTLE * abs(found.score)]
    return f"Further parts of the score: {listed(told)}." if told else ""


def prose_of_list(found: Explained) -> str:
    """Why an item is in a list, in sentences, see `ListExplanation.prose`."""
    named = f"item {found.item}" if found.label is None else found.label
    rows = found.items[(found.items["contribution"] > 0) & (found.items["item"] != found.item)].iloc[:NAMED]
    if rows.empty or found.score <= 0:
        return f"Nothing that user {found.user} has speaks for {named}."
    shares = (rows["contribution"] / found.score).tolist()
    of_all, others = found.parts.get("no_items", 0.0) / found.score, found.n_items - len(rows)
    reasons = listed([f"{name} ({_percent(share)})" for name, share in zip(names_of(rows), shares, strict=True)])
    if of_all >= _MOSTLY:
        told = f"mostly because it suits everybody ({_percent(of_all)} of the score). Own reasons: {reasons}"
    else:
        told = f"because of {reasons} of the score"
        told += f". Of all users alike come {_percent(of_all)}" if of_all > _LITTLE else ""
    sentence = f"User {found.user} is given {named} {told}."
    rest = f" The {others} other items of the user add {_percent(1 - of_all - sum(shares))}." if others > 0 else ""
    return textwrap.fill(sentence + rest, _WIDTH)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def listed(words: list[str]) -> str:
    """Words as a list in a sentence.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def names_of(rows: pd.DataFrame) -> list[str]:
    """The labels of items, or else their ids."""
    named = rows["label"].fillna(rows["item"]) if "label" in rows else rows["item"]
    return named.astype(str).tolist()
