"""MovieLens: what a learned graph of the items brings to lists, beside a graph of co-occurrence and a regression."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.folds import Fold, holdout_of_users
from air_recsys.evaluation.results import ResultTable, mean_of
from air_recsys.metrics.checks import Csr
from air_recsys.models import AIR
from air_recsys.models.graph_ranker.factor_graph import column_graph
from air_recsys.models.graph_ranker.factors import FactorCourse
from air_recsys.models.graph_ranker.holdout import HeldOut
from air_recsys.models.graph_ranker.smoothings import (
    RankerSettings,
    interaction_pattern,
    item_graph,
    over_items,
    raised,
)
from air_recsys.models.graph_ranker.times.hidden_parts import HiddenPart
from air_recsys.training.softmax import SoftmaxCourse, SoftmaxTraining

_SHARE = 0.2
_WIDTH, _STEPS = 128, 50  # of the factors
_NEIGHBORS = 50  # of an item, in the co-occurrence graph of the factors, as in `GraphRanker`
_DEVICE = torch.device("cpu")  # of the factors
_GRIDS = {
    "regression": {
        "regression_share": (0.5, 1.0),
        "regression_penalty": (2.0, 4.0, 8.0, 16.0),
        "regression_source": (0.0, 0.25, 0.5),
        "regression_target": (-0.375, -0.25, -0.125),
    },
    "graph": {
        "item_power": (0.5, 1.0, 1.5),
        "item_source": (0.0, 0.25, 0.5),
        "item_target": (-0.5, -0.25, 0.0),
    },
    "factors": {"factor_temperature": (0.1, 0.15, 0.2)},
}
_WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)  # of a term, where the regression counts 1


class _OverGraph(FactorCourse):
    """Factors whose targets are spread over a graph that is given."""

    def __init__(self, graph: Csr, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._graph = column_graph(graph, _DEVICE)

    def _course_from(self, sources: torch.Tensor) -> SoftmaxCourse:
        course = super()._course_from(sources)
        course.factors = course.factors._replace(graph=self._graph)
        return course


class ListPart:
    """Lists of items that are hidden of each user, from what is shown.

    Parameters
    ----------
    fold : Fold
    settings, by_adam : dict
        Parameters that differ from `AIR.for_ratings`, of the model and of the one that `Adam` trains.
    seed : int
        Of the factors.
    """

    def __init__(self, fold: Fold, settings: dict[str, Any], by_adam: dict[str, Any], seed: int) -> None:
        self._shown, self._seed = interaction_pattern(fold.train), seed
        hidden = HiddenPart("random", self._shown, interaction_pattern(fold.test))
        self._held_out = HeldOut(hidden, seed, n_users=fold.train.n_users)
        self.graphs = {
            "co-occurrence": item_graph(self._shown, RankerSettings()),
            "AIR": _learned(fold.train, settings),
            "AIR by Adam": _learned(fold.train, by_adam),
        }

    def scorer(self, kind: str, graph: str) -> Callable[[RankerSettings], np.ndarray]:
        """Return what scores all items, each user's of length 1, by a kind of term over a graph."""
        if kind == "regression":
            return self._held_out.regression_scores
        if kind == "graph":
            return lambda settings: self._smoothed(self.graphs[graph], settings)
        course = self._course(graph)
        course.advance(_STEPS)
        self._held_out.use_factors(course.factors())
        return self._held_out.factor_scores

    def _course(self, graph: str) -> FactorCourse:
        arguments = self._shown, _WIDTH, SoftmaxTraining(), self._seed, _DEVICE
        if graph == "co-occurrence":
            return FactorCourse(*arguments, _NEIGHBORS)
        return _OverGraph(self.graphs[graph], *arguments) if graph else FactorCourse(*arguments)

    def _smoothed(self, graph: Csr, settings: RankerSettings) -> np.ndarray:
        over = over_items(self._shown, raised(graph, settings.item_power), settings)
        return over.scores(self._held_out.users).astype(np.float32)

    def measure(self, scores: np.ndarray) -> dict[str, float]:
        """Return NDCG and recall of the lists of 20."""
        return dict(zip(("ndcg@20", "recall@20"), self._held_out.measure(scores), strict=True))


def bench_lists(
    data: Interactions,
    seeds: int = 5,
    settings: dict[str, Any] | None = None,
    by_adam: dict[str, Any] | None = None,
) -> tuple[ResultTable, ResultTable]:
    """Hide a fifth of each user's items, and ask for them by smoothing what is shown over graphs and by a regression.

    Parameters
    ----------
    seeds : int
        Hidden parts to average over.
    settings : dict, optional
        Parameters that differ from `AIR.for_ratings`.
    by_adam : dict, optional
        Those of the model that `Adam` trains; by default the same.

    Returns
    -------
    means, single : ResultTable
        A row a term, with the graph that it reads: the regression, a user's items smoothed over a graph, and factors
        spread over a graph; figures alone and beside the regression, with the weight there.
    """
    settings = settings or {}
    by_adam = settings | {"solver": "adam"} | (by_adam or {})
    protocol = (
        f"all ratings as interactions; {data!r}; a random fifth of each user's hidden, seeds 0..{seeds - 1}; all "
        "items ranked that a user was not shown; settings and weights beside the regression chosen by NDCG@20 on a "
        f"random fifth of what is shown; co-occurrence graphs of 500 edges an item, for factors {_NEIGHBORS}; factors "
        f"after {_STEPS} of {SoftmaxTraining().n_steps} steps; graphs of AIR.for_ratings with {settings}, "
        f"by Adam with {by_adam}, from the ratings shown"
    )
    single = ResultTable("MovieLens: lists over graphs, single runs", protocol)
    for seed in tqdm(range(seeds), unit="part", desc="lists over graphs"):
        given = settings | {"random_state": seed}, by_adam | {"random_state": seed}, seed
        asked = holdout_of_users(data, _SHARE, seed)
        nested = holdout_of_users(asked.train, _SHARE, seeds + seed)
        results = _results(ListPart(nested, *given), ListPart(asked, *given))
        single.rows += [system | {"seed": seed} | figures for system, figures in results]
    return ResultTable("MovieLens: lists over graphs", protocol, mean_of(single.rows, ("term", "graph"))), single


def _results(nested: ListPart, outer: ListPart) -> Iterator[tuple[dict[str, str], dict[str, float]]]:
    """Yield each term with its graph, and its figures alone and beside the regression."""
    first = _chosen(nested, outer, "regression", "")
    yield {"term": "regression", "graph": ""}, outer.measure(first[1])
    for kind, graphs in {"graph": nested.graphs, "factors": ("", "co-occurrence", "AIR")}.items():
        for graph in graphs:
            of_nested, of_outer = _chosen(nested, outer, kind, graph)
            weight = _weight(nested, first[0], of_nested)
            both = outer.measure(first[1] + np.float32(weight) * of_outer)
            beside = {f"{name} with regression": figure for name, figure in both.items()}
            yield {"term": kind, "graph": graph}, outer.measure(of_outer) | beside | {"weight": weight}


def _chosen(nested: ListPart, outer: ListPart, kind: str, graph: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores on both parts with the settings that make the best lists on the first."""
    scorer, grid = nested.scorer(kind, graph), _GRIDS[kind]
    values: list[dict[str, Any]] = [dict(zip(grid, each, strict=True)) for each in itertools.product(*grid.values())]
    tried = [RankerSettings(**each) for each in values]
    best = max(tried, key=lambda settings: nested.measure(scorer(settings))["ndcg@20"])
    return scorer(best), outer.scorer(kind, graph)(best)


def _weight(part: ListPart, regression: np.ndarray, other: np.ndarray) -> float:
    """Return the weight of other scores beside the regression that makes the best lists."""
    return max(_WEIGHTS, key=lambda weight: part.measure(regression + np.float32(weight) * other)["ndcg@20"])


def _learned(shown: Interactions, settings: dict[str, Any]) -> sp.csr_array:
    learned = AIR.for_ratings(**settings).fit(shown).item_adjacency_
    assert learned is not None
    return sp.csr_array(learned, dtype=np.float32)
