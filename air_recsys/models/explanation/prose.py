"""An explanation in sentences, and as a notebook shows it."""

from __future__ import annotations

import textwrap
from typing import Any

import pandas as pd

from air_recsys.storage.markup import card, card_table, element

_NAMED = 3  # items in a sentence
_WIDTH = 100
_PARTS = {"user_bias": "bias of the user", "item_bias": "bias of the item", "pattern": "choice of items"}
Explained = Any
"""`air_recsys.models.explanation.explanation.Explanation`, whose module imports this one."""


def prose_of(found: Explained) -> str:
    """Return an explanation in sentences, likes and dislikes apart; see `Explanation.prose`."""
    start = found.mean + found.user_bias + found.item_bias
    offsets = [
        f"the mean {found.mean:.3g}" if found.mean else "",
        f"the user's habit {found.user_bias:+.2g}" if found.user_bias else "",
        f"the item's popularity {found.item_bias:+.2g}" if found.item_bias else "",
    ]
    known = f": without the user's taste it would be {start:.3g} ({', '.join(filter(None, offsets))})" if start else ""
    sentences = [f"User {found.user} is expected to rate {_item(found)} {found.score:.3g}{known}."]
    sentences += [_of_items(rows, verb) for rows, verb in ((found.likes, "likes"), (found.dislikes, "dislikes"))]
    n_others = found.rated_items.count - len(found.items)
    if n_others > 0:
        sentences.append(f"The {n_others} other rated items add {found.rated_items.others:+.2g}.")
    if found.pattern:
        sentences.append(f"The choice of rated items adds {found.pattern:+.2g}.")
    if found.user_features.count:
        sentences.append(f"The features of the user add {found.user_features.total:+.2g}.")
    if found.similar_users.count:
        sentences.append(f"The {found.similar_users.count} most similar users add {found.similar_users.total:+.2g}.")
    if found.clipping:
        sentences.append(f"The scale of the ratings limits it by {found.clipping:+.2g}.")
    return textwrap.fill(" ".join(filter(None, sentences)), _WIDTH)


def explanation_card(found: Explained) -> str:
    """Return an explanation as HTML: sentences, parts, and the items that the user likes and dislikes apart."""
    parts = [(_PARTS.get(name, name.replace("_", " ")), value) for name, value in found.parts().items() if value]
    tables = [
        card_table(f"Rated items that the user {verb}", _COLUMNS, _rows(rows))
        for rows, verb in ((found.likes, "likes"), (found.dislikes, "dislikes"))
        if len(rows)
    ]
    told = element("p", found.prose().replace("\n", " "), style="margin:.4em 0;max-width:45em")
    title = f"User {found.user}, {_item(found)}: {found.score:.4g}"
    return card(title, {}, told, card_table("Parts of the score", ["part", "adds"], parts), *tables)


_COLUMNS = ["item", "rating", "similarity", "adds"]


def _rows(rows: pd.DataFrame) -> list[tuple[str, float, float, float]]:
    columns = (_names(rows), rows["rating"], rows["weight"], rows["contribution"])
    return [(name, float(a), float(b), float(c)) for name, a, b, c in zip(*columns, strict=True)]


def _item(found: Explained) -> str:
    return f"item {found.item}" if found.label is None else str(found.label)


def _names(rows: pd.DataFrame) -> list[str]:
    return (rows["label"] if "label" in rows else rows["item"]).astype(str).tolist()


def _of_items(rows: pd.DataFrame, verb: str) -> str:
    """Return a sentence on items that the user likes, or dislikes; empty without any."""
    if rows.empty:
        return ""
    named = [
        f"{name} (rated {rating:g})"
        for name, rating in zip(_names(rows)[:_NAMED], rows["rating"][:_NAMED].tolist(), strict=True)
    ]
    named += [f"{len(rows) - _NAMED} more"] if len(rows) > _NAMED else []
    listed = ", ".join(named[:-1]) + " and " + named[-1] if len(named) > 1 else named[0]
    return f"Items that the user {verb} add {rows['contribution'].sum():+.2g}: {listed}."
