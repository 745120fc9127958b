"""`GraphRanker`: lists of items from interactions alone, by a regression of the items and trained factors."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.ids import asked_ids
from air_recsys.data.interactions import Interactions, Kinds, is_matrix, with_features
from air_recsys.data.likes import DISLIKED, as_likes
from air_recsys.exceptions import DataError, DataWarning, NotFittedError, ParameterError, ParameterWarning, quoted
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.cooccurrence import cooccurrence_neighbors
from air_recsys.metrics.checks import Csr
from air_recsys.models.base import Recommender, check_no_y
from air_recsys.models.content import Content
from air_recsys.models.engines.likes import LikesMemory
from air_recsys.models.engines.protocol import check_memory, naming_what_fits, parse_size
from air_recsys.models.explain import Labels
from air_recsys.models.forgetting import Left
from air_recsys.models.graph_ranker import regression
from air_recsys.models.graph_ranker.explanation import ListExplanation, explain
from air_recsys.models.graph_ranker.factors import FactorTraining, user_factors
from air_recsys.models.graph_ranker.hidden import N_WINDOWS, POWERS, VALIDATIONS, HiddenPart, hidden_parts
from air_recsys.models.graph_ranker.inputs import (
    RankerSettings,
    check_settings,
    counted,
    interaction_pattern,
    interaction_times,
    interaction_values,
    own_items,
    rows_of_some,
    some_users,
)
from air_recsys.models.graph_ranker.progress import Progress, progress_of
from air_recsys.models.graph_ranker.selection import MOST_SEARCHED, Search, Selection, members_of
from air_recsys.models.graph_ranker.users import (
    of_likes,
    of_new_items,
    of_new_users,
    ready_state,
    settings_of,
    with_content,
    with_likes,
    without_likes,
)
from air_recsys.models.learned import Factors
from air_recsys.models.new_rows import new_rows
from air_recsys.models.pairs import Unknown, asked_pairs, list_ndcg, pair_indices
from air_recsys.models.partial_fit import check_rows
from air_recsys.models.ranking.allowed import allowed_items, list_length
from air_recsys.models.ranking.lists import most_liked, recommend_with, shares_of_users
from air_recsys.models.rows import SIDES, Side
from air_recsys.models.state import FittedState, lock_of
from air_recsys.models.storage.fingerprint import fingerprint
from air_recsys.nn.devices import check_device_name, gpu_of, resolve_device
from air_recsys.nn.memory import MemoryPlan
from air_recsys.storage.threads import one_thread, threads, warn_of_many
from air_recsys.storage.validation import check_choice, check_real, choice, integer, real, warn_of_unread
from air_recsys.training import Callback, check_callbacks
from air_recsys.training.checkpoint import HeldCheckpoint, check_paths
from air_recsys.training.ranks import ALONE, Ranks
from air_recsys.training.softmax import SoftmaxTraining

Path = str | os.PathLike[str]
_NEIGHBORS = 20  # edges that each item chooses in the graph that its target is spread over
_FEW = regression.MOST_EXACT  # items that gain nothing by that graph
_STEPS_OF_A_PASS = 16  # over the users, as far as a step then takes neither few nor many of them
_FEWEST_ROWS, _MOST_ROWS = 256, 1024
_BLOCK_ENTRIES = 8_000_000  # scores held at a time
_USER_EDGES, _ITEM_EDGES = 100, 500  # that each node chooses in the graphs that people see
_ITEM_POWER = 1.15  # of the weights of that of the items


@dataclass(eq=False, repr=False)
class GraphRanker(Recommender):
    r"""Rank items by a regression of the items on each other and by trained factors.

    .. math:: s_u = \lambda_r \frac{r_u D^{-b} H D^{-c}}{|\cdot|} + \lambda_f \frac{\exp(Q p_u / \tau)}{|\cdot|}

    with R the pattern of interactions, H the ridge regression of its items (in
    `air_recsys.models.graph_ranker.regression`), factors Q of the items and p of the users (`air_recsys.nn.softmax`),
    and each term divided by its length. The factors start from singular vectors and are trained by the softmax over
    all items, those of more than 4096 items over their graph (`air_recsys.models.graph_ranker.factors`); a user's are
    made of its items. Rows and columns of R are divided by powers of their numbers of interactions, because the best
    weight of popularity differs from data set to data set. These powers, the penalty of the regression, the
    temperature and the weights are selected by `fit` on hidden parts of the interactions, see `validation`. The
    geometric mean of NDCG decides. With more than two million interactions, `fit` searches on those of some users,
    drawn at random.

    With times, items that gain interactions may count more in regression and factors (`item_trend`), and later items
    of a user more than earlier ones (`user_half_life`), see `air_recsys.models.graph_ranker.inputs`.

    Parameters
    ----------
    n_factors : int
        Width of the factors; at most as many as there are users or items.
    n_steps : int
        Most steps of the training of the factors, each on a sixteenth of the users, 256 to 1024. The search stops it
        earlier where more steps make no better lists on the hidden parts; with `settings` all steps are taken.
    settings : mapping, optional
        `RankerSettings` by name, others at their defaults. With it `fit` hides and chooses nothing.
    time_budget : float, optional
        Approximate limit of `fit` in seconds. The settings of the regression are tried for four tenths of it, and
        factors are left out if even short trainings would take longer than the rest. The choice then depends on the
        speed of the machine. None: no limit.
    validation : {"auto", "random", "users", "last", "time"}
        What is hidden to choose the settings. "random": a fifth of each user's interactions, which count in three
        ways, all alike, popular items more, and rare items more, because such data do not show how popularity will
        count in the future. "time": each of the latest three fifths of all, of users and items that occur before, with
        what is earlier left; `item_trend` is chosen, too. "last": the latest fifth of each user's; `item_trend` and
        `user_half_life` are chosen, too. "users": for lists of new users, a tenth of the users takes no part in the
        trainings of the search, and a fifth of their interactions is hidden and counts in the three ways. "auto":
        "time" with timestamps, else "random". If timestamps are all equal, or fewer than ten users come again or can
        be held out, parts are hidden at random. `search_line_` says what was hidden.
    n_validation : int
        Maximum number of users whose lists are compared on each hidden part, three times as many on a random one.
    random_state : int
        Seed of what is hidden, of the singular vectors, and of the order of the users in training.
    device : str
        Where the factors are trained: "cpu", "cuda", ..., or "auto", the GPU where there is one.
    target : str, optional
        The kind of events that lists are for, such as "purchase" where a column ``kind`` has views, carts and
        purchases. How much events of other kinds count is learned on hidden ones of the target, and said in
        `search_line_`: pairs are hidden with all of their events. Lists leave out what users have of the target alone.
    liked : float, optional
        The least rating that is a like, such as 4, or 1 of thumbs of 1 and -1. Those below are events of the kind
        "disliked", which lists leave out. None: each row is a like.
    max_memory : int or str, optional
        Bytes, or text such as "8GB": a fit that would take more, see `memory_plan`, is an error before any work. None:
        the memory of the machine.
    n_threads : int, optional
        Threads on the CPU, see `air_recsys.models.trained.TrainedRecommender`.

    Attributes
    ----------
    user_graph_, item_graph_ : SimilarityGraph
        The strongest co-occurrences, 100 edges a user and 500 an item, for inspection: they take no part in scores.
    user_factors_, item_factors_ : ndarray
        Vectors of length 1; a score is not just their product. Singular vectors if factors have no weight.
    settings_ : RankerSettings
    n_steps_ : int
        Steps of the training of the factors, chosen on the hidden parts; 0 if factors have no weight.
    history_ : DataFrame
        Every setting tried, with the steps of the factors, and with NDCG and recall of its lists of 20, geometric
        means over the hidden parts or the three ways, and the NDCG of each; in the last row the one chosen.
    members_ : DataFrame
        The best results of regression, factors, and both together, from `history_`.
    search_line_ : str
        The choice and its reason, in one line.

    Raises
    ------
    ParameterError
        At `fit`, for a parameter out of its range.
    DataError
        At `fit`, if `validation` or `settings` need timestamps and there are none.
    DeviceError
        If a GPU is asked for by name and there is none.
    MemoryLimitError
        At `fit`, before any work, if it needs more than `max_memory`.

    Notes
    -----
    Values say how much: `weights` where there are any, else ratings, in a table a column "weight", "plays", "hours" or
    the like. How they count, and whether they do, is the last that the search chooses for the regression, and holds
    for the factors: `strength`, see `air_recsys.models.graph_ranker.inputs.strengths`. Where values differ, an item of
    value v in a list on hidden parts gains :math:`\log(1 + v / m)` of the NDCG, with m the median of those shown; else
    1. A 0 in a sparse or dense matrix is no interaction. In a long table and in `Interactions` each row is one, also
    with a value of 0.

    Scores order the items of a user. They are not ratings, and cannot be compared between users; `predict_proba` can.

    Sources: Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019 (regression); Wu et al., BSL:
    Understanding and Improving Softmax Loss for Recommendation, ICDE 2024 (loss of the factors); Fu et al., Revisiting
    Neighborhood-based Link Prediction for Collaborative Filtering, WWW 2022 (exponents of degrees).

    Examples
    --------
    >>> seen = np.array([[1, 1, np.nan, np.nan], [1, 1, 1, np.nan], [np.nan, np.nan, 1, 1]])
    >>> GraphRanker(settings={}, device="cpu").fit(seen).recommend(0, n=1)["item"].tolist()
    [2]
    """

    n_factors: int = integer(128, minimum=1)
    n_steps: int = integer(150, minimum=1)
    settings: Mapping[str, float] | None = None
    time_budget: float | None = real(None, strict=True, besides=(None,))
    validation: str = choice("auto", VALIDATIONS)
    n_validation: int = integer(1000, minimum=1)
    random_state: int = integer(0, maximum=2**32 - 1)
    device: str = "auto"
    target: str | None = None
    liked: float | None = None
    max_memory: int | str | None = None
    n_threads: int | None = integer(None, minimum=1, besides=(None,))

    reads_features = True

    def check_parameters(self) -> None:
        """Raise `ParameterError` for a parameter that is out of its range, whatever the data and the machine."""
        super().check_parameters()
        check_device_name(self.device)
        self._read_by()
        if self.max_memory is not None:
            parse_size(self.max_memory)
        if self.settings is None:
            return
        for name, default in {"time_budget": None, "validation": "auto", "n_validation": 1000}.items():
            if getattr(self, name) != default:
                warn_of_unread(name, getattr(self, name), "settings=None")
        check_settings(self.settings)

    def fit(
        self,
        interactions: Any,
        y: None = None,
        *,
        callbacks: Iterable[Callback] = (),
        checkpoint: Path | None = None,
        every: int = 50,
        resume_from: Path | None = None,
        user_features: Any = None,
        item_features: Any = None,
    ) -> Self:
        """Train on interactions and return the model; see `Recommender.fit`.

        With `checkpoint`, Ctrl-C ends the fit after the next step of the factors or the next setting of the search:
        the checkpoint is written, and `KeyboardInterrupt` is raised. The model does not change. A second Ctrl-C
        interrupts at once. SIGTERM and SIGHUP do the same with `SystemExit`, with status 143 and 129.

        Parameters
        ----------
        interactions : Interactions, sparse matrix, DataFrame or ndarray
        y : None
        callbacks : iterable of callable
            Called with each `air_recsys.training.Record` of the training that follows the search, every ten steps of
            the factors; `objective` is the mean loss since the last one. If one returns True, the training stops.
        checkpoint : path, optional
            File that keeps the state of search and training, replaced in one step each time.
        every : int
            Steps of the factors between two checkpoints. Each setting of the regression, each measured number of
            steps, the end of the search and that of the training have one as well.
        resume_from : path, optional
            Checkpoint to resume from, with the same data and parameters. What the search has found is not searched
            again. The result equals that of an uninterrupted fit, to the bit on a CPU.
            The seconds before the checkpoint count for `time_budget`.
        user_features, item_features : DataFrame, ndarray or SciPy sparse, optional
            Features of users and items, see `Interactions.with_features`; the data may also have them already. Scores
            of users and items with likes are the same without. Items without likes enter the lists of all users, and
            users without likes get lists, by features, see `air_recsys.models.content`: both become part of the model.

        Raises
        ------
        CheckpointError
            Before any work, if a checkpoint cannot be read or written, belongs to other data or parameters, or is in
            use by another training. Later, if one cannot be written; the model then does not change.
        DivergenceError
            If the factors diverge; the model then does not change.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> seen = np.array([[1, 1, np.nan, np.nan], [1, 1, 1, np.nan], [np.nan, np.nan, 1, 1]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "run.ckpt"
        ...     whole = GraphRanker(settings={}, device="cpu").fit(seen, checkpoint=file)
        ...     again = GraphRanker(settings={}, device="cpu").fit(seen, resume_from=file)  # nothing is left to do
        >>> np.array_equal(whole.item_factors_, again.item_factors_)
        True
        >>> likes = np.kron(np.eye(2), np.ones((3, 4)))
        >>> likes[0, 0] = 0
        >>> films = pd.DataFrame({"war": [1, 1, 1, 1, 0, 0, 0, 0, 1, 0]}, index=[*range(10)])  # two of them are new
        >>> model = GraphRanker(settings={}, device="cpu").fit(likes, item_features=films)
        >>> model.recommend([0, 5], n=1, items=[8, 9])["item"].tolist()
        [8, 9]
        """
        check_no_y(y)
        listed = check_callbacks(callbacks)
        data = self.checked_data(interactions)
        if user_features is not None or item_features is not None:
            data = with_features(data, user_features, item_features, stacklevel=2)
        _check_kinds(data, self.target, self.liked)
        if data.kinds is not None and self.settings is None:
            _tell_what_cannot_be_learned(data, data.kinds)
        check_paths(checkpoint=checkpoint, resume_from=resume_from)
        mark: dict[str, Any] = {}
        if checkpoint is not None or resume_from is not None:
            mark = self.fingerprint(data)
        warn_of_many(self.n_threads, stacklevel=3)
        check_memory(self.planned(data), data, self.max_memory, "cpu")  # a GPU holds the factors alone
        return self.train_by(data, HeldCheckpoint(mark, checkpoint, every, resume_from), listed)

    def fingerprint(self, data: Interactions) -> dict[str, Any]:
        """The digests of the data and the parameters of a training, as JSON holds them."""
        return fingerprint(type(self).__name__, self.saved_parameters(), data, timed=data.timestamps is not None)

    def train_by(
        self, data: Interactions, file: HeldCheckpoint, callbacks: list[Callback], ranks: Ranks = ALONE
    ) -> Self:
        """Search and train on checked data, by this process or with other ones, and return the model."""
        planned = self.planned(data)
        with (
            progress_of(file, self.time_budget) as progress,
            lock_of(self),
            naming_what_fits(planned, data),
            threads(self.n_threads),
            one_thread(),  # what is not shared out: bits follow no number of threads, and none of them spins
        ):
            found = self._learned(of_likes(data), progress, callbacks, ranks)
            self._state = with_content(found, data, self.random_state) if any(data.n_features) else found
        return self

    def memory_plan(self, interactions: Any) -> MemoryPlan:
        """The bytes that `fit` on these interactions will take at its peak, beside the interactions.

        Examples
        --------
        >>> GraphRanker().memory_plan(np.eye(1000)).total < 1e9
        True
        """
        data = self.as_data(interactions)
        return self.planned(data).memory_plan(data)

    def planned(self, data: Interactions) -> LikesMemory:
        """What plans the memory of a fit."""
        by_time = self.validation == "time" or (self.validation == "auto" and interaction_times(data) is not None)
        n_parts = 0 if self.settings is not None else N_WINDOWS if by_time else 1
        n_ways = 1 if by_time or self.validation == "last" else len(POWERS)
        regresses = RankerSettings(**dict(self.settings or {})).regression_weight > 0
        return LikesMemory(self.n_factors, n_parts, self.n_validation, n_ways, regresses, _NEIGHBORS)

    def _learned(self, data: Interactions, progress: Progress, callbacks: list[Callback], ranks: Ranks) -> FittedState:
        selected = self._selected(data, progress, ranks)
        settings = selected.settings
        if data.kinds is not None:
            kinds, data = data.kinds._replace(worths=selected.worths), copy.copy(data)
            data.kinds = kinds
        pattern = counted(data, settings)
        training = self._training(pattern, selected.n_steps > 0, ranks)
        factors = progress.trained(training, selected.n_steps, callbacks)
        users = user_factors(own_items(pattern, data, settings), factors.sources)
        return FittedState(
            data,
            Factors(users, factors.targets, np.zeros(data.n_users), np.zeros(data.n_items), 0.0),
            history=selected.table(),
            chosen=selected.fitted(training.step, self.n_steps),
            item_weights=regression.item_weights(pattern, settings, ranks) if settings.regression_weight else None,
            source_factors=factors.sources,
            calibration=selected.calibration,
        )

    def _training(self, pattern: Csr, spread: bool = True, ranks: Ranks = ALONE) -> FactorTraining:
        """The training of the factors of a pattern."""
        n_rows = min(max(pattern.shape[0] // _STEPS_OF_A_PASS, _FEWEST_ROWS), _MOST_ROWS)
        training, device = SoftmaxTraining(self.n_steps, batch_rows=n_rows), resolve_device(self.device)
        n_neighbors = _NEIGHBORS if spread and pattern.shape[1] > _FEW else 0
        return FactorTraining(pattern, self.n_factors, training, self.random_state, device, n_neighbors, ranks)

    def _selected(self, data: Interactions, progress: Progress, ranks: Ranks) -> Selection:
        """The settings and the number of steps, given or selected, and all that was tried."""
        given: dict[str, Any] = dict(self.settings or {})
        by_default = RankerSettings(**given)
        unsearched = Selection(by_default, self.n_steps if by_default.factor_weight else 0, [])
        _check_times(data, by_default)
        if self.settings is not None:
            return unsearched
        if progress.selected is not None:
            return Selection.of_row(progress.selected, progress.history)
        parts = self._hidden_parts(data)
        if not parts[0].hidden.nnz:  # no user has interactions to spare
            return unsearched
        found = Search(parts, self._training, self.random_state, self.n_validation, progress, ranks).best()
        if not found.history:
            warnings.warn(
                f"time_budget={self.time_budget:g} is too short to try anything: the regression keeps its defaults",
                ParameterWarning,
                stacklevel=4,
            )
        progress.has_selected(found.kept())
        return found

    def _hidden_parts(self, data: Interactions) -> list[HiddenPart]:
        if self.validation in ("last", "time") and data.timestamps is None:
            raise DataError(f"validation={self.validation!r} needs interactions with timestamps, found none")
        seed, times = self.random_state, None if self.validation in ("random", "users") else interaction_times(data)
        values = interaction_values(data)
        pattern = some_users(values, seed, MOST_SEARCHED)
        searched = None if times is None else some_users(times, seed, MOST_SEARCHED)
        parts = hidden_parts(pattern, searched, self.validation, seed)
        if data.kinds is None:
            return parts
        rows = slice(None) if values.nnz <= MOST_SEARCHED else rows_of_some(values, seed, MOST_SEARCHED)

        def seen(each: Interactions) -> tuple[Csr, Csr | None]:
            moments = None if times is None else each.times_to_csr()
            return interaction_values(each)[rows], None if moments is None else moments[rows]

        events = {name: seen(each) for name, each in data.kinds.beside.items()}
        return [part.beside(events) for part in parts]

    @property
    def settings_(self) -> RankerSettings:
        """What was given or selected."""
        return settings_of(self._fitted())

    @property
    def n_steps_(self) -> int:
        """Steps of the training of the factors; 0 where they have no weight."""
        return int(self._fitted().chosen.values["n_steps"])

    @property
    def members_(self) -> pd.DataFrame:
        """What the best of each choice of terms reached on the hidden parts; empty where nothing was searched."""
        return members_of(self._fitted().history.iloc[:-1])

    @property
    def search_line_(self) -> str:
        """What was selected and why."""
        state = self._fitted()
        if self.liked is None or state.data.kinds is None:
            return state.chosen.line
        n_likes = state.data.n_ratings
        share = n_likes / (n_likes + state.data.kinds.beside[DISLIKED].n_ratings)
        return f"like: rating >= {self.liked:g} ({100 * share:.0f} % of the ratings); {state.chosen.line}"

    def restored(self, state: FittedState, arrays: Mapping[str, np.ndarray]) -> FittedState:
        """The state of a file, completed by what only this class knows of it."""
        settings, _ = settings_of(state), int(state.chosen.values["n_steps"])
        for side in SIDES:
            Content.of_values(side, state.chosen.values)
        for tried, _ in zip(state.history.to_dict("records"), state.history["ndcg"], strict=True):
            check_settings(RankerSettings.of_values({str(name): value for name, value in tried.items()})._asdict())
        if settings.user_half_life and state.data.timestamps is None:
            raise ValueError("expected the times that the settings ask for, found none")
        if settings.regression_weight and state.item_weights is None:
            raise ValueError("expected the weights of the regression that the settings ask for, found none")
        if state.source_factors is None:
            raise ValueError("expected the source factors of the items, found none")
        return state

    def learned_graph(self, state: FittedState, side: Side) -> SimilarityGraph:
        """The graph that was learned, in its own unit."""
        return state.once(f"{side} graph", lambda: _cooccurrences(state.data, side))

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The columns "timestamp" and "weight" of a table."""
        return "timestamp", "weight"

    def as_data(self, interactions: Any, **how: Any) -> Interactions:
        """The interactions that the model was given; `how` goes to `as_likes`."""
        return as_likes(interactions, timed=True, **self._read_by(), **how)

    def _read_by(self) -> dict[str, Any]:
        """What says how kinds and ratings are read, checked."""
        if self.liked is not None:
            check_real("liked", self.liked, minimum=-np.inf)
            if self.target is not None:
                raise ParameterError(f"expected target of events or liked of ratings, found both, liked={self.liked}")
        return {"target": self.target, "liked": self.liked}

    def score_pairs(
        self, state: FittedState, users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None
    ) -> np.ndarray:
        """The score of each pair of known indices, at a time where given."""
        return of_pairs(ready_state(state).scores, users, items, state.data.n_items)

    def unknown_scores(self, state: FittedState, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The share of the users who have the item, as for unknown users in lists; 0 for an unknown item."""
        return np.where(items >= 0, shares_of_users(state)[items], 0.0)

    def predict_proba(self, user_ids: Any, item_ids: Any, *, unknown: Unknown = "warn") -> np.ndarray:
        """The probability that each user takes each item next, in 0..1: it compares between users, as no score does.

        The training data are taken for four fifths of what each user takes, drawn at random: it is the probability
        that the pair, which is not among them, is in the missing fifth. Where `validation` hides by time, it is that
        of the next items of a user who comes again, as many as were hidden. `fit` finds it on such parts, see
        `air_recsys.models.ranking.calibration`: an item with a higher score of the same user has no lower one. A pair
        of the training data gets that of a new item with its score, an unknown user or item what `predict` gives.

        Parameters
        ----------
        user_ids, item_ids, unknown
            As in `predict`.

        Returns
        -------
        ndarray of float64, shape (n,)

        Raises
        ------
        NotFittedError
            If `fit` hid nothing, with `settings` or without interactions to spare, or ran in an older release.

        Examples
        --------
        >>> seen = np.kron(np.eye(2), np.ones((12, 8))) * (np.random.default_rng(0).random((24, 16)) < 0.7)
        >>> model = GraphRanker(n_factors=2, n_steps=6, device="cpu").fit(seen)
        >>> near, far = model.predict_proba(0, model.recommend(0, n=9)["item"].to_numpy()[[0, -1]])
        >>> bool(near > far)
        True
        """
        state = self._fitted()
        if state.calibration is None:
            raise NotFittedError(
                "predict_proba needs what fit finds on hidden parts, found a model without: fit it again with "
                f"settings=None (settings={self.settings!r:.40}) and interactions to spare"
            )
        users, items = pair_indices(state, *asked_pairs(user_ids, item_ids), unknown)
        ranker = ready_state(state)
        known = (items >= 0) & (users >= 0) & ranker.with_items()[users]
        found = self.unknown_scores(state, users, items)
        described = (items >= 0) & (users >= 0) & ~known & ranker.answered()[users]
        found[described] = of_pairs(ranker.scores, users[described], items[described], state.data.n_items).clip(0, 1)
        found[known] = of_pairs(ranker.probabilities, users[known], items[known], state.data.n_items)
        return found

    def score(self, test: Any, y: None = None) -> float:
        """The mean NDCG of lists of 10 unseen items on other interactions, for scikit-learn as `Recommender.score`.

        Values do not count. Unknown users and items, and pairs of the training data, are left out.

        Raises
        ------
        DataError
            If no pair is left.

        Examples
        --------
        >>> seen = np.array([[1, 1, np.nan, np.nan], [1, 1, 1, np.nan], [np.nan, np.nan, 1, 1]])
        >>> GraphRanker(settings={}, device="cpu").fit(seen).score([[0, 0, 1, 0], [0] * 4, [0] * 4])
        1.0
        """
        check_no_y(y)
        state, data = self._fitted(), as_likes(test, **{"allow_negative": True} | self._read_by())
        return list_ndcg(state, data, ready_state(state).listed_scores, test)

    def recommend(
        self,
        user_ids: Any,
        n: int = 10,
        exclude_seen: bool = True,
        *,
        items: Any = None,
        exclude: Any = None,
        device: str = "cpu",
    ) -> pd.DataFrame:
        """The best n items of each user, as `Recommender.recommend`.

        An unknown user, and one without any item, gets the items that most users have, scored by the share of the
        users who have them. On a GPU scores are those of the CPU up to rounding, and ties are the same.
        """
        check_choice("exclude_seen", exclude_seen, (True, False))
        place, state = gpu_of(device), self._fitted()
        asked = asked_ids(user_ids, "user")
        allowed = allowed_items(state.data.items, items, exclude, state.data.users, asked)
        length, ranker = list_length(n, allowed.n_left), ready_state(state)
        ranker = ranker if place is None else ranker._replace(scorers=ranker.scorers.on(place))

        def best(users: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            left_out = allowed.left_out(rows, ranker.seen(users) if exclude_seen else None)
            return ranker.best(users, length, left_out, allowed.common)

        popular, served = partial(most_liked, state, length), ranker.answered()
        how = {"allowed": allowed, "clips": False, "popular": popular, "served": served}
        return recommend_with(best, state, asked, length, **how)

    def explain(
        self, user_id: Hashable, item_id: Hashable, n: int = 10, *, labels: Labels | None = None
    ) -> ListExplanation:
        """What each item of a user adds to a score: contributions that sum to it.

        See `air_recsys.models.graph_ranker.explanation` for the definitions.

        Parameters
        ----------
        user_id, item_id : hashable
            A known user and a known item.
        n : int
            Maximum number of rows of the table; the sums include all items.
        labels : mapping or Series, optional
            Name of each item id, such as a title, which is shown beside the id.

        Raises
        ------
        UnknownIdError
            For ids that are not in the model; `fold_in` takes new users in.

        Examples
        --------
        >>> seen = np.array([[1, 1, np.nan, np.nan], [1, 1, 1, np.nan], [np.nan, np.nan, 1, 1]])
        >>> found = GraphRanker(settings={}, device="cpu").fit(seen).explain(0, 2)
        >>> found.items["item"].tolist(), bool(np.isclose(found.total(), found.score))
        ([1, 0], True)
        """
        state = self._fitted()
        user, item = state.data.users.place(user_id), state.data.items.place(item_id)
        ranker = ready_state(state)
        places = user, ranker.first + item, ranker.own[[user]]
        return explain(ranker.scorers, ranker.item_ids(), (user_id, item_id), places, n, labels)

    def fold_in(self, interactions: Any, *, side: Side = "user", features: Any = None) -> Self:
        """A model of new users (or items) alone, for all questions; this model does not change.

        It has the new users and all items of this model (with ``side="item"`` all users and the new items), and
        answers as this model would after `partial_fit`, without further steps of the factors. Its ids are its own:
        what this model knows of a user with the same id does not count. It is not saved, and takes nothing further in.
        See `air_recsys.models.graph_ranker.users`.

        Parameters
        ----------
        interactions : Interactions, DataFrame, or SciPy sparse
            Interactions and tables have the users by id, tables with or without a column of ratings; their items must
            be known. A matrix has one row per new user, with the ids 0, 1, ..., and one column per item of the model
            (with ``side="item"`` one row per new item and one column per user); a stored 0 is no interaction. Other
            values do not count. Without timestamps, all items of a new user count the same; of new items they are
            needed where the settings read them.
        side : {"user", "item"}
            What the new rows are.
        features : DataFrame or ndarray, optional
            Features of the new rows, as in `AIR.fold_in`, for models that were trained with features: rows without
            interactions, which may then be None, follow from them.

        Raises
        ------
        DataError, UnknownIdError
            If the interactions do not fit the model.
        ParameterError
            For a model of new rows.

        Examples
        --------
        >>> import pandas as pd
        >>> seen = np.array([[1, 1, np.nan, np.nan], [1, 1, 1, np.nan], [np.nan, np.nan, 1, 1]])
        >>> model = GraphRanker(settings={}).fit(seen)
        >>> new = pd.DataFrame({"user": ["eve", "eve"], "item": [0, 1], "rating": [1, 1]})
        >>> model.fold_in(new).recommend("eve", n=1)[["user", "item"]].values.tolist()
        [['eve', 2]]
        """
        check_choice("side", side, SIDES)
        state = self._fitted()
        data = new_rows(state, interactions, side, read=self.as_data, features=features, zeros_count=False)
        if self.liked is not None and data.kinds is None:
            data = as_likes(data, **self._read_by())
        if data.kinds is not None and state.data.kinds is not None:
            data.kinds = data.kinds._replace(worths=state.data.kinds.worths)
        if side == "item" and state.data.kinds is not None:
            raise DataError("expected new users, as partial_fit takes new items of events in, found side='item'")
        found = of_new_users(state, data) if side == "user" else of_new_items(state, data)
        return copy.copy(self).take_state(found)

    def partial_fit(self, interactions: Any, *, user_features: Any = None, item_features: Any = None) -> Self:
        """Take in new likes of known users, new users and new items, without a new training.

        A like counts in the next list. The regression of known items stays; a new item gets that on its strongest
        neighbours, and factors from those who have it. The factors take as many further steps as the share of the new
        likes is of those of the training, a single like none, see `air_recsys.models.graph_ranker.users`. Other
        threads read the old state or the new one.

        Parameters
        ----------
        interactions : Interactions, sparse matrix, DataFrame or ndarray
            As for `fit`; positions of a matrix are ids here too. A pair that is there already counts once.
        user_features, item_features : DataFrame, optional
            Features of new users and items, with the columns of `fit`, those without likes included.

        Raises
        ------
        DataError
            Before any change: for negative values, weights, and without timestamps where the settings need them.

        Examples
        --------
        >>> import pandas as pd
        >>> seen = np.array([[1, 1, np.nan, np.nan], [1, 1, 1, np.nan], [np.nan, np.nan, 1, 1]])
        >>> model = GraphRanker(settings={}, device="cpu").fit(seen)
        >>> _ = model.partial_fit(pd.DataFrame({"user": [0, 7, 7], "item": [2, 0, 9]}))
        >>> model.recommend([0, 7], n=1)["item"].tolist(), model.interactions_.n_items
        ([9, 1], 5)
        """
        self.check_fitted()
        data = self.checked_data(interactions)
        if is_matrix(interactions):
            check_rows(self._fitted(), data)
        with lock_of(self):
            self._state = with_likes(self._fitted(), data, user_features, item_features)
        return self

    def without(self, state: FittedState, left: Left) -> FittedState:
        """A state of what is left, see `air_recsys.models.graph_ranker.users`."""
        return without_likes(state, left)

    def to_faiss(self, metric: str = "inner_product", factory: str | None = None) -> Any:
        """Raise an error: these scores are not products of factors."""
        raise ParameterError(
            "the scores of a GraphRanker are not products of factors: expected recommend in place of to_faiss"
        )


def of_pairs(
    of_users: Callable[[np.ndarray], np.ndarray], users: np.ndarray, items: np.ndarray, n_items: int
) -> np.ndarray:
    """What a function of users has for each pair, which returns a value of all items for some, (b, n_items)."""
    different, place = np.unique(users, return_inverse=True)
    order = np.argsort(place, kind="stable")
    values, block = np.empty(users.size), max(1, _BLOCK_ENTRIES // n_items)
    for start in range(0, different.size, block):
        first, last = np.searchsorted(place[order], (start, start + block))
        pairs = order[first:last]
        values[pairs] = of_users(different[start : start + block])[place[pairs] - start, items[pairs]]
    return values


_FEW_EVENTS = 10  # of a target


def _check_kinds(data: Interactions, target: str | None, liked: float | None) -> None:
    """Raise `DataError` where a target is given, and there are no kinds, or no events of it."""
    if data.kinds is None:
        if target is not None:
            raise DataError(f"expected a table with a column kind, of which target={target!r} is one, found none")
        return
    if not data.n_ratings and liked is not None:
        raise DataError(f"expected ratings of {liked:g} or more (liked), found only lower ones")
    if liked is not None and not data.kinds.beside[DISLIKED].n_ratings:
        told = f"no dislikes found: all {data.n_ratings} ratings are {liked:g} or more"
        warnings.warn(told, DataWarning, stacklevel=3)
    if not data.n_ratings:
        raise DataError(
            f"expected events of the target {data.kinds.target!r}, found the kinds {quoted(list(data.kinds.beside))}"
        )


def _tell_what_cannot_be_learned(data: Interactions, kinds: Kinds) -> None:
    if data.n_ratings < _FEW_EVENTS:
        told = f"{data.n_ratings} pairs of {kinds.target!r} are too few to learn how much other events count"
        warnings.warn(told, DataWarning, stacklevel=3)
    for name, each in kinds.beside.items():
        if each.n_ratings and not np.isin(each.user_index, data.user_index).any():
            told = f"no user of {name!r} has a {kinds.target!r}: how much it counts cannot be learned"
            warnings.warn(told, DataWarning, stacklevel=3)


def _check_times(data: Interactions, settings: RankerSettings) -> None:
    if settings.user_half_life and data.kinds is not None:
        raise DataError("user_half_life in settings is for interactions of one kind, found several")
    for name in ("user_half_life", "item_trend"):
        if getattr(settings, name) and data.timestamps is None:
            raise DataError(f"{name} in settings needs interactions with timestamps, found none")


def _cooccurrences(data: Interactions, side: Side) -> SimilarityGraph:
    """The graph of users or of items as people see it: the data are all it needs."""
    pattern = interaction_pattern(data)
    if side == "user":
        return SimilarityGraph(cooccurrence_neighbors(pattern, _USER_EDGES), data.user_ids, side)
    edges = cooccurrence_neighbors(sp.csr_array(pattern.T), _ITEM_EDGES)
    edges.data = (edges.data.astype(np.float64) ** _ITEM_POWER).astype(np.float32)
    return SimilarityGraph(edges, data.item_ids, side)
