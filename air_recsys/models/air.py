"""`AIR`: deep matrix factorization with two learned graph Laplacians."""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
import torch
from tqdm import tqdm

from air_recsys.exceptions import NotFittedError, ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.postprocess import LEARNED_SHARE, with_pattern
from air_recsys.interactions import Interactions, as_interactions
from air_recsys.models.air_parameters import DTYPES, check_parameters
from air_recsys.models.base import Factors
from air_recsys.models.checkpoints import Keeping
from air_recsys.models.deviations import PredictsDeviations
from air_recsys.models.devices import resolve_device
from air_recsys.models.explain import Equations, explain
from air_recsys.models.explanation import Explanation
from air_recsys.models.explanation_tables import Labels
from air_recsys.models.fold_in import SIDES, Folded, RowSolver, as_rows, row_solver
from air_recsys.models.memory import announcement, check_memory, naming_what_fits, plan_of
from air_recsys.models.partial_fit import update
from air_recsys.models.posterior import Sweeps
from air_recsys.models.presets import PRESETS
from air_recsys.models.scaling import Scaling, edges_per_node, energy_weight, graph_strength, width_of
from air_recsys.models.snapshots import history, snapshot
from air_recsys.models.transforms import parse_transforms
from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.nn.memory import MemoryPlan
from air_recsys.nn.objective import Objective, Observations, Penalties
from air_recsys.splits import random_holdout
from air_recsys.training import Callback, Plan, Result, train
from air_recsys.training.resume import SavedCourse
from air_recsys.validation import RandomState, check_choice

_SEES_PATTERN = 10.0  # share of a graph that a posterior learned: its edges first, then the pattern's


class AIR(PredictsDeviations):
    r"""Adaptive and implicit regularization for collaborative filtering.

    The ratings Y (n_users x n_items) are completed by X = W0 W1 ... W(L-1), trained on

    .. math:: \frac{1}{mn}\|P_\Omega(X - Y)\|^2 + \eta_u\,\mathrm{tr}(X^\top L_u X) + \eta_i\,\mathrm{tr}(X L_i X^\top)

    where the Laplacians of the user graph and of the item graph are learned together with the factors. Start from one
    of the presets: `for_ratings` (noisy ratings), `for_interactions` (0/1 data), `for_completion` (exact data, the
    paper's setting, which are also the defaults).

    Parameters
    ----------
    n_factors : int, "auto" or None
        Width of the factorization; None is full width, min(n_users, n_items), where X is held as a dense matrix.
        "auto" is 20, with a posterior up to 40 by the size of the data, see `air_recsys.models.scaling.width_of`.
    depth : int
        Number of factors L >= 2.
    user_graph_reg, item_graph_reg : float or "auto"
        Strengths of the two energies; 0 leaves that graph out, "auto" is 3 n_ratings / (n_users n_items)^2, which
        weighs a user's energy against its ratings alike at every size of the data. A posterior learns the graphs of
        all strengths but 0 alike.
    adjacency : {"row_softmin", "global_sum", "global_product"}
        How logits become a graph; see `air_recsys.graphs.adjacency`.
    graph_neighbors : int, "auto" or None
        Edges per node of a sparse learned graph (with "row_softmin"; at most all other nodes are taken); None weighs
        all pairs. "auto" chooses by size, see `air_recsys.models.scaling.edges_per_node`; a verbose `fit` says what.
    graph_refresh : int
        Epochs, or sweeps of a posterior, between two choices of a sparse graph's edges.
    graph_rate : float
        Step size of the graphs' logits as a multiple of `learning_rate`.
    graph_every : int
        Steps between two steps of the logits of graphs of all pairs, each so many times larger; in between the graph
        stays, which saves a quarter of the time of a step (docs/step-cost.md). Not with `transforms`.
    n_epochs : int
        Passes over all ratings.
    n_batches : int
        Optimiser steps an epoch: each sees a random part of the ratings, drawn once, and a part of the rows of sparse
        graphs (at most one part a rating, user and item). Not with `transforms` or `tv_reg`.
    learning_rate : float
        Adam's step size.
    schedule : {"constant", "cooldown", "cosine", "linear"}
        How the step size falls; "cooldown" keeps it for 60 % of the epochs.
    weight_decay, bias_decay : float
        Weights of the squared factors and biases against the sum of squared errors.
    biases : bool
        Add a trained bias per user and item.
    center, scale : bool
        Subtract the mean rating; divide by the largest absolute one. Undone in all results.
    transforms : sequence of tuple
        Further transformations T_i of the matrix, each with a graph of its own that is learned: tuples (transform,
        strength) or (transform, strength, n_neighbors), see `air_recsys.models.transforms.parse_transforms`; for
        example ``[("blocks:8", 1e-5)]``. Needs full width.
    tv_reg : float
        Strength of the total variation, for matrices that are pictures. Needs full width.
    unobserved_weight : float
        Weight, against that of a rating, with which every pair without a rating is drawn to 0; for data where only
        positive pairs are recorded. Goes without biases and centring.
    solver : {"adam", "variational", "langevin"}
        Where the factors come from: the objective above, or a posterior of factors and biases that sees the pattern of
        who rated what and learns its own noise and penalties, by its best Gaussian approximation ("variational") or by
        drawing from it ("langevin"); see `air_recsys.nn.posterior.posterior`. A posterior's graphs are learned from
        its rows, a step a sweep (`air_recsys.nn.posterior.graphs`), and `predict` knows standard deviations. Needs
        `n_factors` and biases; not with `transforms`, `tv_reg` or `unobserved_weight`. What says how the objective is
        trained (depth, epochs, step sizes, batches, decay, patience) is for "adam" alone.
    n_sweeps : int, optional
        Passes of a posterior over all users and items; None is 30, or 200 for "langevin".
    pattern_features : int
        Singular vectors of who rated what that a posterior sees; 0 for pairs that are missing at random.
    init_mean, init_std : float
        Factors start from N(init_mean, init_std^2).
    validation_fraction : float
        Share of the ratings held out, at random, to watch the error; the best state is kept.
    patience : int, optional
        Records without a better validation error before training stops.
    stopping_delta : float, optional
        The paper's stopping rule, on the change of n_users * n_items * objective in one epoch.
    evaluate_every : int
        Epochs between two records in `history_`.
    snapshot_epochs : sequence of int
        Epochs, or sweeps of a posterior, at which both graphs are kept in `snapshots_`.
    pattern_graphs : bool
        Whether `similar_users` and `similar_items` see the pattern of who rated what beside the learned graphs: for
        pairs that people chose to rate, not for pairs that are missing at random. See docs/graph-quality.md.
    clip : bool
        Limit predictions to the range of the training ratings.
    dtype : {"float32", "float64"}
    device : str
        "cpu", "cuda", "cuda:1", ..., or "auto": the GPU where there is one.
    random_state : int, RandomState, Generator or None
        Source of the start and of the validation part; the same seed gives the same model.
    max_memory : int or str, optional
        Bytes, or text such as "8GB", that training may take beside the data; more is an error before any work. None:
        what the device has. See `memory_plan`.
    verbose : bool
        Say how much memory training will take, and show a progress bar.

    Attributes
    ----------
    user_graph_, item_graph_ : SimilarityGraph or None
        Who is alike, learned.
    user_similarities_, item_similarities_ : SimilarityGraph or None
        What `similar_users` and `similar_items` look at, made when it is first asked for: the learned graphs, with
        `pattern_graphs` joined with the pattern of who rated what.
    user_factors_, item_factors_ : ndarray
        The collapsed factorization, in the unit of the ratings.
    history_ : DataFrame
        One row per record: epoch, fit, user_energy, item_energy, decay, further (transforms and total variation),
        objective, validation_rmse, learning_rate, seconds, noise. Each sweep of a posterior is an epoch with a record:
        its noise is the standard deviation that users and items have in common, its energies are of rows of unit
        length, and what belongs to the objective is NaN.
    transform_graphs_ : list of SimilarityGraph
        The graphs of `transforms`, over the rows of each T_i(X).
    snapshots_ : dict of int to Snapshot
        The graphs at the epochs asked for; not part of a saved model.
    n_iter_ : int
        Epoch of the state that was kept.
    stopped_by_ : str
        "n_epochs" ("n_sweeps" with a posterior), "patience", "stopping_delta", "callback", "interrupt", "checkpoint"
        (one could not be written), "divergence" or "memory".
    device_ : str
        Where the model was trained.

    Source: Li, Sun, Wang, Wang, SIAM J. Imaging Sciences 15(4), 2022.

    Examples
    --------
    >>> import numpy as np
    >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))  # two groups of users, two of items
    >>> ratings[0, 0] = ratings[4, 5] = np.nan
    >>> model = AIR.for_completion(n_epochs=3000, init_std=0.1, random_state=0, device="cpu").fit(ratings)
    >>> model.predict([0, 4], [0, 5]).round(1)
    array([5., 4.])
    >>> sorted(model.similar_users(0, n=2)["user"])
    [1, 2]
    """

    _takes_weights = True
    _given_validation: Interactions | None = None  # while `fit` runs
    _keeping = Keeping()  # while `fit` runs
    _equations: Equations | None = None  # of explanations

    def __init__(
        self,
        n_factors: int | str | None = None,
        depth: int = 3,
        user_graph_reg: float | str = 1e-4,
        item_graph_reg: float | str = 1e-4,
        adjacency: str = "row_softmin",
        graph_neighbors: int | str | None = None,
        graph_refresh: int = 100,
        graph_rate: float = 1.0,
        graph_every: int = 1,
        n_epochs: int = 10_000,
        n_batches: int = 1,
        learning_rate: float = 1e-3,
        schedule: str = "constant",
        weight_decay: float = 0.0,
        bias_decay: float = 0.0,
        biases: bool = False,
        center: bool = False,
        scale: bool = True,
        transforms: Sequence[tuple[Any, ...]] = (),
        tv_reg: float = 0.0,
        unobserved_weight: float = 0.0,
        solver: str = "adam",
        n_sweeps: int | None = None,
        pattern_features: int = 100,
        init_mean: float = 1e-3,
        init_std: float = 1e-3,
        validation_fraction: float = 0.0,
        patience: int | None = None,
        stopping_delta: float | None = None,
        evaluate_every: int = 50,
        snapshot_epochs: Sequence[int] = (),
        pattern_graphs: bool = False,
        clip: bool = False,
        dtype: str = "float32",
        device: str = "auto",
        random_state: RandomState = None,
        max_memory: int | str | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_factors = n_factors
        self.depth = depth
        self.user_graph_reg = user_graph_reg
        self.item_graph_reg = item_graph_reg
        self.adjacency = adjacency
        self.graph_neighbors = graph_neighbors
        self.graph_refresh = graph_refresh
        self.graph_rate = graph_rate
        self.graph_every = graph_every
        self.n_epochs = n_epochs
        self.n_batches = n_batches
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.bias_decay = bias_decay
        self.biases = biases
        self.center = center
        self.scale = scale
        self.transforms = transforms
        self.tv_reg = tv_reg
        self.unobserved_weight = unobserved_weight
        self.solver = solver
        self.n_sweeps = n_sweeps
        self.pattern_features = pattern_features
        self.init_mean = init_mean
        self.init_std = init_std
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.stopping_delta = stopping_delta
        self.evaluate_every = evaluate_every
        self.snapshot_epochs = snapshot_epochs
        self.pattern_graphs = pattern_graphs
        self.clip = clip
        self.dtype = dtype
        self.device = device
        self.random_state = random_state
        self.max_memory = max_memory
        self.verbose = verbose

    # ---------------------------------------------------------------- presets

    @classmethod
    def for_completion(cls, **overrides: Any) -> Self:
        """Return a model for exact data: full width, all pairs, the paper's setting with a falling step size."""
        return cls(**cls._of_preset("completion") | overrides)

    @classmethod
    def for_ratings(cls, **overrides: Any) -> Self:
        """Return a model for noisy ratings: biases, few factors, weight decay, sparse graphs."""
        return cls(**cls._of_preset("ratings") | overrides)

    @classmethod
    def for_interactions(cls, **overrides: Any) -> Self:
        """Return a model for 0/1 data such as drug-target interactions: full width, sparse graphs."""
        return cls(**cls._of_preset("interactions") | overrides)

    @classmethod
    def _of_preset(cls, name: str) -> dict[str, Any]:
        known = cls().get_params()  # `DMF` knows nothing of graphs
        return {key: value for key, value in PRESETS[name].items() if key in known}

    # ---------------------------------------------------------------- fitting

    def fit(
        self,
        interactions: Any,
        *,
        validation: Interactions | None = None,
        callbacks: Iterable[Callback] = (),
        checkpoint: str | os.PathLike[str] | None = None,
        every: int = 50,
        resume_from: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on interactions and return the model; see `Recommender.fit`.

        Ctrl-C ends the training at the next epoch: the model is fitted with what it has learned, the checkpoint is
        written, and `KeyboardInterrupt` goes on. A second Ctrl-C interrupts at once.

        Parameters
        ----------
        interactions : Interactions, sparse matrix, DataFrame or ndarray
        validation : Interactions, optional
            Ratings of the same users and items to watch in place of the random part that `validation_fraction` holds
            out: they are in `history_`, decide on `patience`, and the state with their lowest error is kept.
        callbacks : iterable of callable
        checkpoint : path, optional
            File that keeps the state of the training, replaced in one step each time.
        every : int
            Epochs, or sweeps of a posterior, between two checkpoints; the last one has one as well.
        resume_from : path, optional
            Checkpoint to go on from, with the same data and parameters. The result is that of a training that was
            never interrupted, to the bit on a CPU with the same number of threads.

        Raises
        ------
        CheckpointError
            Before any work where a checkpoint cannot be read or cannot stand at its path, or is of other data or
            parameters. Where one cannot be written later on; the model then holds what it has learned so far.

        Examples
        --------
        >>> import tempfile, pathlib
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
        self._given_validation, self._keeping = validation, Keeping(checkpoint, every, resume_from)
        try:
            return super().fit(interactions, callbacks=callbacks)
        finally:
            del self._given_validation, self._keeping

    def _fit(self, data: Interactions, callbacks: list[Callback]) -> None:
        if self.verbose:
            tqdm.write(announcement(self, data), file=sys.stderr)
        rng = self._keeping.generator(self)
        training, held_out = self._split(data, rng)
        scaling = Scaling.of(training.ratings, center=self.center, scale=self.scale)
        with naming_what_fits(self, data):
            if self.solver == "adam":
                self._train(data, training, held_out, scaling, rng, callbacks)
            else:
                self._sweep(training, held_out, rng, callbacks)

    def _train(
        self,
        data: Interactions,
        training: Interactions,
        held_out: Interactions | None,
        scaling: Scaling,
        rng: np.random.Generator,
        callbacks: list[Callback],
    ) -> None:
        device = resolve_device(self.device)
        objective = build_objective(self._observations(training, scaling, device), self._settings(training), rng)
        self._training = objective, scaling
        try:
            result = train(
                objective,
                self._plan(),
                validation=None if held_out is None else self._observations(held_out, scaling, device),
                validation_unit=scaling.unit,
                callbacks=callbacks,
                progress=self.verbose,
                course=SavedCourse(objective, self._keeping.write, self._keeping.every, self._keeping.state),
            )
            self._keep(data, objective, scaling, result)
        finally:
            del self._training
        self.device_ = str(device)
        if result.error is not None:
            raise result.error

    def _sweep(
        self,
        training: Interactions,
        held_out: Interactions | None,
        rng: np.random.Generator,
        callbacks: list[Callback],
    ) -> None:
        self._sweeps = sweeps = Sweeps(self, training, rng, self._keeping)
        try:
            fault = sweeps.run(held_out, callbacks, progress=self.verbose)
        finally:
            del self._sweeps
        self._set_factors(sweeps.factors())
        self._spread = sweeps.spread()
        self.user_graph_, self.item_graph_, self.transform_graphs_ = sweeps.graphs()
        self.snapshots_, self.history_ = sweeps.snapshots(), history(sweeps.records)
        self.n_iter_, self.stopped_by_ = sweeps.records[-1].epoch, sweeps.stopped_by
        self.device_ = str(resolve_device(self.device))
        if fault is not None:
            raise fault

    def memory_plan(self, interactions: Any) -> MemoryPlan:
        """Return the bytes that `fit` on these interactions will take at its peak, beside the interactions.

        Examples
        --------
        >>> print(AIR.for_ratings(device="cpu").memory_plan(np.eye(1000)).total < 1e9)
        True
        """
        return plan_of(self, as_interactions(interactions, allow_negative=True))

    def _split(self, data: Interactions, rng: np.random.Generator) -> tuple[Interactions, Interactions | None]:
        if self._given_validation is not None or self.validation_fraction == 0:
            return data, self._given_validation
        split = random_holdout(data, self.validation_fraction, random_state=rng)
        return data.select(split.train), data.select(split.test)

    def _observations(self, data: Interactions, scaling: Scaling, device: torch.device) -> Observations:
        return observations(data.to_csr(), scaling.forward, DTYPES[self.dtype], device, data.weights_to_csr())

    def _settings(self, data: Interactions) -> Settings:
        width = width_of(self, data)
        return Settings(
            width=width,
            depth=self.depth,
            init=(self.init_mean, self.init_std),
            strengths=(graph_strength(self.user_graph_reg, data), graph_strength(self.item_graph_reg, data)),
            adjacency=self.adjacency,
            n_neighbors=edges_per_node(self.graph_neighbors, data, width),
            biases=self.biases,
            penalties=Penalties(self.weight_decay, self.bias_decay, self.unobserved_weight),
            transforms=parse_transforms(self.transforms, (data.n_users, data.n_items)),
            tv_strength=self.tv_reg,
            n_batches=self.n_batches,
            graph_every=self.graph_every,
        )

    def _plan(self) -> Plan:
        return Plan(
            n_epochs=self.n_epochs,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            graph_rate=self.graph_rate * self.graph_every,
            graph_refresh=self.graph_refresh,
            evaluate_every=self.evaluate_every,
            patience=self.patience,
            stopping_delta=self.stopping_delta,
            snapshot_epochs=frozenset(self.snapshot_epochs),
        )

    def current_factors(self) -> Factors:
        """Return the factors of this moment of a training, for callbacks of `fit`: ids in the order of the data.

        Raises
        ------
        NotFittedError
            Outside of `fit`; afterwards the factors are attributes.
        """
        if "_sweeps" in self.__dict__:
            return self._sweeps.factors()
        if "_training" not in self.__dict__:
            raise NotFittedError("current_factors is for callbacks while fit runs")
        objective, scaling = self._training
        with torch.no_grad():
            left, right = (tensor.cpu().numpy() for tensor in objective.factorization.factors())
        if objective.biases is None:
            biases = (np.zeros(len(left), left.dtype), np.zeros(len(right), left.dtype))
        else:
            biases = tuple(tensor.cpu().numpy() for tensor in objective.biases)
        unit = scaling.unit
        return Factors(left * unit, right.copy(), biases[0] * unit, biases[1] * unit, scaling.mean)

    # ---------------------------------------------------------------- new rows and new ratings

    def _energy_weight(self, side: Literal["user", "item"]) -> float:
        """Return what the energy of a side weighs in the equations of one row; a posterior knows no energy."""
        strength = self.user_graph_reg if side == "user" else self.item_graph_reg
        return energy_weight(strength, self.interactions_) if self.solver == "adam" else 0.0

    @property
    def _decays(self) -> bool:
        """Whether the factors were trained with weight decay; a posterior learns its penalties."""
        return self.weight_decay > 0 and self.solver == "adam"

    def row_solver(self, side: Literal["user", "item"] = "user") -> RowSolver:
        """Return the linear solve behind `fold_in` for one side, to be used without the model.

        Raises
        ------
        ParameterError
            For models with `transforms` or `tv_reg`, which tie a row to all others.
        """
        self._check_fitted()
        check_choice("side", side, SIDES)
        if self.transforms or self.tv_reg > 0:
            raise ParameterError("fold-in knows no transforms and no total variation: fit the model anew")
        if side not in self._solvers:
            self._solvers[side] = row_solver(self, side)
        return self._solvers[side]

    @cached_property
    def _solvers(self) -> dict[str, RowSolver]:
        return {}

    def fold_in(
        self, ratings: Any, *, weights: np.ndarray | None = None, side: Literal["user", "item"] = "user"
    ) -> Folded:
        """Return factors and biases of new users (or items) from their ratings, without training and without a trace.

        The new rows minimise the objective with all that was trained held fixed; see `air_recsys.models.fold_in`.
        With a posterior they take their posterior mean, see `air_recsys.models.posterior_rows`.
        Use `partial_fit` to make them part of the model.

        Parameters
        ----------
        ratings : Interactions, DataFrame, or SciPy sparse
            Interactions hold the new users by id (their items have to be known). A matrix has one row a new user and
            one column an item of the model (with ``side="item"``: one row a new item, one column a user); its stored
            entries are ratings, zeros included.
        weights : ndarray, shape (nnz,), optional
            How much each stored entry of a CSR matrix counts; Interactions bring their own.
        side : {"user", "item"}
            What the new rows are.

        Returns
        -------
        Folded
            `factors` (n, r) and `biases` (n,). A new user's scores are
            ``global_mean_ + biases[:, None] + item_biases_ + factors @ item_factors_.T``. A row without ratings gets
            zeros: the mean and the biases of the other side.

        Raises
        ------
        DataError, UnknownIdError
            Where the ratings do not fit the model.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> model = AIR.for_completion(n_epochs=3000, init_std=0.1, random_state=0, device="cpu").fit(ratings)
        >>> new = model.fold_in(sp.csr_array([[0, 0, 2.0, 2.0, 0, 0, 4.0, 4.0]]))  # like the second group
        >>> (new.factors @ model.item_factors_.T).round(0)[0, :5]
        array([2., 2., 2., 2., 4.], dtype=float32)
        """
        solver = self.row_solver(side)
        rows, confidence = as_rows(self, ratings, weights, side)
        return solver.solve(rows, weights=confidence)

    def partial_fit(self, interactions: Any) -> Self:
        """Take new ratings in without training: of known users, of new users, and of new items.

        A pair that was rated before gets its new rating. Every user of `interactions` is solved anew from all of its
        ratings, held by the item graph and by its neighbours in the user graph; then every new item from all of its
        ratings; then those users once more, now that the new items are there. All else stays. New users and items
        stand alone in the learned graphs until the next `fit`.

        Parameters
        ----------
        interactions : Interactions, sparse matrix, DataFrame or ndarray
            As for `fit`; positions of a matrix are ids here too.

        Raises
        ------
        DataError
            Before anything is changed.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"user": ["ann", "ann", "bob"], "item": ["x", "y", "x"], "rating": [5, 1, 4]})
        >>> model = AIR.for_ratings(n_epochs=50, random_state=0, device="cpu").fit(frame)
        >>> new = pd.DataFrame({"user": ["eve", "bob"], "item": ["x", "y"], "rating": [5, 2]})
        >>> model.partial_fit(new).interactions_
        Interactions(n_users=3, n_items=2, n_ratings=5, density=83.33 %, ratings 1..5)
        """
        data = as_interactions(interactions, allow_negative=True)
        self.row_solver()  # refuses what cannot be folded in
        update(self, data)
        return self

    # ---------------------------------------------------------------- explanations

    def explain(
        self, user_id: Hashable, item_id: Hashable, n: int = 10, *, labels: Labels | None = None
    ) -> Explanation:
        """Return which rated items and which similar users speak for a score: contributions that add up to it.

        They follow from the equations that the user's factors obey, with all else held fixed; what these leave
        unexplained is reported as the remainder. See `air_recsys.models.explain` for the definitions.

        Parameters
        ----------
        user_id, item_id : hashable
            A known user and a known item, rated or not.
        n : int
            Most rows of a table; the sums are those of all contributions.
        labels : mapping or Series, optional
            Item id to name, such as a title, to be shown beside the ids.

        Raises
        ------
        UnknownIdError
            For ids that are not in the model; `partial_fit` takes new ones in.
        ParameterError
            For models with `transforms` or `tv_reg`, which tie a user to all others.

        Examples
        --------
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> ratings[0, 0] = np.nan
        >>> settings = {"solver": "adam", "n_factors": 2, "weight_decay": 0.5, "n_batches": 1, "n_epochs": 300}
        >>> model = AIR.for_ratings(**settings, random_state=0, device="cpu").fit(ratings)
        >>> found = model.explain(0, 0)
        >>> found.score > found.mean + found.user_bias + found.item_bias
        True
        >>> sorted(found.items["item"][:3].tolist())
        [1, 2, 3]
        """
        return explain(self, user_id, item_id, n, labels)

    # ---------------------------------------------------------------- similarities

    @cached_property
    def user_similarities_(self) -> SimilarityGraph | None:
        """`user_graph_`, joined with the pattern of who rated what where `pattern_graphs` says so."""
        return self._with_pattern(self.user_graph_, self.interactions_.to_csr())

    @cached_property
    def item_similarities_(self) -> SimilarityGraph | None:
        """`item_graph_`, joined with the pattern of who rated what where `pattern_graphs` says so."""
        return self._with_pattern(self.item_graph_, self.interactions_.to_csr().T)

    def _with_pattern(self, graph: SimilarityGraph | None, rated: sp.sparray) -> SimilarityGraph | None:
        if graph is None or not self.pattern_graphs:
            return graph
        share = LEARNED_SHARE if self._spread is None else _SEES_PATTERN
        return SimilarityGraph(with_pattern(graph.to_scipy(), rated, share=share), graph.ids, graph.kind)

    def _keep(self, data: Interactions, objective: Objective, scaling: Scaling, result: Result) -> None:
        self._set_factors(self.current_factors())
        final = [laplacian.adjacency() for laplacian in objective.laplacians]
        self.user_graph_, self.item_graph_, self.transform_graphs_ = snapshot(objective, data, final)
        self.snapshots_ = {epoch: snapshot(objective, data, kept) for epoch, kept in result.snapshots.items()}
        self.history_ = history(result.records)
        self.n_iter_, self.stopped_by_ = result.kept_epoch, result.stopped_by

    # ---------------------------------------------------------------- files

    def _saved_parameters(self, data: Interactions) -> dict[str, Any]:
        saved = super()._saved_parameters(data)
        if "transforms" in saved:
            shape = data.n_users, data.n_items
            numbers = [
                entry[1:] if entry.n_neighbors is not None else entry[1:2]
                for entry in parse_transforms(self.transforms, shape)
            ]
            names = [_name_of(transform) for transform, *_ in self.transforms]
            saved["transforms"] = [(name, *rest) for name, rest in zip(names, numbers, strict=True)]
        if "snapshot_epochs" in saved:
            saved["snapshot_epochs"] = [int(epoch) for epoch in self.snapshot_epochs]
        return saved

    def _compared_parameters(self, data: Interactions) -> dict[str, Any]:
        """Return what a training has to have in common with a checkpoint that it goes on from, as JSON can hold it."""
        return self._saved_parameters(data)

    def _after_load(self) -> None:
        self.transforms = tuple(tuple(entry) for entry in self.transforms)
        self.snapshot_epochs = tuple(self.snapshot_epochs)
        self.snapshots_ = {}

    # ---------------------------------------------------------------- checks

    @property
    def _clips(self) -> bool:
        return self.clip

    def _learns_from_constant(self) -> bool:
        return self.unobserved_weight > 0

    def _check_parameters(self, data: Interactions) -> None:
        check_parameters(self, data, self._given_validation)
        check_memory(self, data)
        self._keeping.open(self, data, self._given_validation)


def preset(name: str, **overrides: Any) -> AIR:
    """Return the model of a preset by its name, a key of `PRESETS`."""
    check_choice("preset", name, list(PRESETS))
    return AIR(**PRESETS[name] | overrides)


def _name_of(transform: Any) -> str:
    """Return how a file names a transform: code is not saved, so a function has to be given again before a refit."""
    if isinstance(transform, str):
        return transform
    return f"function {getattr(transform, '__qualname__', type(transform).__name__)}"
