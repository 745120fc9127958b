"""`Explanation`: the parts of a score."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.storage.markup import card, card_table, element


@dataclass(frozen=True, eq=False)
class Contributions:
    """The largest contributions of one kind, and the sum of all of them."""

    rows: pd.DataFrame  # largest first, by absolute value
    total: float
    count: int

    @property
    def others(self) -> float:
        """Sum of the contributions without a row."""
        return self.total - float(self.rows["contribution"].to_numpy().sum())


@dataclass(frozen=True, eq=False)
class Explanation:
    """The parts of one score, see `air_recsys.models.trained.TrainedRecommender.explain`.

    Attributes
    ----------
    user, item : hashable
        The explained pair.
    label : str or None
        The name of the item, if labels were given.
    score : float
        Prediction of the model for the pair.
    mean, user_bias, item_bias : float
        The start of the score.
    pattern : float
        Contribution of which items the user has rated, whatever the ratings; 0 in models without a posterior.
    user_features : Contributions
        Contribution of each feature of the user, for models with features of users.
    rated_items, similar_users : Contributions
        Contributions to the personal score by source: `rows`, and the `total` of those with and without a row.
    near_items : Contributions
        What the item graph carries to the item from rated items near it, and features or given similarities from
        rated ones: the share of each in the part of the score that factors and biases leave, see
        `air_recsys.nn.residuals` and `air_recsys.models.kernels`.
    graph_edges : Contributions
        Another view of the same contributions, so *not* a further part of the score: the contribution through each
        edge of the item graph.
    item_features : Contributions
        Contribution of each feature of the item to its bias and, for this user, to its factors. It is a view of
        `item_bias` and of the personal score from the side of the item, so *not* a further part of the score.
    time : float
        Contribution of the user and the item at the requested time; 0 without a time.
    remainder : float
        The part that the model's equations do not explain: the training has not converged, or did not use some
        ratings. With given similarities as kernels also what the ratings of other users add, see
        `air_recsys.models.kernels`.
    clipping : float
        Change of the score by the limits of the rating scale; 0 for models without `clip`.

    Examples
    --------
    >>> import numpy as np
    >>> from air_recsys import AIR
    >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
    >>> ratings[0, 0] = np.nan
    >>> model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings)
    >>> explanation = model.explain(0, 0, n=3)
    >>> abs(explanation.total() - explanation.score) < 1e-5
    True
    >>> explanation.rated_items.count, len(explanation.items)
    (7, 3)
    """

    user: Hashable
    item: Hashable
    label: str | None
    score: float
    mean: float
    user_bias: float
    item_bias: float
    pattern: float
    user_features: Contributions
    rated_items: Contributions
    near_items: Contributions
    similar_users: Contributions
    graph_edges: Contributions
    item_features: Contributions
    time: float
    remainder: float
    clipping: float

    @property
    def items(self) -> pd.DataFrame:
        """Rated items: item, rating, deviation, weight (similarity to the explained item), contribution, by_graph."""
        return self.rated_items.rows

    @property
    def likes(self) -> pd.DataFrame:
        """Rows of `items` that the user rates above the mean plus the biases of user and item."""
        return self.items.query("deviation > 0").reset_index(drop=True)

    @property
    def dislikes(self) -> pd.DataFrame:
        """Rows of `items` that the user rates at or below the mean plus the biases of user and item."""
        return self.items.query("not deviation > 0").reset_index(drop=True)

    @property
    def users(self) -> pd.DataFrame:
        """Similar users: user, weight (similarity), their rating and score of the item, contribution, by_graph."""
        return self.similar_users.rows

    @property
    def edges(self) -> pd.DataFrame:
        """Edges of the item graph: item, neighbor, weight (similarity), rating of the neighbor, contribution."""
        return self.graph_edges.rows

    def parts(self) -> dict[str, float]:
        """The summands of the score by name."""
        return {
            "mean": self.mean,
            "user_bias": self.user_bias,
            "item_bias": self.item_bias,
            "pattern": self.pattern,
            "user_features": self.user_features.total,
            "rated_items": self.rated_items.total,
            "near_items": self.near_items.total,
            "similar_users": self.similar_users.total,
            "time": self.time,
            "remainder": self.remainder,
            "clipping": self.clipping,
        }

    def total(self) -> float:
        """The sum of all parts, which is the score up to the model's own rounding (float32)."""
        return sum(self.parts().values())

    def prose(self) -> str:
        """The score in sentences: what it starts from, what the user likes and dislikes, and similar users."""
        return prose_of(self)

    def _repr_html_(self) -> str:
        """HTML for notebooks: the sentences, the parts, and likes and dislikes apart."""
        return explanation_card(self)

    def to_dict(self) -> dict[str, Any]:
        """All parts as plain values for JSON; None where there is no value."""
        tables = {
            "items": self.rated_items,
            "near_items": self.near_items,
            "users": self.similar_users,
            "edges": self.graph_edges,
            "user_features": self.user_features,
            "item_features": self.item_features,
        }
        return {
            "user": _plain(self.user),
            "item": _plain(self.item),
            "label": self.label,
            "score": self.score,
            "parts": self.parts(),
            "tables": {name: _table_as_dict(table) for name, table in tables.items()},
        }

    def __str__(self) -> str:
        """The sentences, the parts and the tables as text."""
        named = f"{self.item}" if self.label is None else f"{self.item} ({self.label})"
        titles = {
            "user_bias": "bias of the user",
            "item_bias": "bias of the item",
            "pattern": "choice of items",
            "user_features": f"features of the user ({self.user_features.count})",
            "rated_items": f"rated items ({self.rated_items.count})",
            "near_items": f"items near it in the graph ({self.near_items.count})",
            "similar_users": f"similar users ({self.similar_users.count})",
        }
        shown = [(titles.get(name, name), part) for name, part in self.parts().items() if part != 0]
        width = max((len(title) for title, _ in shown), default=0)
        lines = [f"user {self.user}, item {named}: score {self.score:.4g}", "", self.prose(), ""]
        lines += [f"  {title:<{width}}  {part:+.4g}" for title, part in shown]
        tables = {
            "features of the user": self.user_features,
            "rated items": self.rated_items,
            "rated items near it in the item graph": self.near_items,
            "similar users": self.similar_users,
            "edges of the item graph (another view of the two parts above)": self.graph_edges,
            "features of the item (another view of the parts above)": self.item_features,
        }
        for heading, table in tables.items():
            if table.count:
                lines += ["", heading, _table_as_text(table)]
        return "\n".join(lines)


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and np.isnan(value) else value


def _table_as_dict(table: Contributions) -> dict[str, Any]:
    columns = table.rows.columns.tolist()
    rows = [
        {name: _plain(value) for name, value in zip(columns, row, strict=True)}
        for row in table.rows.itertuples(index=False, name=None)
    ]
    return {"rows": rows, "total": table.total, "others": table.others, "count": table.count}


def _table_as_text(table: Contributions) -> str:
    text = table.rows.to_string(index=False, float_format="{:.4g}".format, na_rep="-", max_colwidth=40)
    n_others = table.count - len(table.rows)
    return text if n_others == 0 else f"{text}\n... and {n_others} others: {table.others:+.4g}"


_NAMED = 3  # items in a sentence
_WIDTH = 100
_PARTS = {"user_bias": "bias of the user", "item_bias": "bias of the item", "pattern": "choice of items"}
Explained = Any
"""`air_recsys.models.explanation.Explanation`, whose module imports this one."""


def prose_of(found: Explained) -> str:
    """An explanation in sentences, likes and dislikes apart; see `Explanation.prose`."""
    start = found.mean + found.user_bias + found.item_bias
    offsets = [
        f"the mean {found.mean:.3g}" if found.mean else "",
        f"the user's habit {found.user_bias:+.2g}" if found.user_bias else "",
        f"the item's popularity {found.item_bias:+.2g}" if found.item_bias else "",
    ]
    known = f": without the user's taste it would be {start:.3g} ({', '.join(filter(None, offsets))})" if start else ""
    sentences = [f"User {found.user} is expected to rate {_item(found)} {found.score:.3g}{known}."]
    if found.near_items.count:
        near = found.near_items
        named = ", ".join(_names(near.rows)[:_NAMED])
        sentences.append(
            f"The graph adds {near.total:+.2g} from {near.count} near items that the user rated: {named}."
        )
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
    """An explanation as HTML: sentences, parts, and the items that the user likes and dislikes apart."""
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
    """A sentence on items that the user likes, or dislikes; empty without any."""
    if rows.empty:
        return ""
    named = [
        f"{name} (rated {rating:g})"
        for name, rating in zip(_names(rows)[:_NAMED], rows["rating"][:_NAMED].tolist(), strict=True)
    ]
    named += [f"{len(rows) - _NAMED} more"] if len(rows) > _NAMED else []
    listed = ", ".join(named[:-1]) + " and " + named[-1] if len(named) > 1 else named[0]
    return f"Items that the user {verb} add {rows['contribution'].sum():+.2g}: {listed}."
