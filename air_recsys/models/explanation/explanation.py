"""`Explanation`: the parts of a score."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.models.explanation.prose import explanation_card, prose_of


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
        ratings.
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
        """Return the summands of the score by name."""
        return {
            "mean": self.mean,
            "user_bias": self.user_bias,
            "item_bias": self.item_bias,
            "pattern": self.pattern,
            "user_features": self.user_features.total,
            "rated_items": self.rated_items.total,
            "similar_users": self.similar_users.total,
            "time": self.time,
            "remainder": self.remainder,
            "clipping": self.clipping,
        }

    def total(self) -> float:
        """Return the sum of all parts, which is the score up to the model's own rounding (float32)."""
        return sum(self.parts().values())

    def prose(self) -> str:
        """Return the score in sentences: what it starts from, what the user likes and dislikes, and similar users."""
        return prose_of(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the sentences, the parts, and likes and dislikes apart."""
        return explanation_card(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON; None where there is no value."""
        tables = {
            "items": self.rated_items,
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
        """Return the sentences, the parts and the tables as text."""
        named = f"{self.item}" if self.label is None else f"{self.item} ({self.label})"
        titles = {
            "user_bias": "bias of the user",
            "item_bias": "bias of the item",
            "pattern": "choice of items",
            "user_features": f"features of the user ({self.user_features.count})",
            "rated_items": f"rated items ({self.rated_items.count})",
            "similar_users": f"similar users ({self.similar_users.count})",
        }
        shown = [(titles.get(name, name), part) for name, part in self.parts().items() if part != 0]
        width = max((len(title) for title, _ in shown), default=0)
        lines = [f"user {self.user}, item {named}: score {self.score:.4g}", "", self.prose(), ""]
        lines += [f"  {title:<{width}}  {part:+.4g}" for title, part in shown]
        tables = {
            "features of the user": self.user_features,
            "rated items": self.rated_items,
            "similar users": self.similar_users,
            "edges of the item graph (another view of the two parts above)": self.graph_edges,
            "features of the item (another view of the parts above)": self.item_features,
        }
        for heading, table in tables.items():
            if table.count:
                lines += ["", heading, _table_as_text(table)]
        return "\n".join(lines)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
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
