"""`Explanation`: the parts of a score."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.models.reasons import DISLIKED, LIKED, TASTES, names_of, prose_of
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
    own_rating : float
        Contribution of the user's own rating of the item; 0 without one.
    rated_items, similar_users : Contributions
        Contributions of other rated items, and of similar users, to the personal score: `rows`, and the `total`
        of those with and without a row.
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
    own_rating: float
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
        """Rated items: item, rating, deviation, taste, weight (similarity to the item), contribution, by_graph.

        The column `taste` is how the user has rated the item, see `air_recsys.models.reasons.tastes`.
        """
        return self.rated_items.rows

    @property
    def likes(self) -> pd.DataFrame:
        """Rows of `items` that the user liked: rated higher than expected, in the upper half of the scale."""
        return self._of_taste(LIKED)

    @property
    def dislikes(self) -> pd.DataFrame:
        """Rows of `items` that the user disliked: no higher than expected, and low for the scale and the user."""
        return self._of_taste(DISLIKED)

    def _of_taste(self, taste: str) -> pd.DataFrame:
        return self.items.query("taste == @taste").reset_index(drop=True)

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
            "own_rating": self.own_rating,
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
        """The score in sentences: what it starts from, rated items by how the user rated them, and further parts."""
        return prose_of(self)

    def _repr_html_(self) -> str:
        """HTML for notebooks: the sentences, the parts, and rated items by how the user has rated them."""
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
            "user": as_plain(self.user),
            "item": as_plain(self.item),
            "label": self.label,
            "score": self.score,
            "parts": self.parts(),
            "tables": {
                name: {"rows": plain_rows(each.rows), "total": each.total, "others": each.others, "count": each.count}
                for name, each in tables.items()
            },
        }

    def __str__(self) -> str:
        """The sentences, the parts and the tables as text."""
        named = f"{self.item}" if self.label is None else f"{self.item} ({self.label})"
        titles = _PARTS | {
            "user_features": f"features of the user ({self.user_features.count})",
            "own_rating": "own rating of the item",
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


def as_plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and np.isnan(value) else value


def plain_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as JSON has them."""
    return [{str(name): as_plain(value) for name, value in row.items()} for row in table.to_dict("records")]


def _table_as_text(table: Contributions) -> str:
    text = table.rows.to_string(index=False, float_format="{:.4g}".format, na_rep="-", max_colwidth=40)
    n_others = table.count - len(table.rows)
    return text if n_others == 0 else f"{text}\n... and {n_others} others: {table.others:+.4g}"


_PARTS = {"user_bias": "bias of the user", "item_bias": "bias of the item", "pattern": "choice of items"}


def explanation_card(found: Explanation) -> str:
    """An explanation as HTML: sentences, parts, and rated items by how the user has rated them."""
    parts = [(_PARTS.get(name, name.replace("_", " ")), value) for name, value in found.parts().items() if value]
    tables = [
        card_table(f"Items that the user {taste}", _COLUMNS, _rows(rows))
        for taste in TASTES
        if len(rows := found.items.query("taste == @taste"))
    ]
    told = element("p", found.prose().replace("\n", " "), style="margin:.4em 0;max-width:45em")
    named = f"item {found.item}" if found.label is None else found.label
    title = f"User {found.user}, {named}: {found.score:.4g}"
    return card(title, {}, told, card_table("Parts of the score", ["part", "adds"], parts), *tables)


_COLUMNS = ["item", "rating", "similarity", "adds"]


def _rows(rows: pd.DataFrame) -> list[tuple[str, float, float, float]]:
    columns = (names_of(rows), rows["rating"], rows["weight"], rows["contribution"])
    return [(name, float(a), float(b), float(c)) for name, a, b, c in zip(*columns, strict=True)]
