"""The story of a training: how communities form in the learned graphs, from large ones to finer ones or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from tqdm import tqdm

from air_recsys.evaluation.graph_quality import formation
from air_recsys.evaluation.results import ResultTable, mean_of
from air_recsys.models import AIR
from air_recsys.report import explorer_of
from air_recsys.report.charts import formation_figure
from air_recsys.report.plots.snapshots import graphs_over_time
from benchmarks.catalogue import Catalogue, make_catalogue

_STEPS = (0, 10, 20, 40, 60, 80, 100, 150, 200, 300)
_N_EPOCHS = 600
_N_PICTURES = 5
STRENGTHS = ((0.8, 0.5), (0.5, 0.5), (0.3, 0.8))  # of coarse and fine groups, standard deviations in stars


class Course(NamedTuple):
    """A trained model with its snapshots, and the catalogue behind it."""

    model: AIR
    made: Catalogue

    def rows(self) -> list[dict[str, Any]]:
        """A row for every step of both graphs."""
        rows: list[dict[str, Any]] = []
        for side, graphs in graphs_over_time(self.model).items():
            steps = formation(graphs, self.made.levels[side])
            steps.insert(0, "graph", f"{side}s")
            rows += steps.to_dict("records")  # pyright: ignore[reportArgumentType]
        return rows


def of_catalogue(made: Catalogue, random_state: int = 0, device: str = "auto") -> Course:
    """Matrix completion of a made catalogue, all pairs weighed."""
    model = AIR.for_completion(
        n_epochs=_N_EPOCHS, graph_neighbors=None, snapshot_epochs=_STEPS, random_state=random_state, device=device
    )
    return Course(model.fit(made.ratings), made)


def steps_table(course: Course) -> ResultTable:
    """The communities of one training, step by step."""
    model, made = course
    return ResultTable(
        "Made catalogue: communities through training",
        f"{made.ratings!r}; AIR.for_completion(n_epochs={_N_EPOCHS}, graph_neighbors=None), "
        f"seed {model.random_state}; communities of two nodes or more (Louvain) and their modularity; "
        "last: their NMI with those of the trained graph; coarse, fine: NMI with true groups",
        course.rows(),
    )


def write_page(course: Course, path: Path) -> Path:
    """Write the graphs with all of their steps as a page to explore."""
    return explorer_of(course.model, path, course.made.books, title="Made catalogue")


def draw_course(course: Course, path: Path) -> Path:
    """Draw the communities of the items at some steps, the last one among them."""
    graphs = graphs_over_time(course.model)["item"]
    steps = list(graphs)
    places = np.unique(np.linspace(len(steps) - 1, 0, _N_PICTURES).round().astype(int))
    figure = formation_figure({steps[place]: graphs[steps[place]] for place in places}, course.model.solver_.unit)
    figure.savefig(path, dpi=110)
    return path


def bench_levels(seeds: int = 5, device: str = "auto") -> tuple[ResultTable, ResultTable]:
    """Train on catalogues of several seeds, with coarse groups that are stronger than the fine ones or weaker.

    Returns
    -------
    means, single : ResultTable
    """
    protocol = (
        f"made catalogues, seeds 0..{seeds - 1}, AIR.for_completion; NMI of communities with three coarse and nine "
        "fine groups: the largest of all steps, and the first step that has it; first: share of the graphs in which "
        "the step of the coarse groups is before that of the fine ones"
    )
    single = ResultTable("Coarse and fine groups, single runs", protocol)
    cases = [(strengths, seed) for strengths in STRENGTHS for seed in range(seeds)]
    for (coarse, fine), seed in tqdm(cases, unit="training", desc="levels"):
        rows = pd.DataFrame(of_catalogue(make_catalogue(seed, coarse, fine), seed, device).rows())
        for graph, steps in rows.groupby("graph", sort=False):
            case = {"coarse effect": coarse, "fine effect": fine, "graph": graph}
            single.rows.append(case | {"seed": seed} | _best(steps))
    means = mean_of(single.rows, ("coarse effect", "fine effect", "graph"))
    return ResultTable("Which groups come first", protocol, means), single


def _best(steps: pd.DataFrame) -> dict[str, float]:
    found: dict[str, float] = {}
    for level in ("coarse", "fine"):
        top = steps.loc[steps[level].idxmax()]
        found |= {level: float(top[level]), f"{level} step": int(top["step"])}
    return found | {"first": float(found["coarse step"] < found["fine step"])}
