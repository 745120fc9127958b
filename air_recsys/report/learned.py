"""The section of a model's report on what it found out about its data beside factors and graphs."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd

from air_recsys.exceptions import DataError
from air_recsys.models import GraphRanker, Recommender
from air_recsys.report.markup import Markup, element, section, table

_MOST_EFFECTS = 12
_SIDES: tuple[Literal["user", "item"], ...] = ("user", "item")


def learned_section(model: Recommender) -> Markup | None:
    """Return strengths, noise, time scales and effects of features; None for a model that has none of them.

    Examples
    --------
    >>> import numpy as np
    >>> from air_recsys import BiasModel
    >>> learned_section(BiasModel().fit(np.array([[5.0, 1.0], [4.0, 2.0]]))) is None
    True
    """
    parts = [*_search(model), *_strengths(model), *_drift(model)]
    for side in _SIDES:
        parts += _effects(model, side)
    return section("learned", "What else was learned", *parts) if parts else None


def _search(model: Recommender) -> list[Markup]:
    line = getattr(model, "search_line_", "")
    parts = [element("p", f"{line[:1].upper()}{line[1:].rstrip('.')}.")] if line else []
    if isinstance(model, GraphRanker):
        rows = [(f"{name}", float(weight)) for name, weight in model.settings_.weights.items()]
        parts.append(table("How much each part of a score counts", ["part", "weight"], rows))
    return parts


def _strengths(model: Recommender) -> list[Markup]:
    rows: list[tuple[str, Any]] = []
    history = model.history_
    if "noise" in history and not history.empty:
        rows.append(("noise: standard deviation of a rating around its score", float(history["noise"].iloc[-1])))
    for side in _SIDES:
        strength = getattr(model, f"{side}_graph_strength_", 0.0)
        if strength:
            rows.append((f"share of the prior variance of {side}s that follows the given similarities", strength))
    settings = getattr(model, "settings_", {})
    if isinstance(settings, dict):
        rows += [(f"{name} (was 'auto')", value) for name, value in settings.items()]
    return [table("Estimated from the ratings", ["what", "value"], [_shown(row) for row in rows])] if rows else []


def _shown(row: tuple[str, Any]) -> tuple[str, Any]:
    name, value = row
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return name, value if is_number else repr(value)


def _drift(model: Recommender) -> list[Markup]:
    drift = getattr(model, "drift_", None)
    if drift is None or drift.empty:
        return []
    rows = drift[["side", "lasts", "deviation"]].itertuples(index=False, name=None)
    columns = ["of", "lasts (unit of the timestamps)", "deviation"]
    return [table("Changes of users and items over time", columns, rows)]


def _effects(model: Recommender, side: Literal["user", "item"]) -> list[Markup]:
    try:
        effects: pd.DataFrame = getattr(model, "feature_effects", _no_effects)(side)
    except DataError:
        return []
    largest = np.argsort(-effects["effect"].abs().to_numpy(), kind="stable")[:_MOST_EFFECTS]
    shown = effects.iloc[np.sort(largest)]  # the largest effect first, as in the table
    rows = [(row["feature"], f"{row['effect']:+.3f}", float(row["spread"])) for row in shown.to_dict("records")]
    caption = f"Effects of features of {side}s on a score"
    caption += f": the largest {len(rows)} of {len(effects)}" if len(rows) < len(effects) else ""
    return [table(caption, ["feature", "effect", "spread over those who rate"], rows)]


def _no_effects(side: str) -> pd.DataFrame:
    raise DataError(f"expected features of {side}s, found none")
