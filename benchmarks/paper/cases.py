"""The data of a recipe: a fully known matrix, its hidden entries, and its groups and graphs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from air_recsys.datasets import load_syn_netflix, load_yamanishi, make_syn_netflix
from air_recsys.exceptions import ParameterError
from air_recsys.images import load_test_image, patch_mask, random_mask, texture_mask
from air_recsys.storage.validation import check_real
from benchmarks.paper.recipes import Recipe

MADE: dict[str, tuple[int, int, int, int, float]] = {
    "made-demo": (150, 200, 15, 12, 0.0),
    "made-small": (30, 40, 4, 5, 0.0),
    "made-large-groups": (100, 120, 4, 4, 0.1),
    "made-small-groups": (100, 80, 5, 40, 0.03),
    "made-noisy": (150, 200, 15, 12, 0.05),
    "made-wide": (300, 500, 20, 15, 0.0),
}
"""Generated matrices of groups: users, items, groups of each, and noise as a share of the range."""
_MADE_SEED = 18
_SHIFT = (37, 61)
_RANDOM = ("random", "either")


@dataclass(frozen=True)
class Case:
    """A fully known matrix.

    Attributes
    ----------
    truth : ndarray, shape (m, n)
    groups : tuple of ndarray, optional
        True groups of rows and of columns.
    side : tuple of sparse array, optional
        Graphs of rows and of columns that come with the data and that only DMF + DE may see.
    picture : bool
        Whether rows and columns are those of a picture.
    """

    truth: np.ndarray
    groups: tuple[np.ndarray, np.ndarray] | None = None
    side: tuple[sp.csr_array, sp.csr_array] | None = None
    picture: bool = False


def load_case(data: str, root: Path) -> Case:
    """The matrix that a recipe names; generated ones need no folder."""
    if data == "rank-5":
        rng = np.random.default_rng(5)
        return Case(rng.standard_normal((100, 5)) @ rng.standard_normal((5, 100)) / 5)
    if data in MADE:
        return _made(*MADE[data])
    if data == "syn-netflix":
        ratings = load_syn_netflix(root)
        side = (_graph(ratings.user_graph.toarray()), _graph(ratings.item_graph.toarray()))
        return Case(ratings.matrix, (ratings.user_groups, ratings.item_groups), side)
    if data in ("ic", "gpcr"):
        pairs = load_yamanishi(root, data)
        assert pairs.target_similarity is not None  # only set E has none
        side = (_graph(pairs.drug_similarity.to_numpy()), _graph(pairs.target_similarity.to_numpy()))
        return Case(pairs.interactions.to_dense(), side=side)
    return Case(load_test_image(root, data), picture=True)


def observed_entries(recipe: Recipe, case: Case, root: Path, seed: int) -> np.ndarray:
    """The entries that a recipe shows, (m, n) of bool; only random masks depend on the seed."""
    if recipe.mask in _RANDOM:
        if recipe.mask == "either" and seed % 2 == 1:
            return np.random.RandomState(seed).random(case.truth.shape) >= recipe.missing
        return random_mask(case.truth.shape, recipe.missing, random_state=seed)
    if not case.picture:
        raise ParameterError(f"expected the mask 'random' for what is no picture, found {recipe.mask!r}")
    return patch_mask(case.truth.shape) if recipe.mask == "patch" else texture_mask(root, len(case.truth))


def validation_entries(recipe: Recipe, observed: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Observed entries to choose settings on, hidden in the manner of the recipe's mask, (m, n) of bool.

    For a random mask every observed entry is taken with probability `share`; for the others the hidden entries are
    moved down and right, and what is observed there is taken.
    """
    check_real("validation", share, strict=True, maximum=0.9)
    if recipe.mask in _RANDOM:
        return observed & (np.random.default_rng([seed, 1]).random(observed.shape) < share)
    return observed & np.roll(~observed, _SHIFT, axis=(0, 1))


def _made(m: int, n: int, row_groups: int, column_groups: int, noise: float) -> Case:
    made = make_syn_netflix(m, n, row_groups, column_groups, random_state=_MADE_SEED)
    scatter = noise * np.ptp(made.matrix) * np.random.default_rng(_MADE_SEED).standard_normal((m, n))
    return Case(np.maximum(made.matrix + scatter, 0), (made.user_groups, made.item_groups))


def _graph(similarity: np.ndarray) -> sp.csr_array:
    """A graph whose weights are the similarities, without negative ones and self-edges."""
    graph = np.maximum(similarity, 0)
    np.fill_diagonal(graph, 0)
    return sp.csr_array(graph)
