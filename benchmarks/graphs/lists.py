"""MovieLens: what a learned graph of the items brings to lists, beside a graph of co-occurrence and a regression."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_movielens
from air_recsys.evaluation.folds import Fold, holdout_of_users
from air_recsys.evaluation.results import mean_of
from air_recsys.graphs.cooccurrence import cooccurrence_neighbors
from air_recsys.metrics.checks import Csr
from air_recsys.models import AIR
from air_recsys.models.graph_ranker.factors import FactorTraining, column_graph
from air_recsys.models.graph_ranker.hidden import HeldOut, HiddenPart
from air_recsys.models.graph_ranker.inputs import RankerSettings, interaction_pattern, times_columns
from air_recsys.models.graph_ranker.scorers import ProductScorer
from air_recsys.training import train
from air_recsys.training.softmax import SoftmaxTrainer, SoftmaxTraining
from benchmarks.harness import Found, told

_SHARE = 0.2
_WIDTH, _STEPS = 128, 50  # of the factors
_EDGES = 500  # of an item in a co-occurrence graph by itself
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


class GraphPowers(NamedTuple):
    """Powers of the weights of a graph, and of the popularity of a user's own items and of those that are listed."""

    item_power: float
    item_source: float
    item_target: float


class _OverGraph(FactorTraining):
    """Factors whose targets are spread over a graph that is given."""

    def __init__(self, graph: Csr, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._graph = column_graph(graph, _DEVICE)

    def _start(self, sources: torch.Tensor) -> SoftmaxTrainer:
        trainer = super()._start(sources)
        trainer.factors = trainer.factors._replace(graph=self._graph)
        return trainer


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
            "co-occurrence": cooccurrence_neighbors(sp.csr_array(self._shown.T), _EDGES),
            "AIR": _learned(fold.train, settings),
            "AIR by Adam": _learned(fold.train, by_adam),
        }

    def scorer(self, kind: str, graph: str) -> Callable[[Any], np.ndarray]:
        """What scores all items, each user's of length 1, by a kind of term over a graph."""
        if kind == "regression":
            return self._held_out.regression_scores
        if kind == "graph":
            return lambda powers: self._over(self.graphs[graph], powers)
        training = self._training(graph)
        train(training.trainer(_STEPS))
        self._held_out.use_factors(training.factors())
        return self._held_out.factor_scores

    def _training(self, graph: str) -> FactorTraining:
        arguments = self._shown, _WIDTH, SoftmaxTraining(), self._seed, _DEVICE
        if graph == "co-occurrence":
            return FactorTraining(*arguments, _NEIGHBORS)
        return _OverGraph(self.graphs[graph], *arguments) if graph else FactorTraining(*arguments)

    def _over(self, graph: Csr, powers: GraphPowers) -> np.ndarray:
        """The scores of a user's items over a graph, rows and columns divided by powers of popularity."""
        counts = np.maximum(np.bincount(self._shown.indices, minlength=self._shown.shape[1]), 1).astype(np.float64)
        weights = (graph.data.astype(np.float64) ** powers.item_power).astype(np.float32)
        raised = sp.csr_array((weights, graph.indices, graph.indptr), shape=graph.shape)
        source = counts**-powers.item_source
        right = times_columns(raised, counts**-powers.item_target)
        scorer = ProductScorer(times_columns(self._shown, source), right, source)
        return scorer.scores(self._held_out.users).astype(np.float32)

    def measure(self, scores: np.ndarray) -> dict[str, float]:
        """NDCG and recall of the lists of 20."""
        return dict(zip(("ndcg@20", "recall@20"), self._held_out.measure(scores), strict=True))


def bench_lists(root: Path, **case: Any) -> Found:
    """Lists of MovieLens-100K, see `lists_over_graphs`."""
    return lists_over_graphs(load_movielens(root, "100k"), **case)


def lists_over_graphs(data: Interactions, *, seeds: int, settings: dict[str, Any], by_adam: dict[str, Any]) -> Found:
    """Hide a fifth of each user's items, and ask for them by smoothing what is shown over graphs and by a regression.

    A row a term, with the graph that it reads: the regression, a user's items smoothed over a graph, and factors
    spread over a graph; figures alone and beside the regression, with the weight there.
    """
    by_adam, single = settings | {"solver": "adam"} | by_adam, []
    for seed in tqdm(range(seeds), unit="part", desc="graphs lists"):
        given = settings | {"random_state": seed}, by_adam | {"random_state": seed}, seed
        asked = holdout_of_users(data, _SHARE, seed)
        nested = holdout_of_users(asked.train, _SHARE, seeds + seed)
        results = _results(ListPart(nested, *given), ListPart(asked, *given))
        single += [system | {"seed": seed} | figures for system, figures in results]
    facts: dict[str, Any] = {
        "neighbors": _NEIGHBORS,
        "steps": _STEPS,
        "all_steps": SoftmaxTraining().n_steps,
        "last": seeds - 1,
    }
    return Found(mean_of(single, ("term", "graph")), single, shown=data, by_adam=told(by_adam), **facts)


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
    """The scores on both parts with the settings that make the best lists on the first."""
    scorer, grid = nested.scorer(kind, graph), _GRIDS[kind]
    values: list[dict[str, Any]] = [dict(zip(grid, each, strict=True)) for each in itertools.product(*grid.values())]
    kind_of: Any = GraphPowers if kind == "graph" else RankerSettings
    tried = [kind_of(**each) for each in values]
    best = max(tried, key=lambda settings: nested.measure(scorer(settings))["ndcg@20"])
    return scorer(best), outer.scorer(kind, graph)(best)


def _weight(part: ListPart, regression: np.ndarray, other: np.ndarray) -> float:
    """The weight of other scores beside the regression that makes the best lists."""
    return max(_WEIGHTS, key=lambda weight: part.measure(regression + np.float32(weight) * other)["ndcg@20"])


def _learned(shown: Interactions, settings: dict[str, Any]) -> sp.csr_array:
    learned = AIR.for_ratings(**settings).fit(shown).item_adjacency_
    assert learned is not None
    return sp.csr_array(learned, dtype=np.float32)
