"""The memory of a training, from its sizes and settings alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from air_recsys.nn.build import Settings

_WORD, _LONG = 4, 8  # bytes of an index on a pattern, and of one of neighbours
_BLOCK = 64 * 2**20  # bytes of the candidate search at any size
_KEPT = 2  # copies of the state: the last good one and the best one
_ADAM = 4  # value, gradient and two moments


class Sizes(NamedTuple):
    """The sizes that the memory of a training depends on, beside its settings."""

    n_rows: int
    n_columns: int
    n_ratings: int
    itemsize: int = 4  # bytes of a number
    weighted: bool = False


class MemoryPlan(NamedTuple):
    """The bytes of a training at its peak, by what holds them.

    Examples
    --------
    >>> print(memory_plan(Sizes(162_000, 162_000, 25_000_000), Settings(width=64)))
    2.3 TB: graphs 1.3 TB, ratings 400 MB, factors 498 MB, work 1.1 TB
    """

    graphs: int  # logits, their optimiser state, neighbours
    ratings: int  # observed entries and their order by column
    factors: int  # factors and biases with their optimiser state
    work: int  # the needs of a step, or of building where they are larger

    @property
    def total(self) -> int:
        """All of it, in bytes."""
        return sum(self)

    def __str__(self) -> str:
        holders = ", ".join(f"{name} {readable(size)}" for name, size in self._asdict().items())
        return f"{readable(self.total)}: {holders}"


def memory_plan(sizes: Sizes, settings: Settings) -> MemoryPlan:
    """Return the memory of a training at its peak, without its interactions: a slightly high estimate."""
    m, n, nnz, size, weighted = sizes
    width = min(m, n) if settings.width is None else settings.width
    n_batches = max(1, min(settings.n_batches, m, n, nnz))
    full = width >= min(m, n) and n_batches == 1
    factors = (m + n) * (width + settings.biases) + (settings.depth - 2) * width**2
    sides = [rows for rows, strength in zip((m, n), settings.strengths, strict=True) if strength > 0]
    graphs = [_graph(rows, settings.n_neighbors, n_batches, size) for rows in sides]
    search = max((_search(rows, settings.n_neighbors) for rows in sides), default=0)
    data = nnz * (3 * _WORD + size * (1 + weighted))
    # Of one batch: products, errors, residuals in both orders; at full width the matrix itself.
    step = 5 * size * nnz // n_batches + 5 * size * (m + n) * (width + 2) + sum(work for _, work in graphs)
    if full:
        data += 2 * m * n * size
        step += 5 * m * n * size
    building = nnz * (6 * _LONG) + (data if n_batches > 1 else 0)
    return MemoryPlan(
        sum(held for held, _ in graphs), data, factors * size * (_ADAM + _KEPT), max(step, search, building)
    )


def _graph(rows: int, n_neighbors: int | None, n_batches: int, size: int) -> tuple[int, int]:
    """Return the bytes that a learned graph holds, and those that a step on it needs."""
    if n_neighbors is None:
        return rows**2 * size * (_ADAM + _KEPT), 5 * rows**2 * size
    edges = rows * min(n_neighbors + 1, rows)
    held = edges * (size * (_ADAM + _KEPT) + _LONG * (1 + _KEPT) + 3 * _WORD)
    return held, 7 * size * edges // n_batches


def _search(rows: int, n_neighbors: int | None) -> int:
    """Return the bytes that choosing a graph's edges anew needs."""
    return 0 if n_neighbors is None else _BLOCK + 4 * _LONG * rows * min(n_neighbors, rows)


def smaller(settings: Settings, sizes: Sizes, batches: Sequence[int] = (1, 32)) -> Iterator[tuple[str, Settings]]:
    """Yield settings that need less and less memory, each with its changes; `batches` are the n_batches to try."""
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


_SMALLER = ((50, None), (50, 64), (20, 64), (20, 20), (10, 10))  # neighbours and width
_NAMES = {"n_batches": "n_batches", "n_neighbors": "graph_neighbors", "width": "n_factors"}


def readable(size: float) -> str:
    """Return a number of bytes as text with a unit.

    Examples
    --------
    >>> readable(1_500_000), readable(23)
    ('1.5 MB', '23 B')
    """
    units = ["TB", "GB", "MB", "kB", "B"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop()
    unit = units[-1]
    return f"{size:.0f} {unit}" if size >= 100 or unit == "B" else f"{size:.1f} {unit}"
