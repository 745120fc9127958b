"""Further transformations T_i of the matrix: how users name them, and what the engine gets."""

from __future__ import annotations

import re
from typing import Any, cast

from air_recsys.exceptions import ParameterError
from air_recsys.models.solvers import check_transforms
from air_recsys.nn.build import TransformedGraph
from air_recsys.nn.terms import Transform, blocks
from air_recsys.storage.lazy import torch

_BLOCKS = re.compile(r"blocks:(\d+)(?:x(\d+))?(?:/(\d+))?")


def parse_transforms(transforms: Any, shape: tuple[int, int]) -> tuple[TransformedGraph, ...]:
    """The graphs of the entries of `AIR.transforms`, as the engine needs them.

    Parameters
    ----------
    transforms : sequence of tuple
        Each (transform, strength) or (transform, strength, n_neighbors). A transform is "rows", "columns",
        "blocks:H", "blocks:HxW" or "blocks:HxW/S" (blocks of H x W entries every S entries, by default side by side;
        the last ones end at the margin), or a differentiable function from a torch tensor (m, n) to one (p, d), whose
        p rows get the graph.
    shape : tuple of int
        (m, n) of the matrix.
    """
    check_transforms(transforms)
    return tuple(_parse(entry, shape) for entry in transforms)


def _parse(entry: Any, shape: tuple[int, int]) -> TransformedGraph:
    transform, strength = entry[:2]
    n_neighbors = entry[2] if len(entry) == 3 else None
    function = _named(transform, shape) if isinstance(transform, str) else cast(Transform, transform)
    _check_result(transform, function, shape)
    return TransformedGraph(function, float(strength), None if n_neighbors is None else int(n_neighbors))


def _named(name: str, shape: tuple[int, int]) -> Transform:
    if name == "rows":
        return lambda completed: completed
    if name == "columns":
        return lambda completed: completed.T
    match = _BLOCKS.fullmatch(name)
    if match is None:
        raise ParameterError(
            f"a transform must be 'rows', 'columns', 'blocks:H', 'blocks:HxW', 'blocks:HxW/S' or a function, "
            f"found {name!r}"
        )
    height = int(match[1])
    width = int(match[2] or height)
    if not (1 <= height <= shape[0] and 1 <= width <= shape[1]) or (match[3] and int(match[3]) == 0):
        raise ParameterError(f"{name!r} does not fit a matrix of {shape[0]} x {shape[1]}")
    return blocks(height, width, int(match[3] or max(height, width)))


def _check_result(transform: Any, function: Transform, shape: tuple[int, int]) -> None:
    rows = function(torch.zeros(shape))
    if not isinstance(rows, torch.Tensor) or rows.ndim != 2:
        what = f"shape {tuple(rows.shape)}" if isinstance(rows, torch.Tensor) else type(rows).__name__
        raise ParameterError(f"transform {transform!r} must return a tensor of two dimensions, found {what}")
