"""The memory of a training, by gradients or by sweeps, from its sizes and settings alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from air_recsys.graphs.agreement import FEW_CANDIDATES, N_CANDIDATES
from air_recsys.nn.build import Settings
from air_recsys.nn.captured import MOST_BYTES, MOST_ENTRIES
from air_recsys.nn.drift.drift import LOOKED_AT
from air_recsys.nn.posterior.equations import FACTORED, MOST_FACTORED, SLAB, SUMS, TABLE
from air_recsys.nn.posterior.triangles import size_of
from air_recsys.storage.lazy import torch

_WORD, _LONG = 4, 8  # bytes of an index on a pattern, and of one of neighbours
_BLOCK = 16 * 2**20, 64 * 2**20  # bytes of the candidate search at any size, on a CPU and a GPU
FIRST_USE = 100 * 2**20  # bytes that the optimisers of torch take once in a process: 87 to 96 MB were measured
_FIRST_SWEEPS = 24 * 2**20  # and what sweeps take: 22 MB
_NO_GRAPHS = 0.0, 0.0  # strengths
_KEPT = 2  # copies of the state: the last good one and the best one
_ADAM = 4  # value, gradient and two moments
_SMALLER = ((50, None), (50, 64), (20, 64), (20, 20), (10, 10))  # neighbours and width
_NAMES = {"n_batches": "n_batches", "n_neighbors": "graph_neighbors", "width": "n_factors"}
_DOUBLE = 8
_PIECE = 1024  # entries of a row that a GPU sums at a time
_COVARIANCES = 2**30  # bytes that draws may take for the sweeps before them
_DRAWS = 20
# Bytes of graphs by agreement: of a candidate, of an edge of two graphs, of a rating, and of an entry gone through.
_CANDIDATE, _EDGE, _RATING, _GONE_THROUGH = 130, 72, 56, (500_000, 4_000_000)
_MEDIAN = 16 * 1500**2  # bytes of the distances of some rows
_GAPS, _MOST_GAPS = 8, 2**28  # of the bytes of sweeps one in so many lies in gaps between arrays, at most so many
_SKETCH = 15  # columns of both sketches and of their random matrices, in widths
_MATRICES = 4  # sums with the prior, factor, inverse, and triangles
_OF_GRAPH = 3  # copies of the state that a captured sweep reads, writes and is checked with
_KEPT_SKETCH = 8  # columns of both sketches in such a state, in widths
_TABLES = 6  # of a curve: inputs, products with covariances, and what makes them, a row of d an entry
_COLUMNS = 12  # of a curve beside these, and of what all processes share: times, index, errors, precisions
_OF_PROCESS = 14  # moments, chains and their work, and the states kept beside the present one
_PROCESSES = 2  # with as many moments as entries; several of fewer moments take no more


class Sizes(NamedTuple):
    """The sizes that the memory of a training depends on, beside its settings."""

    n_rows: int
    n_columns: int
    n_ratings: int
    itemsize: int = 4  # bytes of a number
    weighted: bool = False
    on_gpu: bool = False


class MemoryPlan(NamedTuple):
    """The bytes of a training at its peak, by what holds them."""

    graphs: int  # logits, their optimiser state, neighbours
    ratings: int  # observed entries and their order by column
    factors: int  # factors and biases with their optimiser state
    work: int  # the needs of a step, or of building where they are larger, and torch's own at its first use

    @property
    def total(self) -> int:
        """All of it, in bytes."""
        return sum(self)

    def __str__(self) -> str:
        holders = ", ".join(f"{name} {readable(size)}" for name, size in self._asdict().items())
        return f"{readable(self.total)}: {holders}"


def memory_plan(sizes: Sizes, settings: Settings) -> MemoryPlan:
    """The memory of a training at its peak, without its interactions: a slightly high estimate."""
    m, n, nnz, size, weighted, on_gpu = sizes
    width = min(m, n) if settings.width is None else settings.width
    n_batches = max(1, min(settings.n_batches, m, n, nnz))
    full = width >= min(m, n) and n_batches == 1
    factors = (m + n) * (width + settings.biases) + (settings.depth - 2) * width**2
    sides = [rows for rows, strength in zip((m, n), settings.strengths, strict=True) if strength > 0]
    graphs = [_graph(rows, settings.n_neighbors, n_batches, size) for rows in sides]
    search = max((_search(rows, settings.n_neighbors, on_gpu) for rows in sides), default=0)
    data = nnz * (3 * _WORD + size * (1 + weighted))
    # Of one batch: products, errors, residuals in both orders; at full width the matrix itself.
    step = 5 * size * nnz // n_batches + 5 * size * (m + n) * (width + 2) + sum(work for _, work in graphs)
    if full:
        data += 2 * m * n * size
        step += 5 * m * n * size
    building = nnz * (4 * _LONG) + (data if n_batches > 1 else 0)
    return MemoryPlan(
        sum(held for held, _ in graphs), data, factors * size * (_ADAM + _KEPT), max(step, search, building)
    )


def _graph(rows: int, n_neighbors: int | None, n_batches: int, size: int) -> tuple[int, int]:
    """The bytes that a learned graph holds, and those that a step on it needs."""
    if n_neighbors is None:
        return rows**2 * size * (_ADAM + _KEPT), 5 * rows**2 * size
    edges = rows * min(n_neighbors + 1, rows)
    held = edges * (size * (_ADAM + _KEPT) + _LONG * (1 + _KEPT) + 3 * _WORD)
    return held, 7 * size * edges // n_batches


def _search(rows: int, n_neighbors: int | None, on_gpu: bool) -> int:
    """The bytes that choosing a graph's edges anew needs."""
    return 0 if n_neighbors is None else _BLOCK[on_gpu] + 4 * _LONG * rows * min(n_neighbors, rows)


def smaller(settings: Settings, sizes: Sizes, batches: Sequence[int] = (1, 32)) -> Iterator[tuple[str, Settings]]:
    """Settings that need less and less memory, each with its changes; `batches` are the n_batches to try."""
    full = min(sizes.n_rows, sizes.n_columns)
    for n_neighbors, width in _SMALLER:
        for n_batches in batches:
            changed = dataclasses.replace(
                settings,
                n_neighbors=min(n_neighbors, settings.n_neighbors or sizes.n_rows + sizes.n_columns),
                width=settings.width if width is None else min(width, settings.width or full),
                n_batches=max(settings.n_batches, n_batches),
            )
            values = ((name, getattr(changed, key), getattr(settings, key)) for key, name in _NAMES.items())
            yield ", ".join(f"{name}={new}" for name, new, old in values if new != old), changed


def is_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out; of that of the CPU torch has no class of its own."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)


def readable(size: float) -> str:
    """A number of bytes as text with a unit."""
    units = ["TB", "GB", "MB", "kB", "B"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop()
    unit = units[-1]
    return f"{size:.0f} {unit}" if size >= 100 or unit == "B" else f"{size:.1f} {unit}"


def posterior_plan(
    sizes: Sizes,
    settings: Settings,
    n_features: int,
    *,
    sample: bool,
    block_bytes: int = SUMS,
    from_covariances: bool | None = None,
    n_whole: int | None = None,
) -> MemoryPlan:
    """The memory of sweeps at their peak, and of graphs by agreement after them; of `settings` width and graphs count.

    The others are those of `posterior_bytes`; by default variational sweeps come before draws where
    `holds_covariances`, and graphs are made of the ratings of the sweeps, else of `n_whole`.
    """
    plan = memory_plan(sizes, dataclasses.replace(settings, strengths=_NO_GRAPHS))
    width = _width(sizes, settings)
    if from_covariances is None:
        from_covariances = holds_covariances(sizes, settings)
    graphs, after = _agreement(sizes, settings, sizes.n_ratings if n_whole is None else n_whole)
    of_sweeps = {"sample": sample, "block_bytes": block_bytes, "from_covariances": from_covariances}
    sweeps = posterior_bytes(sizes, width, n_features, **of_sweeps, after=after)
    # The sweeps need their own memory in place of the ratings, the factors and their work.
    more = min(sweeps // _GAPS, _MOST_GAPS) + _FIRST_SWEEPS
    return plan._replace(graphs=graphs, work=max(plan.work, sweeps - plan.ratings - plan.factors) + more)


def _agreement(sizes: Sizes, settings: Settings, n_ratings: int) -> tuple[int, int]:
    """The bytes that graphs by agreement hold, and those that making them needs."""
    held = made = 0
    for rows, strength, most in zip(sizes[:2], settings.strengths, (FEW_CANDIDATES, N_CANDIDATES), strict=True):
        if strength > 0:
            n_edges = settings.n_neighbors or 0
            held += _EDGE * rows * min(n_edges, rows)
            made = max(made, _CANDIDATE * rows * min(max(n_edges, most), rows) + min(_MEDIAN, 16 * rows**2))
    gone_through = _RATING * (n_ratings + min(_GONE_THROUGH[sizes.on_gpu], (20 + 20 * sizes.on_gpu) * n_ratings))
    return held, made + gone_through if held else 0


def holds_covariances(sizes: Sizes, settings: Settings) -> bool:
    """Whether the covariances of all rows and columns take at most 1 GiB."""
    triangle = size_of(_width(sizes, settings) + 1) * sizes.itemsize
    return (sizes.n_rows + sizes.n_columns) * triangle <= _COVARIANCES


def block_within(sizes: Sizes, settings: Settings, n_features: int, limit: int) -> int:
    """The bytes of a block of equations of draws with which a training stays within `limit`.

    At most 256 MiB, and at least those of one row; with these a training can need more than the limit.

    Examples
    --------
    >>> from air_recsys.nn.build import Settings
    >>> sizes = Sizes(1_000_000, 100_000, 20_000_000)
    >>> settings = Settings(width=40, depth=2, strengths=(0.0, 0.0), n_neighbors=20, biases=True)
    >>> whole = posterior_plan(sizes, settings, 100, sample=True).total
    >>> [block_within(sizes, settings, 100, whole - less) for less in (0, 10**8, 10**9)]
    [268435456, 168435456, 3444]
    """
    triangle = size_of(_width(sizes, settings) + 1) * sizes.itemsize
    block = min(SUMS, max(sizes.n_rows, sizes.n_columns) * triangle)
    alone = dataclasses.replace(settings, strengths=_NO_GRAPHS)
    excess = max(posterior_plan(sizes, alone, n_features, sample=True, from_covariances=False).total - limit, 0)
    return max(block - excess, triangle)


def _width(sizes: Sizes, settings: Settings) -> int:
    return min(sizes.n_rows, sizes.n_columns) if settings.width is None else settings.width


def posterior_bytes(
    sizes: Sizes,
    width: int,
    n_features: int,
    *,
    sample: bool = False,
    block_bytes: int = SUMS,
    from_covariances: bool = False,
    after: int = 0,
) -> int:
    """The bytes of the sweeps at their peak, without graphs: a slightly high estimate.

    `width` is that of the factors, `sample` says whether rows are drawn, `block_bytes` are those of the equations
    that are then formed at a time, and `from_covariances` says whether variational sweeps come before. What is done
    `after` the sweeps needs so many bytes beside what they keep.
    """
    m, n, nnz, size, _, on_gpu = sizes
    d, larger = width + 1, max(m, n)
    triangle = size_of(d)
    # Of a block: the equations of draws, a slab of the table and its sums, and what a batch of factorizations needs.
    block = min(larger * triangle, block_bytes // size) if sample else 0
    slab = 2 * min(SLAB, triangle) * larger
    if on_gpu:  # where a slab is made of two of its size, and long rows are summed in pieces
        columns = min(max(SLAB, TABLE // (size * larger)), triangle)
        slab = columns * (3 * larger + 2 * nnz // _PIECE)
    work = block + slab + _MATRICES * min(larger, MOST_FACTORED if on_gpu else FACTORED["cpu"]) * d**2
    if sample:  # covariances go when draws come, and no best state is kept before
        kept = (_SKETCH + _KEPT * _KEPT_SKETCH) * width + max(_DRAWS * d, 2 * triangle if from_covariances else 0)
    else:
        kept = (1 + _KEPT) * triangle
    state = (0 if sample else triangle) + 2 * d
    if on_gpu and nnz <= MOST_ENTRIES and size * (m + n) * state <= MOST_BYTES:
        kept += _OF_GRAPH * state
    features = 3 * (m + n) * (n_features + 12) * _DOUBLE
    return max(size * work, after) + size * (m + n) * kept + features + nnz * (7 * size + 3 * _LONG)


def drift_bytes(n_entries: int, width: int) -> int:
    """The bytes that drift takes beside the sweeps, of so many entries and columns of the factors.

    Curves are made once, before there are processes, so that the larger of both counts: a high estimate.

    Examples
    --------
    >>> round(drift_bytes(1_000_000, 20) / 1e6), "MB"
    (320, 'MB')
    """
    curves = min(n_entries, LOOKED_AT) * (_TABLES * (width + 1) + _COLUMNS)
    processes = n_entries * (_COLUMNS + _PROCESSES * _OF_PROCESS)
    return _DOUBLE * max(curves, processes)
