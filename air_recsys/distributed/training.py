"""`fit`: the training of `AIR` over the processes that torchrun started, or in this one alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from air_recsys.distributed.build import Ratings, build_sharded
from air_recsys.distributed.checkpoint import Checkpoints
from air_recsys.distributed.checks import check_memory, check_model, check_ranks, own_device
from air_recsys.distributed.course import Course
from air_recsys.distributed.group import Group, joined
from air_recsys.distributed.objective import ShardedObjective
from air_recsys.interactions import Interactions, as_interactions
from air_recsys.models.air import AIR
from air_recsys.models.air_parameters import DTYPES
from air_recsys.models.fingerprint import fingerprint
from air_recsys.models.scaling import Scaling
from air_recsys.training import Callback, Record, Result, train
from air_recsys.validation import as_generator, check_integer, check_real

Model = TypeVar("Model", bound=AIR)


def fit(
    model: Model,
    interactions: Any,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 50,
    timeout: float = 50.0,
    callbacks: Iterable[Callback] = (),
) -> Model:
    """Train a model over all ranks and return it, fitted alike on every rank.

    The objective, the start and the steps are those of ``model.fit(interactions)`` in one process, up to rounding.
    Run a script that calls this with ``torchrun --nproc-per-node N script.py``, or with Python alone. Every rank calls
    it with the same arguments, keeps the ratings, factors and graph rows of its own users and items while it trains,
    and ends with the whole model; let one of them save it.

    Parameters
    ----------
    model : AIR
        With `n_factors`, and with `graph_neighbors` or without graphs.
    interactions : Interactions, sparse matrix, DataFrame or ndarray
        All ratings, the same on every rank.
    checkpoint : path, optional
        Folder for checkpoints, seen by all ranks. If it holds one of this training, training goes on from there, with
        as many ranks as there are now.
    every : int
        Epochs between two checkpoints; only the newest is kept. The last epoch has one as well.
    timeout : float
        Seconds that a rank waits for the others in one exchange before it gives up.
    callbacks : iterable of callable
        Called with every record on every rank; training stops where one returns True on any rank.

    Raises
    ------
    ParameterError, DataError
        Before any work: for what cannot be shared out, fewer users or items than ranks, or ranks that were given
        different data or parameters.
    CheckpointError
        Where a checkpoint cannot be written or read, or is of other data or parameters.
    MemoryLimitError
        Where a rank will need more than `max_memory`, or its machine has.
    DistributedError
        Where another rank died or gave no answer; the last checkpoint is whole.
    DivergenceError
        As in `AIR.fit`.

    Examples
    --------
    >>> import numpy as np
    >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
    >>> ratings[0, 0] = np.nan
    >>> model = AIR.for_ratings(solver="adam", n_factors=2, weight_decay=0.5, random_state=0, device="cpu")
    >>> fit(model, ratings).predict(0, 0) > 4
    array([ True])
    """
    data = as_interactions(interactions)
    check_model(model, data)
    folder = None if checkpoint is None else Path(checkpoint)
    check_integer("every", every, minimum=1)
    with joined(own_device(model.device), check_real("timeout", timeout, strict=True)) as group:
        work = _Work(model, group, folder, every)
        check_memory(group, model, data)
        # `AIR.fit` does what it always does, but for the check of one process's memory and the training itself.
        vars(model).update(_fit=work.fit, _check_parameters=lambda data: None)
        try:
            model.fit(data, callbacks=callbacks)
        finally:
            del vars(model)["_fit"], vars(model)["_check_parameters"]
    return model


@dataclass(frozen=True)
class _Work:
    """The sharded counterpart of `AIR._fit`."""

    model: AIR
    group: Group
    folder: Path | None
    every: int

    @torch.no_grad()
    def fit(self, data: Interactions, callbacks: list[Callback]) -> None:
        mark = fingerprint(self.model, data)
        check_ranks(self.group, data, mark)
        scaling = Scaling.of(data.ratings, center=self.model.center, scale=self.model.scale)
        objective = self._objective(data, scaling)
        course = None
        if self.folder is not None:
            checkpoints = Checkpoints(self.group, self.folder, mark)
            course = Course(checkpoints, objective, self.every)
        result = self._train(objective, callbacks, course)
        self.model._training = objective.whole(), scaling
        try:
            self.model._keep(data, objective, scaling, result)
        finally:
            del self.model._training
        self.model.device_ = str(self.group.device)
        if result.error is not None:
            raise result.error

    def _objective(self, data: Interactions, scaling: Scaling) -> ShardedObjective:
        model, values, weights = self.model, data.to_csr(), data.weights_to_csr()
        values.sort_indices()
        if weights is not None:
            weights.sort_indices()
        ratings = Ratings(values, weights, scaling.forward, DTYPES[model.dtype])
        return build_sharded(self.group, ratings, model._settings(data), as_generator(model.random_state))

    def _train(self, objective: ShardedObjective, callbacks: list[Callback], course: Course | None) -> Result:
        def agreed(record: Record) -> bool:
            answers = [callback(record) is True for callback in callbacks]
            return any(self.group.of_all(any(answers)))

        shows = self.model.verbose and self.group.rank == 0
        return train(
            objective, self.model._plan(), callbacks=[agreed] if callbacks else [], progress=shows, course=course
        )
