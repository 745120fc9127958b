"""Small stand-ins for the data, and results that are made up, for the tests of the reproduction."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys.images import patch_mask
from benchmarks.paper import cases, figures, runs, systems
from benchmarks.paper.cases import Case
from benchmarks.paper.recipes import Recipe
from benchmarks.paper.runs import Options, Run
from benchmarks.paper.systems import Outcome

M, N = 14, 13  # no smaller, or a patch of 12 x 12 does not fit
PICTURES = ("barbara", "baboon")
AIR = {"model": "AIR", "n_epochs": 20, "evaluate_every": 10, "init_std": 0.1}
GIVEN = {"model": "DirichletDMF", "n_epochs": 20, "init_std": 0.1}


def small_case(data: str, _: Path | None = None) -> Case:
    """The matrix of a recipe's data with the same properties, small."""
    rng = np.random.default_rng(len(data))
    if data in PICTURES:
        return Case(rng.random((M, N)), picture=True)
    side = ring(M), ring(N)
    if data == "syn-netflix":
        groups = np.arange(M) % 3, np.arange(N) % 2
        return Case(rng.integers(1, 6, (3, 2)).astype(float)[groups[0]][:, groups[1]], groups, side)
    if data in ("ic", "gpcr"):
        return Case((rng.random((M, N)) < 0.3).astype(float), side=side)
    return Case(rng.standard_normal((M, 2)) @ rng.standard_normal((2, N)))


def ring(size: int) -> sp.csr_array:
    """A graph in which every node has two neighbors."""
    one_way = np.roll(np.eye(size), 1, axis=1)
    return sp.csr_array(one_way + one_way.T)


def use_small_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-ins in the place of all data and masks of files."""
    for module in (systems, runs, figures):
        monkeypatch.setattr(module, "load_case", small_case)
    monkeypatch.setattr(cases, "patch_mask", lambda shape: patch_mask(shape, [(2, 5, 3, 7)]))
    monkeypatch.setattr(cases, "texture_mask", lambda root, size: small_texture())


def small_texture() -> np.ndarray:
    """A mask of scattered entries, as if from a file."""
    return np.random.default_rng(9).random((M, N)) >= 0.2


def small_recipe(**changes: Any) -> Recipe:
    """A recipe on a small matrix with two systems."""
    recipe = Recipe(
        row="small",
        title="small",
        data="rank-5",
        mask="random",
        missing=0.3,
        seeds=(0, 1),
        systems={"AIR": AIR, "KNN": {"model": "KNN", "n_neighbors": 3}},
        published={"AIR": 0.1},
        keep=("curves",),
    )
    return dataclasses.replace(recipe, **changes)


def options(folder: Path, **changes: Any) -> Options:
    """Options that keep runs in a folder and look for data nowhere."""
    return Options(folder / "no-data", folder / "runs", device="cpu", **changes)


def made_up(errors: dict[tuple[str, str], list[float]]) -> Any:
    """A function in the place of `outcomes`: the errors by data and system, one of each seed."""

    def outcomes(chosen: list[Run], how: Options, title: str) -> dict[Run, Outcome]:
        return {
            run: Outcome({"nmae": errors[run.recipe.title, run.system][run.seed], "seconds": 1.0}) for run in chosen
        }

    return outcomes
