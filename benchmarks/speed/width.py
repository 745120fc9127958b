"""A step at full width: the engine against plain autograd, the authors' program, and its matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import run_apart
from benchmarks.paper.steps import bench_step


def bench_full_width(
    size: int = 240, depths: Sequence[int] = (2, 3, 4), rounds: int = 30, steps: int = 20, threads: int = 1
) -> ResultTable:
    """Time steps as `benchmarks.paper.steps.bench_step` does, at several depths.

    Parameters
    ----------
    size : int
        Rows and columns of the matrix.
    rounds, steps : int
        Each contender runs `steps` steps in every round; the median round counts.

    Returns
    -------
    ResultTable
        The rows of `bench_step` with the depth, and the time relative to a step of DMF.
    """
    rows = []
    for depth in depths:
        table = run_apart(bench_step, size, depth, rounds, steps, threads=threads)
        dmf = next(row["milliseconds"] for row in table.rows if row["contender"] == "engine, DMF")
        rows += [{"depth": depth, **row, "this / DMF": row["milliseconds"] / dmf} for row in table.rows]
    protocol = (
        f"{size} x {size}, full width, random matrices with 30 % missing, float32, Adam, on the CPU with {threads} "
        f"thread(s); median of {rounds} rounds of {steps} steps, contenders in turn, a process a depth"
    )
    return ResultTable("A step at full width", protocol, rows)
