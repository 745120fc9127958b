"""Syn-Netflix: how well graphs recover the groups that the ratings were made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import SynNetflix
from air_recsys.evaluation.completion import hide
from air_recsys.evaluation.graph_quality import group_recovery
from air_recsys.evaluation.results import ResultTable, mean_of
from air_recsys.models import AIR
from benchmarks.graphs.measures import group_recovery_of
from benchmarks.graphs.rivals import cosine, ease, gip, smooth_graph
from benchmarks.paper.recipes import settings_of

MISSING = (0.7, 0.75, 0.8, 0.85)
_EASE_DECAYS = (0.1, 1.0, 10.0)


def bench_syn_netflix(
    data: SynNetflix, seeds: int = 5, settings: dict[str, Any] | None = None, missing: tuple[float, ...] = MISSING
) -> tuple[ResultTable, ResultTable]:
    """Hide a share of the ratings, and ask the graphs of what is left for the true groups.

    Parameters
    ----------
    seeds : int
        Masks (and starts) to average over.
    settings : dict, optional
        Parameters of AIR that differ from `benchmarks/paper/recipes/ours.toml`.

    Returns
    -------
    means, single : ResultTable
    """
    used = settings_of("ours", "syn-netflix-70", "AIR") | (settings or {})
    chosen = ", ".join(f"{name}={value}" for name, value in used.items())
    protocol = (
        f"uniform random masks, seeds 0..{seeds - 1}; AUC of a pair's weight for 'same group', NMI of Louvain "
        f"communities with the groups; AIR.for_completion({chosen}), its learned graphs as they are; the others from "
        "ratings less their mean, missing ones 0, communities of their graphs of 10 nearest neighbours"
    )
    single = ResultTable("Syn-Netflix, single runs", protocol)
    cases = [(share, seed) for share in missing for seed in range(seeds)]
    for share, seed in tqdm(cases, unit="mask", desc="Syn-Netflix"):
        observed = hide(data.matrix, share, seed).observed
        groups = data.user_groups, data.item_groups
        for system, figures in _results(observed, groups, used | {"random_state": seed}):
            single.rows.append({"missing": share, "system": system, "seed": seed} | figures)
    return ResultTable("Syn-Netflix: true groups", protocol, mean_of(single.rows, ("missing", "system"))), single


def _results(
    observed: Interactions, groups: tuple[np.ndarray, np.ndarray], settings: dict[str, Any]
) -> Iterator[tuple[str, dict[str, float]]]:
    model = AIR.for_completion(**settings).fit(observed)
    assert model.user_graph_ is not None
    assert model.item_graph_ is not None
    yield "AIR", _row(group_recovery(model.user_graph_, groups[0]), group_recovery(model.item_graph_, groups[1]))
    centred = np.zeros((observed.n_users, observed.n_items))
    centred[observed.user_index, observed.item_index] = observed.ratings - observed.ratings.mean()
    rivals: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "cosine": cosine,
        **{f"EASE, decay {decay:g}": partial(ease, decay=decay) for decay in _EASE_DECAYS},
        "GIP": gip,
        "smooth signals": smooth_graph,
    }
    for system, similarity in rivals.items():
        sides = zip((centred, centred.T), groups, strict=True)
        yield system, _row(*(group_recovery_of(similarity(rows), truth) for rows, truth in sides))


def _row(users: tuple[float, float], items: tuple[float, float]) -> dict[str, float]:
    return {"user_auc": users[0], "item_auc": items[0], "user_nmi": users[1], "item_nmi": items[1]}
