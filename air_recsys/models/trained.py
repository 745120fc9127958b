"""`TrainedRecommender`: what all models have in common that an engine trains."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from tqdm import tqdm

from air_recsys.data.interactions import Interactions, with_features
from air_recsys.exceptions import DataError, DataWarning, MissingTorchError, NotFittedError, ParameterError
from air_recsys.models.base import check_no_y
from air_recsys.models.carried import LEAST_AGREEMENT, agreement_beyond_fit, agreements, of_pairs
from air_recsys.models.engines import DTYPES, Engine, Setup
from air_recsys.models.engines.protocol import check_memory, naming_what_fits, parse_size
from air_recsys.models.engines.scaling import RESIDUALS
from air_recsys.models.further import further_parts
from air_recsys.models.given import with_similarities
from air_recsys.models.kernels import settled
from air_recsys.models.learned import Ending, Factors, Selection, Snapshot, history_of
from air_recsys.models.partial_fit import with_unseen
from air_recsys.models.ratings import BINARY, Clip, warn_if_constant
from air_recsys.models.row_models import SolvesRows
from air_recsys.models.spread import HIDDEN, Spread, check_measurable
from air_recsys.models.state import FittedState, lock_of
from air_recsys.models.storage.contents import check_kept
from air_recsys.models.storage.fingerprint import fingerprint
from air_recsys.models.taking import with_saved
from air_recsys.nn.devices import check_device_name, made_on_cpu, resolve_device
from air_recsys.nn.memory import MemoryPlan
from air_recsys.nn.residuals import RowProcesses
from air_recsys.splits import random_holdout
from air_recsys.storage.lazy import is_installed
from air_recsys.storage.threads import one_thread, threads, warn_of_many
from air_recsys.storage.validation import RandomState, choice, integer, real
from air_recsys.training import Callback, Result, Trainer, check_callbacks, train
from air_recsys.training.checkpoint import check_paths
from air_recsys.training.checkpointer import Checkpointer, FileCheckpointer
from air_recsys.training.ranks import ALONE, Ranks

Path = str | os.PathLike[str]
_NO_SELECTION = Selection()


@dataclass(kw_only=True, eq=False, repr=False)
class TrainedRecommender(SolvesRows):
    """Base of the models that an engine trains: `AIR`, `DMF`, `RDMF` and `DirichletDMF`.

    Parameters
    ----------
    validation_fraction : float
        Share of the ratings that is held out at random to monitor the error; the state with the lowest error is kept.
    patience : int, optional
        Records without a better validation error before training stops.
    clip : bool or "binary"
        Limit predictions to the range of the training ratings. "binary" pushes those of 0/1 data towards 0 and 1 in
        their order, see `air_recsys.models.ratings.pushed`, and limits others as True does.
    dtype : {"float32", "float64"}
    device : str
        "cpu", "cuda", "cuda:1", ..., or "auto": the GPU where there is one.
    random_state : int, RandomState, Generator or None
        Source of the start and of the validation part; the same seed gives the same model.
    max_memory : int or str, optional
        Maximum memory of the training beside the data, in bytes or as text such as "8GB"; a training that needs more
        is an error before any work. None: the memory of the device. See `memory_plan`.
    verbose : bool, optional
        True prints how much memory the training needs, and shows a progress bar. None shows a bar on a terminal and in
        a notebook if the training takes more than two seconds. False shows none.
    n_threads : int, optional
        Threads of a training on the CPU, of lists and of new rows. None: those of torch, such as `OMP_NUM_THREADS`
        sets, and at most the processors that the process may use. A posterior has the same bits with any number.

    Attributes
    ----------
    snapshots_ : dict of int to Snapshot
        The learned graphs at the epochs or sweeps asked for, in their own unit, see `similarities_of`; part of a saved
        model.
    n_iter_ : int
        Epoch of the state that was kept.
    stopped_by_ : str
        "n_epochs" or "n_sweeps", "patience", "stopping_delta", "callback", "interrupt", "checkpoint" (one could not be
        written), "divergence" or "memory".
    device_ : str
        The device of the training.
    """

    _not_copied: ClassVar[tuple[str, ...]] = (*SolvesRows._not_copied, "_at_work")

    validation_fraction: float = real(0.0, maximum=0.9)
    patience: int | None = integer(None, minimum=1, besides=(None,))
    clip: bool | str = choice(False, (True, False, BINARY))
    dtype: str = choice("float32", DTYPES)
    device: str = "auto"
    random_state: RandomState = None
    max_memory: int | str | None = None
    verbose: bool | None = choice(None, (True, False, None))
    n_threads: int | None = integer(None, minimum=1, besides=(None,))

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The columns "timestamp" and "weight" of a table, as far as the model reads them."""
        return ("weight",)

    def engine(self) -> Engine:
        """The engine that `fit` would train with, not started."""
        raise NotImplementedError

    def setup(self, **graphs: Any) -> Setup:
        """The parameters that every engine reads; `n_factors`, and of the graphs what is not the default."""
        limit = None if self.max_memory is None else parse_size(self.max_memory)
        return Setup(dtype=self.dtype, device=self.device, clips=self.clip, memory_limit=limit, **graphs)

    def epochs_of_snapshots(self) -> tuple[int, ...]:
        """Epochs or sweeps at which the graphs are kept."""
        return ()

    def compared_parameters(self, data: Interactions) -> dict[str, Any]:
        """The parameters that a training shares with a checkpoint that it goes on from, as JSON can hold them."""
        return self.saved_parameters()

    def settled(self, values: Mapping[str, Any]) -> Self:
        """The model with these values in place of parameters that are "auto"; itself where it has none."""
        return self

    def by_default(self, data: Interactions) -> Self:
        """The model whose engine stands for that of `fit` before anything is searched."""
        return self

    def choose(self, training: Interactions, rng: np.random.Generator, kept: Any) -> Selection:
        """The selection for parameters that are "auto"; that of a checkpoint where one was kept."""
        return Selection()

    def fit(
        self,
        interactions: Any,
        y: None = None,
        *,
        validation: Interactions | None = None,
        callbacks: Iterable[Callback] = (),
        checkpoint: Path | None = None,
        every: int = 50,
        resume_from: Path | None = None,
        user_features: Any = None,
        item_features: Any = None,
        user_similarity: Any = None,
        item_similarity: Any = None,
        rating_scale: tuple[float, float] | None = None,
    ) -> Self:
        """Train on interactions and return the model; see `Recommender.fit`.

        Ctrl-C ends the training at the next epoch or sweep: the model keeps what it has learned so far, the checkpoint
        is written, and `KeyboardInterrupt` is raised. A second Ctrl-C interrupts at once, and the model does not
        change. SIGTERM and SIGHUP do the same with `SystemExit`, with status 143 and 129.

        While a fitted model trains again, other threads read its old state. Their calls of `partial_fit` wait for the
        end of the training and change the new state.

        Parameters
        ----------
        interactions : Interactions, sparse matrix, DataFrame or ndarray
        y : None
        validation : Interactions, optional
            Ratings of the same users and items, in place of the random part of `validation_fraction`. Their error is
            in `history_` and decides on `patience`, and the state with the lowest error is kept.
        callbacks : iterable of callable
        checkpoint : path, optional
            File that keeps the state of the training, replaced in one step each time.
        every : int
            Epochs or sweeps between two checkpoints; the last epoch or sweep has one as well.
        resume_from : path, optional
            Checkpoint to resume from, with the same data and parameters. The result equals that of an uninterrupted
            training, to the bit on a CPU with the same number of threads.
        user_features, item_features : DataFrame, ndarray or SciPy sparse, optional
            Features of users and items, see `Interactions.with_features`; the data may also have them already. A
            posterior uses them in the mean of its prior, and AIR's objective as edges to the ten nearest rows. Users
            and items of the table that have no rating become part of the model.
        user_similarity, item_similarity : mapping, SimilarityGraph, DataFrame, SciPy sparse or ndarray, optional
            Given similarities of users and items: symmetric, not negative, by id (a table has the ids as index and as
            columns) or in the order of the ids. A mapping says what they follow from, as in `DrugTargetAIR.fit`:
            "smiles", "sequences", "features" and tables by any name; the shares of these are learned (`shares_`), and
            `fold_in` and `partial_fit` take new ones by the same names. They are in the prior of a posterior, and in
            AIR's objective as a graph that stays, with a strength that is chosen on hidden ratings, see
            `AIR.user_graph_strength_`. For nodes with many neighbours the ten most similar ones count there. Those of
            both sides also become kernels of what a posterior leaves, see `air_recsys.models.kernels`. Ids that have
            no rating become part of the model.
        rating_scale : tuple of float, optional
            Lowest and highest possible rating, see `Interactions`; by default the scale or the range of the data.

        Raises
        ------
        CheckpointError
            Before any work, if a checkpoint cannot be read or written, belongs to other data or parameters, or is in
            use by another training. Later, if one cannot be written; the model then holds what it has learned so far.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from air_recsys import AIR
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> ratings[0, 0] = np.nan
        >>> whole = AIR.for_ratings(random_state=0, device="cpu").fit(ratings)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "run.ckpt"
        ...     cut = AIR.for_ratings(random_state=0, device="cpu")
        ...     _ = cut.fit(ratings, checkpoint=file, every=10, callbacks=[lambda record: record.epoch == 15])
        ...     resumed = AIR.for_ratings(random_state=0, device="cpu").fit(ratings, resume_from=file)
        >>> np.array_equal(whole.predict(0, 0), resumed.predict(0, 0))
        True
        """
        check_no_y(y)
        callbacks = check_callbacks(callbacks)
        data = self.as_data(interactions, rating_scale=rating_scale)
        if any(each is not None for each in (user_features, item_features, user_similarity, item_similarity)):
            self.check_parameters()
            resolve_device(self.device)
            if validation is not None:
                _check_validation(data, validation)
            data = with_features(data, user_features, item_features, stacklevel=2)
            data = with_similarities(data, user_similarity, item_similarity, stacklevel=2)
            validation = None if validation is None else validation.among(data.users, data.items)
        self.check(data, validation)
        check_kept(data, stacklevel=3)
        engine = self.by_default(data).engine()
        check_memory(engine, data, self.max_memory, self.device)
        with (
            self._checkpointer(data, validation, checkpoint, every, resume_from) as kept,
            naming_what_fits(engine, data),
            made_on_cpu(),
            threads(self.n_threads),
        ):
            if not engine.learns_from_constant:
                warn_if_constant(data)
            rng = kept.generator(self.random_state)
            training, held_out = self._split(data, validation, rng)
            chosen = self.choose(training, rng, kept.chosen)
            kept.chosen, engine = chosen.to_json(), self.settled(chosen.values).engine()
            if self.verbose:
                plan = engine.memory_plan(data)
                tqdm.write(f"{engine.graph_form(data)}; training will take about {plan}", file=sys.stderr)
            return self.train_by(
                engine,
                data,
                rng,
                training=training,
                held_out=held_out,
                callbacks=callbacks,
                checkpointer=kept,
                chosen=chosen,
            )

    def train_by(
        self,
        engine: Engine,
        data: Interactions,
        rng: np.random.Generator,
        *,
        training: Interactions | None = None,
        held_out: Interactions | None = None,
        callbacks: Iterable[Callback] = (),
        checkpointer: Checkpointer | None = None,
        progress: bool | None = None,
        chosen: Selection = _NO_SELECTION,
        gathered: Callable[[], Interactions | None] | None = None,
        ranks: Ranks = ALONE,
    ) -> Self:
        """Train by an engine and return the model: the part of `fit` that follows its checks.

        Parameters
        ----------
        engine : Engine
            That of `engine`, or one that does its work elsewhere, as in `air_recsys.distributed`.
        data : Interactions
            What the model is about.
        rng : Generator
        training, held_out : Interactions, optional
            What to train on, by default `data`, and what to watch.
        callbacks : iterable of callable
        checkpointer : Checkpointer, optional
        progress : bool, optional
            Show a progress bar; by default where `verbose`.
        chosen : Selection
            What `engine` took for parameters that are "auto".
        gathered : callable, optional
            Called after the training where `data` is only a part: returns the ratings that the model is about, or None
            where it is to stay without what was learned.
        ranks : Ranks
            The processes that share what follows the training.
        """
        with lock_of(self):
            self._at_work = engine
            try:
                trainer = engine.start(data if training is None else training, held_out, rng)
                result = train(
                    trainer,
                    patience=self.patience,
                    snapshot_epochs=self.epochs_of_snapshots(),
                    callbacks=callbacks,
                    checkpointer=checkpointer,
                    progress=self.verbose if progress is None else progress,
                )
                state = replace(_learned(engine, trainer, result, data), chosen=chosen)
                whole = data if gathered is None else gathered()
                if whole is not None:
                    with one_thread():
                        whole_state = self._with_kernels(replace(state, data=whole))
                        state = self._carrying(whole_state, engine.edges_after, ranks)
                        state = self._with_unrated(state)
                self._state = None if whole is None else state
            finally:
                vars(self).pop("_at_work", None)
        if result.error is not None:
            raise result.error
        return self

    @property
    def residual_strength(self) -> float | str:
        """The strength of what the item graph carries from rated items to others: "auto", or 0 for none."""
        return 0.0

    def _with_kernels(self, state: FittedState) -> FittedState:
        """A trained state with what its kernels of given similarities need beside their choice."""
        chosen, (users, items) = state.chosen, (state.data.user_features, state.data.item_features)
        if chosen.kernels is None or not (users and items) or self.settled(chosen.values).residual_strength == 0:
            return replace(state, chosen=replace(chosen, kernels=None))
        kernels = settled(chosen.kernels, state.data, state.factors, state.steady_ratings, state.rating_scale)
        return replace(state, chosen=replace(chosen, kernels=kernels))

    def _carrying(self, state: FittedState, n_edges: tuple[int, int], ranks: Ranks) -> FittedState:
        """A trained state with its graphs by agreement; that of items carries residuals, unless these do not agree."""
        if not any(n_edges):
            return state
        residuals, data = state.residuals, state.data
        device = resolve_device(self.device)
        users, items = agreements(data, residuals, state.factors, n_edges, ranks, device)
        shown = Snapshot.of([None if each is None else each.graph for each in (users, items)], data)
        state = replace(state, user_graph=shown.user_graph, item_graph=shown.item_graph)
        strength = 0.0 if state.chosen.kernels else self.settled(state.chosen.values).residual_strength
        if strength == 0 or items is None or state.equations is None or not state.factors.item_factors.shape[1]:
            return state
        if strength == "auto":
            left = of_pairs(data, residuals)
            if agreement_beyond_fit(items.blind, left, state.equations.covariance, ranks) < LEAST_AGREEMENT:
                return state
            strength = RESIDUALS
        processes, reads_times = RowProcesses.of_graph(items.blind, float(strength)), state.drift is not None
        further = further_parts(data, residuals, processes, state.influence, reads_times=reads_times)
        return replace(state, residual_strength=float(strength), further=further)

    def _with_unrated(self, state: FittedState) -> FittedState:
        """A trained state with the processes for users and items without ratings, where these gain."""
        if state.chosen.kernels or self.settled(state.chosen.values).residual_strength == 0:
            return state
        return replace(state, unrated=(state.process_of_unrated("user"), state.process_of_unrated("item")))

    def check(self, data: Interactions, validation: Interactions | None = None) -> None:
        """Raise `ParameterError` or `DataError` where `fit` on these interactions would, before any work."""
        self.check_parameters()
        resolve_device(self.device)
        warn_of_many(self.n_threads)
        if self.patience is not None and validation is None and self.validation_fraction == 0:
            raise ParameterError("patience needs a validation part, found validation_fraction=0")
        self.by_default(data).engine().check(data)
        if validation is not None:
            _check_validation(data, validation)

    def check_parameters(self) -> None:
        """Raise `ParameterError` for a parameter that is out of its range, whatever the data and the machine."""
        super().check_parameters()
        check_device_name(self.device)
        if self.max_memory is not None:
            parse_size(self.max_memory)

    def _checkpointer(
        self, data: Interactions, validation: Any, checkpoint: Path | None, every: int, resume_from: Path | None
    ) -> FileCheckpointer:
        """The keeper of the states of a training; a file to go on from is read here."""
        check_paths(checkpoint=checkpoint, resume_from=resume_from)
        mark: dict[str, Any] = {}
        if checkpoint is not None or resume_from is not None:
            mark = self.fingerprint(data, validation)
        return FileCheckpointer(mark, checkpoint, every, resume_from)

    def fingerprint(self, data: Interactions, validation: Interactions | None = None) -> dict[str, Any]:
        """The parts "data" and "parameters" of a training, as JSON holds them: what a checkpoint belongs to."""
        return fingerprint(type(self).__name__, self.compared_parameters(data), data, validation)

    def _split(
        self, data: Interactions, validation: Interactions | None, rng: np.random.Generator
    ) -> tuple[Interactions, Interactions | None]:
        if validation is not None:
            _tell_shared(data, validation)
        if validation is not None or self.validation_fraction == 0:
            return data, validation
        split = random_holdout(data, self.validation_fraction, random_state=rng)
        return data.select(split.train), data.select(split.test)

    def memory_plan(self, interactions: Any) -> MemoryPlan:
        """The bytes that `fit` on these interactions will take at its peak, beside the interactions.

        Examples
        --------
        >>> from air_recsys import AIR
        >>> print(AIR.for_ratings(device="cpu").memory_plan(np.eye(1000)).total < 1e9)
        True
        """
        data = self.as_data(interactions, allow_negative=True)
        return self.by_default(data).engine().memory_plan(data)

    def current_factors(self) -> Factors:
        """The present factors of a training, for callbacks of `fit`: ids in the order of the data.

        Raises
        ------
        NotFittedError
            Outside of `fit`; afterwards the factors are attributes.
        """
        if "_at_work" not in vars(self):
            raise NotFittedError("current_factors is for callbacks while fit runs")
        return self._at_work.factors()

    def measured(self, state: FittedState) -> Spread:
        """The errors on a tenth of the ratings, hidden from a further training with the settings of the model."""
        origin = state.origin
        check_measurable(origin.data.n_ratings)
        split = random_holdout(origin.data, HIDDEN, random_state=0)
        hidden, scale = origin.data.select(split.test), origin.rating_scale
        again = self.trained_again(state, origin.data.select(split.train))
        shown, pairs = again._fitted(), (hidden.user_index, hidden.item_index)
        scores = origin.limited(shown.factors.scores(*pairs), self.clips)
        return Spread.of(shown.facts(*pairs, scores), scores, hidden.ratings, scale[1] - scale[0])

    def trained_again(self, state: FittedState, part: Interactions) -> Self:
        """A model with the settings of this one, trained on a part of its ratings."""
        if not is_installed():
            raise MissingTorchError(", or before `save` ask once: learn_lists(), or predict(return_std=True)")
        from sklearn.base import clone

        again: Any = clone(self.settled(state.chosen.values))
        again.set_params(validation_fraction=0.0, patience=None, clip=False)
        low, high = state.origin.rating_scale
        return again.fit(part, rating_scale=(low, high) if low < high else None)

    @property
    def device_(self) -> str:
        """The device of the training."""
        return self._of_ending("device")

    @property
    def settings_(self) -> dict[str, Any]:
        """Values that the training used for parameters that were "auto", by plain names."""
        state = self._fitted()
        chosen = state.chosen.values
        return state.chosen.plain_values() | self.settled(chosen).engine().values(state.data)

    @property
    def search_(self) -> pd.DataFrame:
        """The search of the settings: form, trainings (share of the full training), RMSE on the hidden ratings."""
        return self._fitted().chosen.table()

    @property
    def search_line_(self) -> str:
        """The kind of data that `AIR.auto` found; what the search chose and by how much, or why it did not search."""
        return self._fitted().chosen.line

    @property
    def snapshots_(self) -> dict[int, Snapshot]:
        """The graphs at the epochs or sweeps asked for, by `snapshot_epochs`."""
        return dict(self._fitted().ending.snapshots or {})

    def restored(self, state: FittedState, arrays: Mapping[str, np.ndarray]) -> FittedState:
        """The state of a file, completed by what only this class knows of it."""
        engine = self.settled(state.chosen.values).engine()
        equations = engine.equations_from(arrays, state.data)
        if equations.has_factors and state.factors.user_factors.shape[1] == 0:
            raise ValueError("expected factors of at least one column, found none")
        return with_saved(replace(state, equations=equations), arrays)

    @property
    def clips(self) -> Clip:
        """The limit of scores, see `air_recsys.models.ratings.limited`."""
        return self.clip


def _learned(engine: Engine, trainer: Trainer, result: Result, data: Interactions) -> FittedState:
    """The state that a training leaves."""
    graphs, history = Snapshot.of(trainer.adjacencies(), data), history_of(result.records)
    snapshots = {epoch: Snapshot.of(kept, data) for epoch, kept in result.snapshots.items()}
    ending = Ending(result.kept_epoch, result.stopped_by, str(engine.device), snapshots)
    return with_unseen(FittedState(data, engine.factors(), *graphs, history, engine.equations(), ending))


def _tell_shared(data: Interactions, validation: Interactions) -> None:
    """Warn where pairs that a training is judged by are among those that it learns from."""
    if n_shared := np.count_nonzero(np.isin(validation.pair_index, data.pair_index)):
        warnings.warn(
            f"{n_shared} of {validation.n_ratings} ratings of the validation are in the training data, too: the error "
            "on them says nothing of others",
            DataWarning,
            stacklevel=4,
        )


def _check_validation(data: Interactions, validation: Interactions) -> None:
    if not isinstance(validation, Interactions):
        raise DataError(f"validation must be Interactions, found {type(validation).__name__}")
    for kind in ("user", "item"):
        own, other = getattr(data, f"{kind}_ids"), getattr(validation, f"{kind}_ids")
        if not np.array_equal(own, other):
            raise DataError(
                f"validation must have the {kind} ids of the training data in the same order, as the two sides of "
                f"Interactions.select do; found {other.size} ids beside {own.size}"
            )
