"""Trainings whose graphs were kept on the way, and what is known of the nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from air_recsys.datasets import load_movielens, load_movielens_items, load_syn_netflix
from air_recsys.evaluation.completion import hide
from air_recsys.evaluation.graph_quality import formation
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import AIR
from air_recsys.report.plots.snapshots import graphs_over_time
from benchmarks.graphs.communities import with_genre
from benchmarks.recipes import recipe
from benchmarks.story.catalogue import Catalogue, make_catalogue

_STEPS = (0, 10, 20, 40, 60, 80, 100, 150, 200, 300)
_N_EPOCHS = 600
_SYN_NETFLIX_STEPS = (0, 20, 50, 100, 150, 200, 300, 500, 1000, 2000)
_MISSING = 0.7
_MOVIELENS_STEPS = 8


@dataclass(frozen=True)
class Course:
    """A trained model with its snapshots.

    Parameters
    ----------
    name, protocol : str
    model : AIR
    divisions : dict of str to dict of str to ndarray
        By "user" and "item", then by name: true groups of the nodes.
    items : DataFrame, optional
        Attributes of the items; with a column "genres" the share of communities with one is told.
    """

    name: str
    protocol: str
    model: AIR
    divisions: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    items: pd.DataFrame | None = None

    def rows(self) -> list[dict[str, object]]:
        """Return the figures of every step of both graphs."""
        return [row for side, graphs in graphs_over_time(self.model).items() for row in self._side(side, graphs)]

    def _side(self, side: str, graphs: dict[int, SimilarityGraph]) -> list[dict[str, object]]:
        found = formation(graphs, self.divisions.get(side))
        if self.items is not None and "genres" in self.items:
            found["with genre"] = [self._with_genre(side, graphs[step]) for step in found["step"]]
        found.insert(0, "graph", f"{side}s")
        return found.to_dict("records")  # pyright: ignore[reportReturnType]

    def _with_genre(self, side: str, graph: SimilarityGraph) -> float:
        if side != "item" or self.items is None:
            return float("nan")
        return with_genre(graph.with_attributes(self.items, "title"), graph.communities())


def of_catalogue(made: Catalogue, random_state: int = 0, device: str = "auto") -> Course:
    """Train matrix completion on a made catalogue, all pairs weighed."""
    model = AIR.for_completion(
        n_epochs=_N_EPOCHS, graph_neighbors=None, snapshot_epochs=_STEPS, random_state=random_state, device=device
    )
    protocol = f"{made.ratings!r}; AIR.for_completion(n_epochs={_N_EPOCHS}, graph_neighbors=None), seed {random_state}"
    return Course("Made catalogue", protocol, model.fit(made.ratings), made.levels, made.books)


def _catalogue(root: Callable[[], Path], device: str) -> Course:
    return of_catalogue(make_catalogue(), device=device)


def _syn_netflix(root: Callable[[], Path], device: str) -> Course:
    data, used = load_syn_netflix(root()), recipe("syn-netflix")["settings"]
    model = AIR.for_completion(**used, snapshot_epochs=_SYN_NETFLIX_STEPS, random_state=0, device=device)
    model.fit(hide(data.matrix, _MISSING, 0).observed)
    protocol = f'settings of the recipe "syn-netflix", {_MISSING:.0%} of the ratings hidden, seed 0'
    divisions = {"user": {"groups": data.user_groups}, "item": {"groups": data.item_groups}}
    return Course("Syn-Netflix", protocol, model, divisions)


def _movielens(root: Callable[[], Path], device: str) -> Course:
    data, items = load_movielens(root(), "100k"), load_movielens_items(root(), "100k")
    model = AIR.for_ratings(random_state=0, device=device)
    model.set_params(snapshot_epochs=model.spread_epochs(data, _MOVIELENS_STEPS)).fit(data)
    return Course("MovieLens-100K", f"{data!r}; AIR.for_ratings(), seed 0, steps are sweeps", model, items=items)


COURSES: dict[str, Callable[[Callable[[], Path], str], Course]] = {
    "catalogue": _catalogue,
    "syn-netflix": _syn_netflix,
    "movielens": _movielens,
}
"""From a folder of data, asked for where it is needed, and a device to a course."""
