"""The exact search for nearest rows beside its product, beside a plain selection, and beside faiss."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec

import torch
from torch import Tensor
from tqdm import tqdm

from air_recsys.evaluation.results import ResultTable
from air_recsys.graphs.candidates import nearest_rows
from air_recsys.graphs.laplacian import squared_norms
from air_recsys.nn.devices import torch_threads

_GROUPS = 500
_BLOCK_ENTRIES = 1_300_000
_PLAIN_ENTRIES = 4_000_000

Search = Callable[[Tensor, int], object]


def bench_nearest_rows(
    sizes: Iterable[int] = (10_000, 40_000),
    widths: Iterable[int] = (20, 64),
    ks: Iterable[int] = (10, 50),
    rounds: int = 3,
) -> ResultTable:
    """Time the search on made factors: the least of some rounds, contenders in turn, one thread.

    Parameters
    ----------
    sizes, widths, ks : iterable of int
        Rows, width of the factors (which lie around 500 centres), neighbours per row.

    Returns
    -------
    ResultTable
        A row per size, width and k: seconds of processor time of "product" (the distances alone, in the best blocks),
        "plain" (product and `torch.topk`), "ours", and "faiss" where it is installed.

    Examples
    --------
    >>> table = bench_nearest_rows([300], [4], [5], rounds=1)
    >>> table.rows[0]["rows"], table.rows[0]["k"]
    (300, 5)
    """
    contenders: dict[str, Search] = {"product": _product, "plain": _plain, "ours": _ours}
    if find_spec("faiss") is not None:
        contenders["faiss"] = _faiss
    with torch_threads(1):
        cases = [(size, width, k) for size in sizes for width in widths for k in ks]
        rows = [
            {"rows": size, "width": width, "k": k} | _times(_made(size, width), k, contenders, rounds)
            for size, width, k in tqdm(cases, unit="case", desc="bench nearest-rows")
        ]
    return ResultTable(
        "Exact search for the nearest rows",
        f"made factors around {_GROUPS} centres, seed 0; seconds of processor time on one thread, least of {rounds} "
        "rounds, contenders in turn",
        rows,
    )


def _times(points: Tensor, k: int, contenders: dict[str, Search], rounds: int) -> dict[str, float]:
    least: dict[str, float] = {}
    for _ in range(rounds):
        for name, search in contenders.items():
            start = time.thread_time()
            search(points, k)
            seconds = time.thread_time() - start
            least[name] = min(seconds, least.get(name, seconds))
    return least


def _made(size: int, width: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(_GROUPS, width, generator=generator)
    chosen = torch.randint(_GROUPS, (size,), generator=generator)
    return centres[chosen] + 0.5 * torch.randn(size, width, generator=generator)


def _ours(points: Tensor, k: int) -> Tensor:
    return nearest_rows(points, points, k)


def _product(points: Tensor, k: int) -> None:
    norms = squared_norms(points, points)
    width = min(points.shape[0], 10_000)
    block = max(1, _BLOCK_ENTRIES // width)
    out = points.new_empty(block * width)
    for start in range(0, points.shape[0], block):
        rows = points[start : start + block]
        for first in range(0, points.shape[0], width):
            others = points[first : first + width]
            tile = out[: rows.shape[0] * others.shape[0]].view(rows.shape[0], -1)
            torch.addmm(norms[first : first + width], rows, others.T, alpha=-2, out=tile)


def _plain(points: Tensor, k: int) -> Tensor:
    norms, m = squared_norms(points, points), points.shape[0]
    neighbors = torch.empty(m, k, dtype=torch.int64)
    block = max(1, _PLAIN_ENTRIES // m)
    for start in range(0, m, block):
        rows = slice(start, min(start + block, m))
        distances = torch.addmm(norms, points[rows], points.T, alpha=-2)  # (block, m)
        distances[:, rows].fill_diagonal_(torch.inf)
        neighbors[rows] = distances.topk(k, dim=1, largest=False, sorted=False).indices
    return neighbors.sort(dim=1).values


def _faiss(points: Tensor, k: int) -> object:
    faiss = importlib.import_module("faiss")
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        return faiss.knn(points.numpy(), points.numpy(), k + 1)
    finally:
        faiss.omp_set_num_threads(before)
