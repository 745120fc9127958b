"""The strongest predictions of a model that knows structures, as of affinities, with the most similar known drugs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.described.sides import Described
from air_recsys.data.interactions import Interactions
from air_recsys.models import Recommender
from air_recsys.report.document import Markup, element, section, table
from air_recsys.report.sections import Name, reasons_of, scores_of
from air_recsys.report.structures import Shown, structures_part

_PAIRS, _OF_EACH, _NEAREST = 20, 5, 3
_SIGNS = {-1: "< ", 0: "", 1: "> "}


def strongest_section(model: Recommender, name: Name) -> Markup | None:
    """Return the strongest predictions, of pairs that are not known if there are some; None without structures."""
    data = model.interactions_
    known = {"user": data.user_features, "item": data.item_features}
    found = [(side, each.described) for side, each in known.items() if each is not None and each.described is not None]
    found = [(side, described) for side, described in found if "Morgan" in described.kernels]
    if not found:
        return None
    side, described = found[0]
    listed, told = _listed(model)
    rows, shown = [], {}
    for rank, (pair, score) in enumerate(
        zip(listed[["user", "item"]].to_numpy(object), listed["told"], strict=True), 1
    ):
        user, item = pair.tolist()
        drug, target = (user, name(item)) if side == "user" else (item, user)
        nearest = _nearest(data, described, side, (user, item))
        whole = [element("span", each, class_="whole") for each in (user, name(item))]
        rows.append([rank, *whole, score, _measured(data, user, item), *reasons_of(model, user, item, name)])
        shown.setdefault(drug, Shown(drug, f", for {target}", nearest))
    columns = ["rank", "user", "item", "predicted", "measured", "largest contributions"][: len(rows[0])]
    if side == "user":
        columns[1:3] = "drug", "target"
    ids, call = (data.user_ids, str) if side == "user" else (data.item_ids, name)
    drawn = structures_part(described, ids, list(shown.values()), call)
    lead = element("p", f"{told} Beside each structure are the most similar ones that are measured for the same.")
    return section("strongest", "Strongest predictions", lead, table(f"The first {len(rows)}", columns, rows), drawn)


def _listed(model: Recommender) -> tuple[pd.DataFrame, str]:
    """Return the pairs with the highest predictions, and what they are."""
    users, n = model.interactions_.user_ids, min(_OF_EACH, model.interactions_.n_items)
    listed, told = model.recommend(users, n=n), "Pairs that are not in the training data."
    if listed.empty:
        listed, told = model.recommend(users, n=n, exclude_seen=False), "All pairs are in the training data."
    values = model.predict(listed["user"].to_numpy(), listed["item"].to_numpy())
    listed = listed.assign(score=values).iloc[np.argsort(-values, kind="stable")[:_PAIRS]]
    return listed.assign(told=scores_of(model, listed["user"].to_numpy(), listed)), told


def _nearest(
    data: Interactions, described: Described, side: str, pair: tuple[Hashable, Hashable]
) -> list[tuple[Hashable, str]]:
    """Return the most similar others that are measured with the same one, and their values."""
    places = data.users.place(pair[0]), data.items.place(pair[1])
    index, turn = (data.users, 1) if side == "user" else (data.items, -1)
    (own, other), (rows, columns) = places[::turn], (data.user_index, data.item_index)[::turn]
    there = np.flatnonzero((columns == other) & (rows != own))
    alike = described.of_rows(np.array([own]))[0][rows[there]]
    best = there[np.argsort(-alike, kind="stable")[:_NEAREST]]
    ids = index.ids[rows[best]].tolist()
    return [(id, f"measured {_value(data, place)}") for id, place in zip(ids, best.tolist(), strict=True)]


def _measured(data: Interactions, user: Any, item: Any) -> str:
    at = np.flatnonzero((data.user_index == data.users.place(user)) & (data.item_index == data.items.place(item)))
    return _value(data, int(at[0])) if at.size else "no"


def _value(data: Interactions, place: int) -> str:
    sign = 0 if data.relations is None else int(data.relations[place])
    return f"{_SIGNS[sign]}{data.ratings[place]:.3g}"
