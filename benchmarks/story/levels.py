"""Whether large groups come first: when the communities of made catalogues are like the coarse and the fine groups."""

from __future__ import annotations

from typing import Any

import pandas as pd
from tqdm import tqdm

from air_recsys.evaluation.results import ResultTable
from benchmarks.story.catalogue import make_catalogue
from benchmarks.story.courses import of_catalogue

STRENGTHS = ((0.8, 0.5), (0.5, 0.5), (0.3, 0.8))  # of coarse and fine groups, standard deviations in stars


def bench_levels(seeds: int, device: str = "auto") -> tuple[ResultTable, ResultTable]:
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
        made = make_catalogue(seed, coarse, fine)
        rows = pd.DataFrame(of_catalogue(made, seed, device).rows())
        for graph, steps in rows.groupby("graph", sort=False):
            case = {"coarse effect": coarse, "fine effect": fine, "graph": graph}
            single.rows.append(case | {"seed": seed} | _best(steps))
    return ResultTable("Which groups come first", protocol, _means(single.rows)), single


def _best(steps: pd.DataFrame) -> dict[str, float]:
    found: dict[str, float] = {}
    for level in ("coarse", "fine"):
        top = steps.loc[steps[level].idxmax()]
        found |= {level: float(top[level]), f"{level} step": int(top["step"])}
    return found | {"first": float(found["coarse step"] < found["fine step"])}


def _means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = ["coarse effect", "fine effect", "graph"]
    grouped = pd.DataFrame(rows).drop(columns="seed").groupby(keys, sort=False, as_index=False)
    return grouped.agg(dict.fromkeys(("coarse", "coarse step", "fine", "fine step", "first"), "mean")).to_dict(
        "records"
    )
