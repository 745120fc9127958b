"""`fit`: the training of `AIR` over the processes that torchrun started, or in this one alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.distributed.build import Ratings, build_sharded
from air_recsys.distributed.checkpoint import Checkpoints
from air_recsys.distributed.checkpointer import ShardedCheckpointer, SweepCheckpointer
from air_recsys.distributed.checks import check_kind, check_memory, check_ranks, shared_engine
from air_recsys.distributed.group import Cut, Group, joined
from air_recsys.distributed.own_ratings import TableExtent
from air_recsys.distributed.parquet_ratings import ParquetRatings, read_own
from air_recsys.distributed.sweeps import OwnPosteriorEngine, ShardedPosteriorEngine, balanced
from air_recsys.exceptions import ParameterError
from air_recsys.models import GraphRanker
from air_recsys.models.engines import Engine, ObjectiveEngine, PosteriorEngine
from air_recsys.models.engines.objective import factors_of
from air_recsys.models.learned import Factors, Selection
from air_recsys.models.ratings import warn_if_constant, warn_of_constant
from air_recsys.models.trained import TrainedRecommender
from air_recsys.storage.lazy import torch, without_gradients
from air_recsys.storage.validation import as_generator, check_integer, check_real
from air_recsys.training import Callback, GradientDescent, Record
from air_recsys.training.checkpoint import HeldCheckpoint
from air_recsys.training.checkpointer import Checkpointer
from air_recsys.training.course import asks_to_stop
from air_recsys.training.ranks import ALONE

Model = TypeVar("Model", bound=TrainedRecommender | GraphRanker)
_TIMEOUT, _TIMEOUT_OF_LIKES = 50.0, 3600.0  # seconds


def fit(
    model: Model,
    interactions: Any,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 50,
    timeout: float | None = None,
    callbacks: Iterable[Callback] = (),
) -> Model:
    """Train a model over all ranks and return it, with the same fit on every rank.

    Start, steps and sweeps are those of ``model.fit(interactions)`` in one process, up to rounding. Run a script that
    calls this with ``torchrun --nproc-per-node N script.py``, or with Python alone. Every rank calls it with the same
    arguments, works on its own users and items, and ends with the whole model; let one of them save it.

    For likes, each rank searches on some of the hidden parts, trains the factors on a share of the users of each step,
    and, of more than 4096 items, regresses a range of them. Regression and choice are those of one process; factors
    are, up to the order of sums.

    Parameters
    ----------
    model : AIR, DMF or GraphRanker
        With `Adam` it needs `n_factors`, and `graph_neighbors` or no graphs; "auto" gives sparse graphs at every size.
        A `GraphRanker` needs `time_budget=None`.
    interactions : Interactions, sparse matrix, DataFrame, ndarray or ParquetRatings
        All ratings, the same on every rank. With `ParquetRatings` each rank reads its part; then only the model of
        rank 0 is fitted, with all ratings, and it stays unfitted on the others.
    checkpoint : path, optional
        Folder for checkpoints, visible to all ranks. If it contains one of this training, the training resumes from
        it, with any number of ranks. Likes have none.
    every : int
        Epochs or sweeps between two checkpoints; only the newest is kept. The last epoch or sweep has one as well.
    timeout : float, optional
        Seconds that a rank waits for the others in one exchange; by default 50, of likes, whose ranks search for long
        before they compare, 3600.
    callbacks : iterable of callable
        Called with every record on every rank; training stops if one returns True on any rank.

    Raises
    ------
    ParameterError, DataError
        Before any work: for a model that cannot be shared out, fewer users or items than ranks, or ranks with
        different data or parameters.
    CheckpointError
        If a checkpoint cannot be written or read, belongs to other data or parameters, or if another training writes
        to the folder.
    MemoryLimitError
        If a rank needs more memory than `max_memory`, or than its machine has.
    DistributedError
        If another rank died or did not answer; the last checkpoint is intact.
    DeviceError
        On every rank, if one has no GPU where "cuda" is asked for or the others have one.
    DivergenceError
        As in `AIR.fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from air_recsys import AIR
    >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
    >>> ratings[0, 0] = np.nan
    >>> model = AIR.for_ratings(solver="adam", n_factors=2, weight_decay=0.5, random_state=0, device="cpu")
    >>> fit(model, ratings).predict(0, 0) > 4
    array([ True])
    """
    check_kind(model)
    check_integer("every", every, minimum=1)
    waits = _TIMEOUT_OF_LIKES if isinstance(model, GraphRanker) else _TIMEOUT
    waits = waits if timeout is None else check_real("timeout", timeout, strict=True)
    if isinstance(model, GraphRanker):
        return _fit_likes(model, interactions, checkpoint, waits, callbacks)
    source = interactions if isinstance(interactions, ParquetRatings) else model.as_data(interactions)
    with joined(model.device, waits) as group:
        engine = group.together(lambda: shared_engine(model, source if isinstance(source, Interactions) else None))
        share, seed = _share(group, model, engine, source), model.random_state
        with _kept(group, engine, share.mark, checkpoint, every) as checkpointer:
            return model.train_by(
                share.engine,
                share.data,
                checkpointer.generator(seed) if isinstance(checkpointer, SweepCheckpointer) else as_generator(seed),
                callbacks=_agreed(group, callbacks),
                checkpointer=checkpointer,
                progress=model.verbose if group.rank == 0 else False,
                chosen=_chosen(model, engine),
                gathered=share.gathered,
                ranks=group if share.gathered is None else ALONE,
            )


def _agreed(group: Group, callbacks: Iterable[Callback]) -> list[Callback]:
    """What stops all ranks where a callback of one of them asks for it."""
    asked = list(callbacks)

    def agreed(record: Record) -> bool:
        answers = [asks_to_stop(callback(record)) for callback in asked]
        return any(group.of_all(any(answers)))

    return [agreed] if asked else []


def _fit_likes(
    model: GraphRanker, interactions: Any, checkpoint: Any, timeout: float, callbacks: Iterable[Callback]
) -> GraphRanker:
    """The training of `GraphRanker` over the ranks of `air_recsys.training.ranks`."""
    for name, value in {"time_budget": model.time_budget, "checkpoint": checkpoint}.items():
        if value is not None:
            raise ParameterError(f"distributed training of likes needs {name}=None, found {value!r}")
    if isinstance(interactions, ParquetRatings):
        raise ParameterError("ParquetRatings are for AIR: give every rank all likes, from read_ratings")
    data = model.checked_data(interactions)
    with joined(model.device, timeout) as group:
        planned = model.planned(data)
        check_ranks(group, data, model.fingerprint(data))
        check_memory(group, planned._replace(n_parts=-(-planned.n_parts // group.size)), data, model.max_memory)
        return model.train_by(data, HeldCheckpoint({}), _agreed(group, callbacks), group)


class Share(NamedTuple):
    """The engine of a rank, and the data that it trains with."""

    engine: Engine
    data: Interactions  # with the ids of all users and items
    mark: dict[str, Any]  # what a checkpoint belongs to
    gathered: Callable[[], Interactions | None] | None = None  # where `data` are the ratings of the own users


def _share(
    group: Group,
    model: TrainedRecommender,
    engine: ObjectiveEngine | PosteriorEngine,
    source: Interactions | ParquetRatings,
) -> Share:
    """The share of this rank, after the checks that need all ranks."""
    if isinstance(source, ParquetRatings):
        assert isinstance(engine, PosteriorEngine)  # as `shared_engine` has said
        return _read(group, model, engine, source)
    adam = isinstance(engine, ObjectiveEngine)
    sharded = ShardedEngine(group, engine) if adam else ShardedPosteriorEngine(group, engine)
    share = Share(sharded, source, model.fingerprint(source))
    check_ranks(group, source, share.mark)
    check_memory(group, engine, source, model.max_memory)
    if not engine.learns_from_constant:
        warn_if_constant(source, stacklevel=4)  # of the caller of `fit`
    return share


def _read(group: Group, model: TrainedRecommender, engine: PosteriorEngine, source: ParquetRatings) -> Share:
    """The share of a rank that reads its own part."""

    def cuts(extent: TableExtent, counts: list[np.ndarray]) -> tuple[Cut, Cut]:
        return balanced(counts, engine.width(extent) or 0, group.size)

    own = read_own(group, source, cuts)
    model.check(own.rows)
    sharded, mark = OwnPosteriorEngine(group, engine, own), model.fingerprint(own.rows) | {"data": [own.digest, None]}
    check_ranks(group, own.extent, mark)
    check_memory(group, sharded, own.rows, model.max_memory)
    n, low, high = own.moments.n, own.moments.low, own.moments.high
    if low == high:
        likes = low > 0 and n < own.extent.n_users * own.extent.n_items
        warn_of_constant(n, low, likes=likes, stacklevel=5)  # of the caller of `fit`
    return Share(sharded, own.rows, mark, lambda: own.gathered(group))


@contextmanager
def _kept(
    group: Group,
    engine: ObjectiveEngine | PosteriorEngine,
    mark: dict[str, Any],
    checkpoint: str | os.PathLike[str] | None,
    every: int,
) -> Iterator[Checkpointer | None]:
    """Hold what keeps the states of a training, if anything does."""
    if checkpoint is None:
        yield None
        return
    checkpoints = Checkpoints(group, Path(checkpoint), mark)
    with checkpoints.held():
        if isinstance(engine, ObjectiveEngine):
            yield ShardedCheckpointer(checkpoints, every)
            return
        with SweepCheckpointer(group, checkpoints.folder, mark, every) as sweeps:
            yield sweeps


def _chosen(model: TrainedRecommender, engine: ObjectiveEngine | PosteriorEngine) -> Selection:
    """The value that the engine has taken for `graph_neighbors="auto"` where one process takes another."""
    taken = engine.setup.graph_neighbors
    return Selection({} if taken == model.get_params().get("graph_neighbors") else {"graph_neighbors": taken})


class ShardedEngine(ObjectiveEngine):
    """The engine of AIR's objective, each rank with its own rows; `whole` is that of one process."""

    def __init__(self, group: Group, whole: ObjectiveEngine) -> None:
        super().__init__(whole.setup, whole.descent, whole.terms)
        self._group = group

    @property
    def device(self) -> torch.device:
        """The device of this rank."""
        return self._group.device

    @without_gradients
    def start(
        self, training: Interactions, held_out: Interactions | None, rng: np.random.Generator
    ) -> GradientDescent:
        """The own share of the start of a training; nothing is held out."""
        self._scaling = self.scaling(training)
        values, weights = training.to_csr(), training.weights_to_csr()
        values.sort_indices()
        if weights is not None:
            weights.sort_indices()
        ratings = Ratings(values, weights, self._scaling.forward, getattr(torch, self.setup.dtype))
        self._sharded = build_sharded(self._group, ratings, self.settings(training), rng)
        return GradientDescent(self._sharded, self.plan(training), alone=False)

    @without_gradients
    def factors(self) -> Factors:
        """The factors of all ranks, which all of them have to call."""
        return factors_of(self._sharded.whole(), self._scaling)
