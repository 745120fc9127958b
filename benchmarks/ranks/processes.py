"""Ranks as processes of this machine, joined through gloo."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from datetime import timedelta
from multiprocessing import get_context
from typing import Any

import torch
import torch.distributed as dist

from air_recsys.evaluation.results.apart import ProcessEndedError, thread_variables
from air_recsys.exceptions import DistributedError
from air_recsys.storage.validation import check_integer

_HOST = "127.0.0.1"
_WAIT = timedelta(seconds=60)  # for ranks that start


def run_ranks(n_ranks: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Call a function in new processes of one thread each, the ranks of a gloo group, and return what each returns.

    Parameters
    ----------
    n_ranks : int
    function : callable
        Found by its module and name, as pickle wants it; so are arguments and results.

    Raises
    ------
    ProcessEndedError
        Where a process ends without a result; the others are ended too.

    Examples
    --------
    >>> run_ranks(2, divmod, 17, 5)
    [(3, 2), (3, 2)]
    """
    check_integer("n_ranks", n_ranks, minimum=1)
    # The store takes a port that is free and keeps it.
    store = dist.TCPStore(_HOST, 0, is_master=True, wait_for_workers=False)  # pyright: ignore[reportPrivateImportUsage]
    context = get_context("spawn")
    with thread_variables(1), ProcessPoolExecutor(n_ranks, context, torch.set_num_threads, (1,)) as pool:
        places = ((store.port, rank, n_ranks) for rank in range(n_ranks))
        ranks = [pool.submit(_as_rank, place, function, arguments) for place in places]
        _check(ranks, getattr(function, "__name__", "a measurement"))
        return [rank.result() for rank in ranks]


def _as_rank(place: tuple[int, int, int], function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Join the other ranks, before anything can go wrong, and call the function."""
    port, rank, n_ranks = place
    os.environ["LOCAL_WORLD_SIZE"] = str(n_ranks)  # so many share the memory
    store = dist.TCPStore(_HOST, port, is_master=False, timeout=_WAIT)  # pyright: ignore[reportPrivateImportUsage]
    dist.init_process_group("gloo", store=store, rank=rank, world_size=n_ranks, timeout=_WAIT)
    try:
        return function(*arguments)
    finally:
        dist.destroy_process_group()  # whoever waits for this rank hears that it is gone


def _check(ranks: list[Future[Any]], name: str) -> None:
    """Wait for all ranks; raise the first error that is no echo of a rank that is gone, if there is one."""
    errors = [error for rank in as_completed(ranks) if (error := rank.exception()) is not None]
    for error in errors:
        if isinstance(error, BrokenProcessPool):
            raise ProcessEndedError(
                f"one of {len(ranks)} ranks of {name} ended without a result, often for want of memory"
            ) from error
    if errors:
        raise min(errors, key=lambda error: isinstance(error, RuntimeError | DistributedError))
