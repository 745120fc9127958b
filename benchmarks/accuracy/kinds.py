"""Lists for one kind of events with others beside it, against that kind alone and against all kinds as one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.evaluation.lists import paired_p_value
from air_recsys.exceptions import ParameterError
from air_recsys.metrics import user_measures
from air_recsys.metrics.checks import Csr
from air_recsys.models import AIR
from benchmarks.harness import Found

_LENGTH, _TARGET = 20, "purchase"
_SIZES = {"1": (1, 1), "2 or 3": (2, 3), "4 or more": (4, np.inf)}  # purchases of a user in the training
_MADE = {"purchase": (1.8, 0.05), "cart": (4.0, 0.1), "view": (30.0, 0.93)}
"""Of the kinds of the made set: events of a user, in the mean, and the share that has nothing to do with taste."""
_MADE_ORIGIN = "a made set of 20,000 users, 2,000 items and views, carts and purchases of different noise"
_TAOBAO_ORIGIN = (
    "Taobao, purchases and carts of items with 12 or more training purchases, the split published with EHCF and GHCF"
)
_FEWEST = 12  # purchases of an item of Taobao
_FILES = {"purchase": "train.txt", "cart": "cart.txt"}


def bench_made_kinds(seed: int, **how: Any) -> Found:
    """The figures of `bench_kinds` of a made set."""
    return bench_kinds(None, seed, **how)


def bench_kinds(root: Path | None, seed: int, *, settings: dict[str, Any], **unread: Any) -> Found:
    """Measure NDCG of lists of 20 by test purchases, of all users and by their number of training purchases."""
    if any(unread.values()):
        raise ParameterError(f"expected settings alone, found {', '.join(unread)}")
    events, test = made_events(seed) if root is None else taobao_events(root / "taobao")
    alone = events[events["kind"] == _TARGET]
    likes = partial(AIR.for_likes, **{"random_state": seed, "device": "cpu"} | settings)
    models = {
        "kinds": lambda: likes(target=_TARGET).fit(events),
        "purchases alone": lambda: likes().fit(alone.drop(columns="kind")),
        "all as one": lambda: likes().fit(events.drop(columns="kind")),
    }
    users = np.intersect1d(np.flatnonzero(np.diff(test.indptr)), alone["user"])
    counts = np.bincount(alone["user"], minlength=test.shape[0])[users]
    rows, notes, first = [], [], np.empty(0)
    for name, fit in models.items():
        model = fit()
        ndcg = _ndcg(model, users, events, test)
        first = first if rows else ndcg
        sizes = {f"of {size}": ndcg[(counts >= low) & (counts <= high)].mean() for size, (low, high) in _SIZES.items()}
        rows.append({"lists of": name, "ndcg@20": ndcg.mean()} | sizes | {"p": paired_p_value(ndcg, first)})
        notes.append(f"{name}: {model.search_line_}")
    origin = _MADE_ORIGIN if root is None else _TAOBAO_ORIGIN
    return Found(rows, notes=notes, n_users=users.size, origin=origin)


def _ndcg(model: Any, users: np.ndarray, events: pd.DataFrame, test: Csr) -> np.ndarray:
    known = np.isin(events["item"], model.interactions_.item_ids) & np.isin(events["user"], users)
    table = model.recommend(users, _LENGTH, exclude=events.loc[known, ["user", "item"]].drop_duplicates())
    lists = np.full((users.size, _LENGTH), -1)
    lists[np.searchsorted(users, table["user"]), table["rank"] - 1] = table["item"]
    return user_measures(lists, test[users], _LENGTH)["ndcg_at_k"]


def made_events(seed: int, n_users: int = 20_000, n_items: int = 2000, n_groups: int = 24) -> tuple[pd.DataFrame, Csr]:
    """Events of users with tastes for groups of items, and a hidden purchase of each user with two or more.

    What has nothing to do with taste is of campaigns: other groups of items, which users are shown. Four purchases of
    five were viewed, every second one was carted.
    """
    random = np.random.default_rng(seed)
    popularity = random.permutation((np.arange(n_items) + 10.0) ** -0.7)
    items = np.cumsum(random.gamma(0.3, size=(2 * n_groups, n_items)) * popularity, axis=1)  # tastes, then campaigns
    items /= items[:, -1:]
    taste, shown = (np.cumsum(random.dirichlet(np.full(n_groups, 0.15), n_users), axis=1) for _ in range(2))
    tables = []
    for kind, (mean, share) in _MADE.items():
        users = np.repeat(np.arange(n_users), random.poisson(mean, n_users) + (kind == _TARGET))
        is_shown = random.random(users.size) < share
        groups = np.where(is_shown[:, None], shown[users], taste[users])
        rows = (random.random(users.size)[:, None] > groups[:, :-1]).sum(axis=1) + n_groups * is_shown
        places = np.searchsorted((items + np.arange(2 * n_groups)[:, None]).ravel(), rows + random.random(users.size))
        tables.append(pd.DataFrame({"user": users, "item": places % n_items, "kind": kind}))
    bought: Any = tables[0].drop_duplicates(ignore_index=True)
    tables[0] = bought
    for kind, share in (("cart", 0.5), ("view", 0.8)):
        tables.append(bought[random.random(len(bought)) < share].assign(kind=kind))
    hidden = bought.sample(frac=1, random_state=seed).drop_duplicates("user")
    hidden = hidden[bought["user"].value_counts()[hidden["user"]].to_numpy() > 1]
    test = _pairs(hidden, (n_users, n_items))
    return without(pd.concat(tables, ignore_index=True), test), test


def taobao_events(folder: Path) -> tuple[pd.DataFrame, Csr]:
    """Purchases and carts of Taobao, and the hidden purchases, of the split published with EHCF and GHCF."""
    events = pd.concat([_read(folder / name).assign(kind=kind) for kind, name in _FILES.items()], ignore_index=True)
    often = np.flatnonzero(np.bincount(events["item"][events["kind"] == _TARGET]) >= _FEWEST).tolist()
    events, hidden = (each.loc[each["item"].isin(often)] for each in (events, _read(folder / "test.txt")))
    n_users, n_items = (1 + int(np.max([events[side].max(), hidden[side].max()])) for side in ("user", "item"))
    test = _pairs(hidden, (n_users, n_items))
    return without(events, test), test


def without(events: pd.DataFrame, test: Csr) -> pd.DataFrame:
    """The events of all but the hidden pairs."""
    kept = np.asarray(test[events["user"].to_numpy(), events["item"].to_numpy()]).ravel() == 0
    return events.loc[kept]


def _read(file: Path) -> pd.DataFrame:
    """A user and its items a line."""
    lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
    pairs = [(int(user), int(item)) for user, *items in filter(None, lines) for item in items]
    return pd.DataFrame(pairs, columns=["user", "item"])


def _pairs(table: pd.DataFrame, shape: tuple[int, int]) -> Csr:
    return sp.csr_array((np.ones(len(table)), (table["user"], table["item"])), shape=shape)
