"""The memory of the sweeps of a posterior, from its sizes alone."""

from __future__ import annotations

from air_recsys.nn.build import Settings
from air_recsys.nn.memory import MemoryPlan, Sizes, memory_plan
from air_recsys.nn.posterior.equations import SLAB
from air_recsys.nn.posterior.half_sweep import MOST_FACTORED, SUMS
from air_recsys.nn.posterior.triangles import size_of

_DOUBLE, _LONG = 8, 8
_COVARIANCES = 2**30  # bytes that draws may take for the sweeps before them
_DRAWS = 20
_SKETCH = 15  # columns of both sketches and of their random matrices, in widths
_MATRICES = 4  # sums with the prior, factor, inverse, and triangles
_KEPT = 2  # states beside the present one: the last good one and the best one
_KEPT_SKETCH = 8  # columns of both sketches in such a state, in widths


def posterior_plan(
    sizes: Sizes,
    settings: Settings,
    n_features: int,
    *,
    sample: bool,
    block_bytes: int = SUMS,
    from_covariances: bool | None = None,
) -> MemoryPlan:
    """Return the memory of a training by sweeps at its peak, with graphs; of `settings` width and graphs count.

    The others are those of `posterior_bytes`; by default variational sweeps come before draws where
    `holds_covariances`.
    """
    plan = memory_plan(sizes, settings)
    width = _width(sizes, settings)
    if from_covariances is None:
        from_covariances = holds_covariances(sizes, settings)
    sweeps = posterior_bytes(
        sizes, width, n_features, sample=sample, block_bytes=block_bytes, from_covariances=from_covariances
    )
    # The sweeps need the graphs beside their own memory, in place of the ratings, the factors and their work.
    return plan._replace(work=max(plan.work, sweeps - plan.ratings - plan.factors))


def holds_covariances(sizes: Sizes, settings: Settings) -> bool:
    """Return whether the covariances of all rows and columns take at most 1 GiB.

    Examples
    --------
    >>> from air_recsys.nn.build import Settings
    >>> settings = Settings(width=40, depth=2, strengths=(1.0, 1.0), n_neighbors=20, biases=True)
    >>> [holds_covariances(Sizes(n_rows, 60_000, 10_000_000), settings) for n_rows in (200_000, 400_000)]
    [True, False]
    """
    triangle = size_of(_width(sizes, settings) + 1) * sizes.itemsize
    return (sizes.n_rows + sizes.n_columns) * triangle <= _COVARIANCES


def block_within(sizes: Sizes, settings: Settings, n_features: int, limit: int) -> int:
    """Return the bytes of a block of equations of draws with which a training stays within `limit`.

    At most 256 MiB, and at least those of one row; with these a training can need more than the limit.

    Examples
    --------
    >>> from air_recsys.nn.build import Settings
    >>> sizes = Sizes(1_000_000, 100_000, 20_000_000)
    >>> settings = Settings(width=40, depth=2, strengths=(1.0, 1.0), n_neighbors=20, biases=True)
    >>> whole = posterior_plan(sizes, settings, 100, sample=True).total
    >>> [block_within(sizes, settings, 100, whole - less) for less in (0, 10**8, 10**9)]
    [268435456, 168435456, 3444]
    """
    triangle = size_of(_width(sizes, settings) + 1) * sizes.itemsize
    block = min(SUMS, max(sizes.n_rows, sizes.n_columns) * triangle)
    excess = max(posterior_plan(sizes, settings, n_features, sample=True, from_covariances=False).total - limit, 0)
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
) -> int:
    """Return the bytes of the sweeps at their peak without their graphs: a slightly high estimate.

    `width` is that of the factors, `sample` says whether rows are drawn, `block_bytes` are those of the equations
    that are then formed at a time, and `from_covariances` says whether variational sweeps come before.

    Examples
    --------
    >>> round(posterior_bytes(Sizes(6040, 3706, 900_188), 20, 100) / 1e6), "MB"
    (155, 'MB')
    """
    m, n, nnz, size, _ = sizes
    d, larger = width + 1, max(m, n)
    triangle = size_of(d)
    # Of a block: the equations of draws, a slab of the table and its sums, and what a batch of factorizations needs.
    block = min(larger * triangle, block_bytes // size) if sample else 0
    work = block + 2 * min(SLAB, triangle) * larger + _MATRICES * min(larger, MOST_FACTORED) * d**2
    if sample:  # covariances go when draws come, and no best state is kept before
        kept = (_SKETCH + _KEPT * _KEPT_SKETCH) * width + max(_DRAWS * d, 2 * triangle if from_covariances else 0)
    else:
        kept = (1 + _KEPT) * triangle
    features = 3 * (m + n) * (n_features + 12) * _DOUBLE
    places = 4 * max(m, n) * (n_features + d) * _DOUBLE
    return size * (work + (m + n) * kept) + features + places + nnz * (7 * size + 3 * _LONG)
