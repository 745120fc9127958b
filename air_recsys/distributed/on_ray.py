"""`fit_on_ray`: the training of `air_recsys.distributed.fit` by workers of a Ray cluster, which Ray Train starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from air_recsys.distributed.checks import check_kind
from air_recsys.distributed.parquet_ratings import ParquetRatings
from air_recsys.distributed.training import Model, fit
from air_recsys.exceptions import DistributedError
from air_recsys.models.state import FittedState, lock_of
from air_recsys.storage.validation import check_integer, import_extra
from air_recsys.training import Callback


def fit_on_ray(
    model: Model,
    interactions: Any,
    n_ranks: int,
    *,
    cpus_per_rank: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 50,
    timeout: float | None = None,
    callbacks: Iterable[Callback] = (),
) -> Model:
    """Train a model on a Ray cluster and return it: `fit` over ranks that Ray starts, called by one process.

    The cluster is that which Ray is connected to, else that of RAY_ADDRESS, else this machine. A rank takes a GPU with
    ``device="cuda"``, and with "auto" where the cluster has one for each. Needs the extra ``distributed`` here and on
    the workers.

    Parameters
    ----------
    model : AIR, DMF or GraphRanker
    interactions : Interactions, sparse matrix, DataFrame, ndarray or ParquetRatings
    n_ranks : int
    cpus_per_rank : int
        Processors of a rank, which are its threads.
    checkpoint, every, timeout, callbacks
        As in `fit`; the workers write the checkpoints and call the callbacks.

    Raises
    ------
    DistributedError
        If a worker died, or the cluster has no room for the ranks within a minute, or the seconds in the environment
        variable RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S.
    AirRecsysError
        As in `fit`.

    Examples
    --------
    >>> from air_recsys import AIR
    >>> model = AIR.for_ratings(random_state=0)
    >>> fit_on_ray(model, ratings, 4).save("model.air")  # doctest: +SKIP
    """
    check_kind(model)
    for name, value in {"n_ranks": n_ranks, "cpus_per_rank": cpus_per_rank}.items():
        check_integer(name, value, minimum=1)
    ray, train = import_extra("ray", "distributed"), import_extra("ray.train", "distributed")
    torch_train = import_extra("ray.train.torch", "distributed")
    from air_recsys.distributed.workers import cluster

    options = {"checkpoint": _absolute(checkpoint), "every": every, "timeout": timeout, "callbacks": list(callbacks)}
    work = partial(_fitted, model, _on_all(model, interactions), options)
    with cluster():
        has_gpus = ray.cluster_resources().get("GPU", 0) >= n_ranks
        gpus = model.device != "cpu" and (has_gpus or model.device != "auto")
        resources = {"CPU": cpus_per_rank} | ({"GPU": 1} if gpus else {})
        asked = f"{n_ranks} ranks of {' and '.join(f'{number} {name}' for name, number in resources.items())}"
        trainer = torch_train.TorchTrainer(
            work,
            torch_config=torch_train.TorchConfig(backend="gloo"),  # where ranks meet; `fit` takes nccl between GPUs
            scaling_config=train.ScalingConfig(num_workers=n_ranks, use_gpu=gpus, resources_per_worker=resources),
            run_config=train.RunConfig(failure_config=train.FailureConfig(controller_failure_limit=0)),
        )
        try:
            state = trainer.fit().return_value
        except train.TrainingFailedError as error:
            raise _told(error, asked, ray.cluster_resources()) from error
    with lock_of(model):
        return model.take_state(state)


def _absolute(path: str | os.PathLike[str] | None) -> Path | None:
    """A path that means the same in the folder of a worker."""
    return None if path is None else Path(path).absolute()


def _on_all(model: Any, interactions: Any) -> Any:
    """What all workers are given of the ratings."""
    if isinstance(interactions, ParquetRatings):
        return replace(interactions, path=_absolute(interactions.path))
    return model.as_data(interactions)


def _fitted(model: Any, data: Any, options: Mapping[str, Any]) -> FittedState | None:
    """The work of a rank; that of rank 0 comes back."""
    return fit(model, data, **options)._state


def _told(error: Any, asked: str, found: Mapping[str, float]) -> Exception:
    """What a run of Ray Train has ended with: an error of `fit`, or what became of the workers or of the cluster."""
    failures = getattr(error, "worker_failures", None)
    if failures is None:
        cause = error.controller_failure
        if type(cause).__name__ == "WorkerGroupStartupTimeoutError":
            has = ", ".join(f"{number:g} {name}" for name, number in found.items() if name in ("CPU", "GPU"))
            return DistributedError(
                f"expected a Ray cluster with room for {asked}, found one of {has or 'nothing'}, perhaps in use"
            )
        return DistributedError(f"Ray Train could not start {asked}: {_last_line(cause)}")
    causes = {rank: getattr(failure, "_base_exc", failure) for rank, failure in sorted(failures.items())}
    dead = [rank for rank, cause in causes.items() if type(cause).__name__.startswith("WorkerHealthCheck")]
    raised = [cause for rank, cause in causes.items() if rank not in dead]
    own = [cause for cause in raised if not isinstance(cause, DistributedError)]
    if dead and not own:
        return DistributedError(f"rank {dead[0]} of {asked} died on Ray, perhaps from lack of memory")
    return [*own, *raised][0]


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
