"""`TrainedRecommender`: what all models have in common that an engine trains."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from tqdm import tqdm

from air_recsys.data.interactions import Interactions, as_interactions, with_features
from air_recsys.exceptions import DataError, NotFittedError, ParameterError
from air_recsys.models.chosen import Chosen
from air_recsys.models.deviations import PredictsDeviations
from air_recsys.models.engines import DTYPES, Engine, Setup
from air_recsys.models.engines.memory import announcement, check_memory, naming_what_fits, parse_size
from air_recsys.models.explanation import Explanation, Labels, explain
from air_recsys.models.given_graphs import with_similarities
from air_recsys.models.known_rows import checked_features, with_known_rows
from air_recsys.models.likes import warn_if_constant
from air_recsys.models.limits import BINARY, Clip
from air_recsys.models.locks import lock_of
from air_recsys.models.partial_fit import of_new_users, updated, with_unseen
from air_recsys.models.rows import SIDES, Folded, RowSolver, Side, as_rows
from air_recsys.models.scale import check_finite, check_on_scale
from air_recsys.models.state import Ending, Factors, FittedState, Snapshot, history_of
from air_recsys.models.storage.fingerprint import fingerprint
from air_recsys.nn.devices import check_device_name, resolve_device
from air_recsys.nn.memory import MemoryPlan
from air_recsys.splits import random_holdout
from air_recsys.storage.validation import RandomState, check_choice, choice, integer, real
from air_recsys.training import Callback, Result, Trainer, check_callbacks, train
from air_recsys.training.checkpoint import check_paths
from air_recsys.training.checkpointer import Checkpointer, FileCheckpointer

Path = str | os.PathLike[str]
_NOTHING_CHOSEN = Chosen()


@dataclass(kw_only=True, eq=False, repr=False)
class TrainedRecommender(PredictsDeviations):
    """Base of the models that an engine trains: `AIR`, `DMF`, `RDMF` and `DirichletDMF`.

    Parameters
    ----------
    validation_fraction : float
        Share of the ratings that is held out at random to monitor the error; the state with the lowest error is kept.
    patience : int, optional
        Records without a better validation error before training stops.
    clip : bool or "binary"
        Limit predictions to the range of the training ratings. "binary" pushes those of 0/1 data towards 0 and 1 in
        their order, see `air_recsys.models.limits.pushed`, and limits others as True does.
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
        Where the model was trained.
    """

    _not_copied: ClassVar[tuple[str, ...]] = (*PredictsDeviations._not_copied, "_at_work")

    validation_fraction: float = real(0.0, maximum=0.9)
    patience: int | None = integer(None, minimum=1, besides=(None,))
    clip: bool | str = choice(False, (True, False, BINARY))
    dtype: str = choice("float32", list(DTYPES))
    device: str = "auto"
    random_state: RandomState = None
    max_memory: int | str | None = None
    verbose: bool | None = choice(None, (True, False, None))

    # ---------------------------------------------------------------- what a subclass brings

    def engine(self) -> Engine:
        """Return the engine that `fit` would train with, not started."""
        raise NotImplementedError

    def _setup(self, **graphs: Any) -> Setup:
        """Return what every engine reads; `n_factors`, and of the graphs what is not the default."""
        limit = None if self.max_memory is None else parse_size(self.max_memory)
        return Setup(dtype=self.dtype, device=self.device, clips=self.clip, memory_limit=limit, **graphs)

    def _snapshot_epochs(self) -> tuple[int, ...]:
        return ()

    def _compared_parameters(self, data: Interactions) -> dict[str, Any]:
        """Return what a training has to have in common with a checkpoint that it goes on from, as JSON can hold it."""
        return self._saved_parameters()

    def _settled(self, values: Mapping[str, Any]) -> Self:
        """Return the model with these values in place of parameters that are "auto"; itself where it has none."""
        return self

    def _by_default(self, data: Interactions) -> Self:
        """Return the model whose engine stands for that of `fit` before anything is searched."""
        return self

    def _choose(self, training: Interactions, rng: np.random.Generator, kept: Any) -> Chosen:
        """Return what a training takes for parameters that are "auto"; that of a checkpoint where one was kept."""
        return Chosen()

    # ---------------------------------------------------------------- fitting

    def fit(
        self,
        interactions: Any,
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
            posterior uses them in the mean of its prior. Users and items of the table that have no rating become part
            of the model.
        user_similarity, item_similarity : SimilarityGraph, DataFrame, SciPy sparse or ndarray, optional
            Given similarities of users and items: symmetric, not negative, by id (a table has the ids as index and as
            columns) or in the order of the ids. A posterior uses them in its prior, with a strength that is chosen on
            hidden ratings, see `AIR.user_graph_strength_`. For nodes with many neighbours the ten most similar ones
            count. Ids that have no rating become part of the model.
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
        callbacks = check_callbacks(callbacks)
        data = as_interactions(interactions, rating_scale=rating_scale)
        if any(each is not None for each in (user_features, item_features, user_similarity, item_similarity)):
            self._check_parameters()
            resolve_device(self.device)
            if validation is not None:
                _check_validation(data, validation)
            data = with_features(data, user_features, item_features, stacklevel=2)
            data = with_similarities(data, user_similarity, item_similarity)
            validation = None if validation is None else validation.among(data.users, data.items)
        self.check(data, validation)
        engine = self._by_default(data).engine()
        check_memory(engine, data, self.max_memory, self.device)
        with (
            self._checkpointer(data, validation, checkpoint, every, resume_from) as kept,
            naming_what_fits(engine, data),
        ):
            if not engine.learns_from_constant:
                warn_if_constant(data)
            rng = kept.generator(self.random_state)
            training, held_out = self._split(data, validation, rng)
            chosen = self._choose(training, rng, kept.chosen)
            kept.chosen, engine = chosen.to_json(), self._settled(chosen.values).engine()
            if self.verbose:
                tqdm.write(announcement(engine, data), file=sys.stderr)
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
        chosen: Chosen = _NOTHING_CHOSEN,
        gathered: Callable[[], Interactions | None] | None = None,
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
        chosen : Chosen
            What `engine` took for parameters that are "auto".
        gathered : callable, optional
            Called after the training where `data` is only a part: returns the ratings that the model is about, or None
            where it is to stay without what was learned.
        """
        with lock_of(self):
            self._at_work = engine
            try:
                trainer = engine.start(data if training is None else training, held_out, rng)
                result = train(
                    trainer,
                    patience=self.patience,
                    snapshot_epochs=self._snapshot_epochs(),
                    callbacks=callbacks,
                    checkpointer=checkpointer,
                    progress=self.verbose if progress is None else progress,
                )
                state = replace(_learned(engine, trainer, result, data), chosen=chosen)
                whole = data if gathered is None else gathered()
                self._state = None if whole is None else replace(state, data=whole)
            finally:
                vars(self).pop("_at_work", None)
        if result.error is not None:
            raise result.error
        return self

    def check(self, data: Interactions, validation: Interactions | None = None) -> None:
        """Raise `ParameterError` or `DataError` where `fit` on these interactions would, before any work."""
        self._check_parameters()
        resolve_device(self.device)
        if self.patience is not None and validation is None and self.validation_fraction == 0:
            raise ParameterError("patience needs a validation part, found validation_fraction=0")
        self._by_default(data).engine().check(data)
        if validation is not None:
            _check_validation(data, validation)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_device_name(self.device)
        if self.max_memory is not None:
            parse_size(self.max_memory)

    def _checkpointer(
        self, data: Interactions, validation: Any, checkpoint: Path | None, every: int, resume_from: Path | None
    ) -> FileCheckpointer:
        """Return what keeps the states of a training; a file to go on from is read here."""
        check_paths(checkpoint=checkpoint, resume_from=resume_from)
        mark: dict[str, Any] = {}
        if checkpoint is not None or resume_from is not None:
            mark = self.fingerprint(data, validation)
        return FileCheckpointer(mark, checkpoint, every, resume_from)

    def fingerprint(self, data: Interactions, validation: Interactions | None = None) -> dict[str, Any]:
        """Return "data" and "parameters" of a training, as JSON holds them: what a checkpoint belongs to."""
        return fingerprint(type(self).__name__, self._compared_parameters(data), data, validation)

    def _split(
        self, data: Interactions, validation: Interactions | None, rng: np.random.Generator
    ) -> tuple[Interactions, Interactions | None]:
        if validation is not None or self.validation_fraction == 0:
            return data, validation
        split = random_holdout(data, self.validation_fraction, random_state=rng)
        return data.select(split.train), data.select(split.test)

    def memory_plan(self, interactions: Any) -> MemoryPlan:
        """Return the bytes that `fit` on these interactions will take at its peak, beside the interactions.

        Examples
        --------
        >>> from air_recsys import AIR
        >>> print(AIR.for_ratings(device="cpu").memory_plan(np.eye(1000)).total < 1e9)
        True
        """
        data = as_interactions(interactions, allow_negative=True)
        return self._by_default(data).engine().memory_plan(data)

    def current_factors(self) -> Factors:
        """Return the present factors of a training, for callbacks of `fit`: ids in the order of the data.

        Raises
        ------
        NotFittedError
            Outside of `fit`; afterwards the factors are attributes.
        """
        if "_at_work" not in vars(self):
            raise NotFittedError("current_factors is for callbacks while fit runs")
        return self._at_work.factors()

    @property
    def device_(self) -> str:
        """Where the model was trained."""
        return self._of_ending("device")

    @property
    def settings_(self) -> dict[str, Any]:
        """Values that the training used for parameters that were "auto", by plain names."""
        state = self._fitted()
        chosen = state.chosen.values
        return state.chosen.plain_values() | self._settled(chosen).engine().values(state.data)

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

    # ---------------------------------------------------------------- new rows and new ratings

    def row_solver(self, side: Side = "user") -> RowSolver:
        """Return the linear solve behind `fold_in` for one side, for use without the model.

        Raises
        ------
        ParameterError
            For models with `transforms` or `tv_reg`, which tie a row to all others.
        """
        check_choice("side", side, SIDES)
        return self._fitted().row_solver(side)

    def fold_in(
        self, ratings: Any, *, weights: np.ndarray | None = None, side: Side = "user", features: Any = None
    ) -> Folded:
        """Return factors and biases of new users (or items) from their ratings; the model does not change.

        The new rows minimise the objective with the trained model held fixed, see
        `air_recsys.models.engines.equations.objective_rows`. With a posterior they are posterior means, see
        `air_recsys.models.engines.equations.posterior_rows`. Use `partial_fit` to make them part of the model.

        Parameters
        ----------
        ratings : Interactions, DataFrame, SciPy sparse, or None
            Interactions have the new users by id; their items must be known. A matrix has one row per new user and one
            column per item of the model (with ``side="item"`` one row per new item and one column per user); its
            stored entries are ratings, zeros included. None, with `features`: new rows without a rating.
        weights : ndarray, shape (nnz,), optional
            How much each stored entry of a CSR matrix counts; Interactions bring their own.
        side : {"user", "item"}
            What the new rows are.
        features : DataFrame or ndarray, optional
            Features of the new rows, for models that were trained with features: by id beside Interactions, else in
            the order of the rows. Missing features count as the average.

        Returns
        -------
        Folded
            `factors` (n, r) and `biases` (n,). A new user's scores are
            ``global_mean_ + biases[:, None] + item_biases_ + factors @ item_factors_.T``. A row without ratings and
            features gets zeros: the mean and the biases of the other side.

        Raises
        ------
        DataError, UnknownIdError
            If the ratings do not fit the model. The rules are those of `fit`: ratings are finite, each pair occurs
            once, and weights are finite and >= 0. Ratings must lie on the scale of the training data, from the
            smallest to the largest rating in `fit`. If all of these are equal there is no scale, and only negative
            ratings are refused.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from air_recsys import AIR
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> model = AIR.for_completion(n_epochs=3000, init_std=0.1, random_state=0, device="cpu").fit(ratings)
        >>> new = model.fold_in(sp.csr_array([[0, 0, 2.0, 2.0, 0, 0, 4.0, 4.0]]))  # like the second group
        >>> (new.factors @ model.item_factors_.T).round(0)[0, :5]
        array([2., 2., 2., 2., 4.], dtype=float32)
        """
        check_choice("side", side, SIDES)
        state = self._fitted()
        solver = state.row_solver(side)
        ratings, options = with_known_rows(state, ratings, side, features)
        rows, confidence = as_rows(state.data, ratings, weights, side, "partial_fit takes new ones in")
        check_on_scale(state, rows.data)
        folded = solver.solve(rows, weights=confidence, **options)
        check_finite(folded)
        return folded

    def partial_fit(self, interactions: Any, *, user_features: Any = None, item_features: Any = None) -> Self:
        """Update the model with ratings of known users, new users and new items, without training.

        A new rating of a pair replaces the old one. Every user of `interactions` is solved again from all of its
        ratings (under AIR's objective also from the item graph and its neighbours in the user graph). Then every new
        item is solved from all of its ratings, and then those users once more, with the new items. All other rows stay
        unchanged. New users and items have no edges in the learned graphs until the next `fit`.

        The new state replaces the old one in one step: other threads read one or the other, and writers wait for each
        other, so no ratings are lost. `clip` keeps the range of `fit`.

        Parameters
        ----------
        interactions : Interactions, sparse matrix, DataFrame or ndarray
            As for `fit`; positions of a matrix are ids here too.
        user_features, item_features : DataFrame, optional
            Features of new users and items, with the columns of `fit`. Users and items without ratings are added as
            well. The features of known ones do not change.

        Raises
        ------
        DataError
            Before any change, if ratings break a rule of `fit` or are outside of the scale of the training data, see
            `fold_in`.

        Examples
        --------
        >>> import pandas as pd
        >>> from air_recsys import AIR
        >>> frame = pd.DataFrame({"user": ["ann", "ann", "bob"], "item": ["x", "y", "x"], "rating": [5, 1, 4]})
        >>> model = AIR.for_ratings(random_state=0, device="cpu").fit(frame)
        >>> new = pd.DataFrame({"user": ["eve", "bob"], "item": ["x", "y"], "rating": [5, 2]})
        >>> model.partial_fit(new).interactions_
        Interactions(n_users=3, n_items=2, n_ratings=5, density=83.33 %, ratings 1..5)
        """
        self.check_fitted()
        data = as_interactions(interactions, allow_negative=True)
        with lock_of(self):
            self._state = updated(self._fitted(), data, user_features, item_features)
        return self

    def new_users(self, ratings: Any) -> Self:
        """Return a model of new users, for `recommend`, `predict` and `explain`; this model does not change.

        Its answers equal those of a copy after `partial_fit`, with deviations and probabilities of the values if this
        model has them. A posterior without features and times solves only the new users: the time then depends on the
        number of items, and not on the number of users and ratings. The returned model then has no other users.

        Parameters
        ----------
        ratings : Interactions, sparse matrix, DataFrame or ndarray
            Ratings of new users for known items.

        Raises
        ------
        DataError, UnknownIdError
            For known users, unknown items, and ratings off the scale, see `fold_in`.
        ParameterError
            For models with `transforms` or `tv_reg`, which tie a row to all others.

        Examples
        --------
        >>> import pandas as pd
        >>> from air_recsys import AIR
        >>> frame = pd.DataFrame({"user": ["ann", "ann", "bob"], "item": ["x", "y", "x"], "rating": [5, 1, 4]})
        >>> model = AIR.for_ratings(random_state=0, device="cpu").fit(frame)
        >>> eve = model.new_users(pd.DataFrame({"user": ["eve"], "item": ["x"], "rating": [5]}))
        >>> eve.recommend("eve")["item"].tolist(), model.interactions_.n_users
        (['y'], 2)
        """
        state = self._fitted()
        alone = copy.copy(self)
        alone._state = of_new_users(state, as_interactions(ratings, allow_negative=True))
        items = self._similarities(state, "item")
        if items is not None and len(items) == alone._state.data.n_items:
            alone._state = alone._state.with_similarities("item", items)
        return alone

    # ---------------------------------------------------------------- explanations

    def feature_effects(self, side: Side = "item") -> pd.DataFrame:
        """Return the learned effect of each feature of users or items on a score.

        Parameters
        ----------
        side : {"user", "item"}
            Side of the features.

        Returns
        -------
        DataFrame
            Columns feature, effect (the mean over all users, or items for features of users) and spread (the standard
            deviation over them), in the unit of the ratings; the largest effect first. The effect of a flag is
            relative to its absence, and the effect of a number is that of one standard deviation. These are means of
            the prior: the expectation before any rating of the user or item.

        Raises
        ------
        DataError
            If the model was trained without features of that side.

        Examples
        --------
        >>> from air_recsys import AIR
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> ratings[0, 0] = np.nan
        >>> table = pd.DataFrame({"kind": ["a"] * 4 + ["b"] * 4})
        >>> model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings, item_features=table)
        >>> model.feature_effects("item")["feature"].tolist()
        ['kind=a', 'kind=b']
        """
        check_choice("side", side, SIDES)
        state = self._fitted()
        names = checked_features(state.features(side), side).names
        assert state.equations is not None
        of_features = state.equations.feature_effects(side)[: len(names)]  # without places in a given graph
        effects = pd.DataFrame(of_features, columns=["effect", "spread"])
        effects.insert(0, "feature", names)
        return effects.sort_values("effect", ascending=False, kind="stable", ignore_index=True)

    @property
    def drift_(self) -> pd.DataFrame | None:
        """How ratings of users and items change over time; None without ``time="drift"``, empty if nothing changes.

        Columns side ("user", "item"), lasts (the time scale, in the unit of the timestamps) and deviation (the root
        mean square of what it adds, in the unit of the ratings).
        """
        drift = self._fitted().drift
        return None if drift is None else drift.table()

    def explain(
        self,
        user_id: Hashable,
        item_id: Hashable,
        n: int = 10,
        *,
        labels: Labels | None = None,
        timestamp: Any = None,
    ) -> Explanation:
        """Return which rated items and which similar users speak for a score: contributions that add up to it.

        They follow from the equations of the user's factors, with all else held fixed. The part that these do not
        explain is the remainder. See `objective_contributions`, and for a posterior `posterior_contributions`, of
        `air_recsys.models.engines.equations` for the definitions.

        Parameters
        ----------
        user_id, item_id : hashable
            A known user and a known item, rated or not.
        n : int
            Maximum number of rows of a table; the sums include all contributions.
        labels : mapping or Series, optional
            Name of each item id, such as a title, which is shown beside the id.
        timestamp : optional
            Time at which the score is explained, for models with ``time="drift"``.

        Raises
        ------
        UnknownIdError
            For ids that are not in the model; `partial_fit` takes new ones in.
        ParameterError
            For models with `transforms` or `tv_reg`, which tie a user to all others.

        Examples
        --------
        >>> from air_recsys import AIR
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> ratings[0, 0] = np.nan
        >>> settings = {"solver": "adam", "n_factors": 2, "weight_decay": 0.5, "n_batches": 1, "n_epochs": 300}
        >>> model = AIR.for_ratings(**settings, random_state=0, device="cpu").fit(ratings)
        >>> explanation = model.explain(0, 0)
        >>> explanation.score > explanation.mean + explanation.user_bias + explanation.item_bias
        True
        >>> sorted(explanation.items["item"][:3].tolist())
        [1, 2, 3]
        """
        state = self._fitted()
        assert state.equations is not None
        pair = user_id, item_id
        alike = self._similarities(state, "user"), self._similarities(state, "item")
        return explain(
            state, state.equations, pair, n, labels, clips=self._clips, similarities=alike, timestamp=timestamp
        )

    # ---------------------------------------------------------------- files

    def _restore(self, state: FittedState, arrays: Mapping[str, np.ndarray]) -> FittedState:
        engine = self._settled(state.chosen.values).engine()
        equations = engine.equations_from(arrays, state.data)
        if equations.has_factors and state.factors.user_factors.shape[1] == 0:
            raise ValueError("expected factors of at least one column, found none")
        return replace(state, equations=equations)

    @property
    def _clips(self) -> Clip:
        return self.clip


def _learned(engine: Engine, trainer: Trainer, result: Result, data: Interactions) -> FittedState:
    """Return what a training has left."""
    graphs, history = Snapshot.of(trainer.adjacencies(), data), history_of(result.records)
    snapshots = {epoch: Snapshot.of(kept, data) for epoch, kept in result.snapshots.items()}
    ending = Ending(result.kept_epoch, result.stopped_by, str(engine.device), snapshots)
    return with_unseen(FittedState(data, engine.factors(), *graphs, history, engine.equations(), ending))


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
