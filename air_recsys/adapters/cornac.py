"""Cornac: AIR as a recommender for its experiments, searches and nearest-neighbour indexes, and `AIR.for_likes`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.adapters._cornac import CornacRanker, RanksTies, Triples, raw_ids, triples_of
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.metrics import rmse
from air_recsys.models.air import AIR
from air_recsys.models.given import with_similarities
from air_recsys.models.learned import Factors
from air_recsys.models.solvers import AUTO, Solver, solver_for
from air_recsys.storage.validation import check_integer, check_real, needs_extra
from air_recsys.training import Record

with needs_extra("cornac"):
    from cornac.data import Dataset
    from cornac.models.recommender import MEASURE_DOT, ANNMixin

__all__ = ["CornacAIR", "CornacRanker"]

_OWN = ("n_factors", "graph_neighbors", "device", "solver", "verbose", "random_state")
_OF_SOLVERS = (
    *("n_sweeps", "pattern_features"),
    *("n_epochs", "learning_rate", "weight_decay", "bias_decay", "depth", "evaluate_every"),
)


@dataclass(eq=False, repr=False)
class CornacAIR(RanksTies, ANNMixin):
    r"""AIR with Cornac's interface of a recommender; the defaults are those of `AIR.for_ratings`.

    The score of a pair is :math:`s_{ui} = \mu + b_u + c_i + p_u \cdot q_i`, in the unit of the ratings and not
    clipped; `rate` clips it to the range of the training ratings. `rate`, `rank`, `recommend`, `clone`, `save` and
    `load` are Cornac's own: they rank by the expected rating, which makes poorer lists than `model_.recommend`, by
    taking and liking. For experiments with metrics of lists take `CornacRanker`.

    Parameters
    ----------
    name : str
        Row of the model in the tables of an experiment.
    n_factors, graph_neighbors, device
        Those of `air_recsys.AIR`.
    solver : {"auto", "variational", "langevin", "adam"} or an object of `air_recsys.models.solvers`
        That of `air_recsys.AIR`. "auto" is the preset's "variational", scores of a posterior, and "adam", trained
        scores, for ``n_factors=None`` and for a parameter that "adam" alone reads; `model_.solver` is the choice.
    n_sweeps, pattern_features, n_epochs, learning_rate, weight_decay, bias_decay, depth, evaluate_every
        The first two are those of a posterior, the others those of `air_recsys.solvers.Adam`. None is the preset's
        value.
    air_params : dict, optional
        Other parameters of `air_recsys.AIR` and of its solver, for instance ``{"schedule": "cooldown"}``.
    early_stopping : dict, optional
        As in Cornac's own models, ``{"min_delta": 0.0, "patience": 5}``: training stops after `patience` validations,
        one a sweep or every `evaluate_every` epochs, without a gain of at least `min_delta` in `monitor_value`. The
        state kept is that of the lowest RMSE on the validation set, graphs included.
    trainable : bool
        If False, `fit` keeps the learned state, as after `load`.
    verbose : bool
        Show a progress bar.
    seed : int, RandomState or None
        Source of the start; the same seed gives the same model.

    The features of the modalities ``user_feature`` and ``item_feature`` (`cornac.data.FeatureModality`) of an
    experiment enter the prior of users and items, see `Interactions.with_features`; so do the graphs of the modalities
    ``user_graph`` and ``item_graph`` (`cornac.data.GraphModality`), in which an edge of either direction joins two
    nodes, see `AIR.fit`.

    Attributes
    ----------
    model_ : AIR
        The trained model, with Cornac's raw ids: its graphs, `similar_items`, `recommend`, `save` in a file without
        pickle. Further training of it does not change the scores in Cornac.
    best_epoch, stopped_epoch : int
        Epochs or sweeps of early stopping; `stopped_epoch` is 0 if it did not stop the training.

    Raises
    ------
    DataError, ParameterError
        By `fit`; the message says what was expected and what was found. Also for a parameter that the `solver` does
        not read.

    Notes
    -----
    The contract is that of `cornac.models.Recommender`, Cornac 3.0.

    Examples
    --------
    >>> from cornac.data import Dataset
    >>> likes = {"ann": "abc", "bob": "abd", "eve": "cde", "joe": "bde"}
    >>> triples = [(user, item, 5.0 if item in "ab" else 2.0) for user, items in likes.items() for item in items]
    >>> model = CornacAIR(n_factors=2, n_sweeps=20, device="cpu", seed=0).fit(Dataset.from_uir(triples))
    >>> sorted(model.recommend("eve", k=2))
    ['a', 'b']
    >>> model.score(0).shape  # user 0 and all five items
    (5,)
    >>> model.model_.item_graph_.ids.tolist()
    ['a', 'b', 'c', 'd', 'e']
    """

    name: str = "AIR"
    n_factors: int | str | None = "auto"
    graph_neighbors: int | str | None = 20
    device: str = "auto"
    solver: str | Solver = AUTO
    n_sweeps: int | None = None
    pattern_features: int | None = None
    n_epochs: int | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    bias_decay: float | None = None
    depth: int | None = None
    evaluate_every: int | None = None
    air_params: dict[str, Any] | None = None
    early_stopping: dict[str, Any] | None = None
    trainable: bool = True
    verbose: bool = False
    seed: int | np.random.RandomState | None = None

    def __post_init__(self) -> None:
        super().__init__(name=self.name, trainable=self.trainable, verbose=self.verbose)
        self._factors: Factors | None = None

    def fit(self, train_set: Dataset, val_set: Dataset | None = None) -> Self:
        """Train on the ratings of `train_set`; a second call trains anew.

        Parameters
        ----------
        train_set : cornac.data.Dataset
        val_set : cornac.data.Dataset, optional
            Used by early stopping only.
        """
        _check_early_stopping(self.early_stopping)
        if not self.trainable:
            self._check_learned_from(train_set)
        model = self._new_model()
        super().fit(train_set, val_set)
        if self.trainable:
            self._train(model)
        return self

    def _new_model(self) -> AIR:
        of_solver = {name: getattr(self, name) for name in _OF_SOLVERS if getattr(self, name) is not None}
        given = of_solver | _checked_params(self.air_params)
        own = {name: getattr(self, name) for name in ("n_factors", "graph_neighbors", "device", "verbose")}
        solver = solver_for(own | given, self.solver)
        return AIR.for_ratings(**own, **given, solver=solver, random_state=self.seed)

    def _train(self, model: AIR) -> None:
        self.is_fitted, self._factors = False, None  # the state after a training that fails
        self.model_ = model
        data = _interactions(self.train_set, triples_of(self.train_set))
        pairs = self._trained_pairs(self.val_set)
        watched = self.early_stopping is not None
        held_out = _interactions(self.train_set, pairs) if watched and pairs is not None else None
        try:
            model.fit(data, validation=held_out, callbacks=[self._stops(model)] if watched else [])
        finally:
            self._factors = None  # not those of the last moment of the training
        self._factors = model.factors_
        self.is_fitted = True

    def _stops(self, model: AIR) -> Callable[[Record], bool]:
        def stop(record: Record) -> bool:
            self._factors = model.current_factors()
            self.current_epoch = record.epoch - 1  # Cornac adds one at every call
            return self.early_stop(self.train_set, self.val_set, **(self.early_stopping or {}))

        return stop

    def monitor_value(self, train_set: Dataset, val_set: Dataset | None) -> float | None:
        """Minus the RMSE of `score` on the pairs of `val_set` with trained ids, which early stopping maximises.

        None without such pairs. While `fit` runs, the scores are those of the moment, so that a subclass can monitor
        another metric by Cornac's `ranking_eval`.
        """
        pairs = self._trained_pairs(val_set)
        if pairs is None:
            return None
        users, items, ratings = pairs
        factors = self._fitted_factors()
        return -rmse(ratings, factors.scores(users, items))

    def _trained_pairs(self, val_set: Dataset | None) -> Triples | None:
        if val_set is None:
            return None
        users, items, ratings = triples_of(val_set)
        trained = (users < self.num_users) & (items < self.num_items)
        return (users[trained], items[trained], ratings[trained]) if trained.any() else None

    def _check_learned_from(self, train_set: Dataset) -> None:
        factors, data = self._fitted_factors(), self.model_.interactions_
        n_users, n_items = len(factors.user_factors), len(factors.item_factors)
        if raw_ids(train_set) != (data.user_ids[:n_users].tolist(), data.item_ids[:n_items].tolist()):
            raise DataError(
                f"{self.name} has trainable=False and knows {n_users} users and {n_items} items; expected a train_set "
                f"with the same ids in the same order, found {train_set.num_users} users, {train_set.num_items} items"
            )

    def score(self, user_idx: int, item_idx: int | None = None) -> Any:
        """The score of a user for one item, or for all items of the training data.

        Parameters
        ----------
        user_idx, item_idx : int
            Cornac's indices, not the raw ids.

        Returns
        -------
        float or ndarray, shape (num_items,)

        Raises
        ------
        ScoreException
            For a user or an item that is not in the training data; `rate` and `rank` then take `default_score`,
            the mean training rating.
        """
        users, items, user_biases, item_biases, mean = self._fitted_factors()
        self.check_known(user_idx, item_idx)
        own = users[user_idx].astype(np.float64)  # in single precision equal items would differ by rounding
        carried = self.model_.carried_ if self.is_fitted else None
        if item_idx is None:
            scores = items.astype(np.float64) @ own + item_biases + (user_biases[user_idx] + mean)
            return scores if carried is None else scores + carried.rows(np.array([user_idx]))[0]
        score = items[item_idx] @ own + item_biases[item_idx] + (user_biases[user_idx] + mean)
        return score if carried is None else score + carried.score(user_idx, item_idx)

    def _fitted_factors(self) -> Factors:
        if self._factors is None:
            raise self.not_trained()
        return self._factors

    def get_vector_measure(self) -> str:
        """Cornac's name of the dot product: the vectors rank as `score` does, but for what the item graph adds."""
        return MEASURE_DOT

    def get_user_vectors(self) -> np.ndarray:
        """The factors of the users and a one, shape (num_users, r + 1)."""
        factors = self._fitted_factors().user_factors
        return np.column_stack((factors, np.ones(len(factors), factors.dtype)))

    def get_item_vectors(self) -> np.ndarray:
        """The factors of the items and their bias, shape (num_items, r + 1)."""
        factors = self._fitted_factors()
        return np.column_stack((factors.item_factors, factors.item_biases))


def _interactions(train_set: Dataset, triples: Triples) -> Interactions:
    """Ratings with the features of Cornac's modalities, where the experiment has some."""
    data = Interactions(*triples, *raw_ids(train_set), allow_negative=True)
    user, item = (
        _features(train_set, f"{side}_feature", size)
        for side, size in (("user", data.n_users), ("item", data.n_items))
    )
    data = data if user is None and item is None else data.with_features(user=user, item=item)
    graphs = _graph(train_set, "user_graph", data.n_users), _graph(train_set, "item_graph", data.n_items)
    return with_similarities(data, *graphs)


def _graph(train_set: Dataset, name: str, size: int) -> sp.csr_array | None:
    """The graph of a modality among the first nodes, which stand in the order of Cornac's indices."""
    modality = getattr(train_set, name, None)
    if modality is None:
        return None
    starts, ends, weights = np.asarray(modality.map_rid), np.asarray(modality.map_cid), np.asarray(modality.val)
    known = (starts < size) & (ends < size)
    directed = sp.csr_array((weights[known], (starts[known], ends[known])), shape=(size, size))
    return sp.csr_array(directed.maximum(directed.T))


def _features(train_set: Dataset, name: str, size: int) -> np.ndarray | None:
    """The first rows of the features of a modality, which stand in the order of Cornac's indices."""
    features = getattr(getattr(train_set, name, None), "features", None)
    if features is None:
        return None
    if len(features) < size:
        raise DataError(f"expected {name} with at least {size} rows, one per id, found {len(features)}")
    return np.asarray(features, dtype=np.float64)[:size]


def _checked_params(air_params: Any) -> dict[str, Any]:
    taken = (*_OWN, *_OF_SOLVERS)
    if air_params is not None and (not isinstance(air_params, Mapping) or set(air_params) & set(taken)):
        raise ParameterError(
            "air_params must be a dict of parameters of AIR and its solvers that are not parameters of CornacAIR "
            f"({', '.join(taken)}), found {air_params!r}"
        )
    return dict(air_params or {})


def _check_early_stopping(rule: Any) -> None:
    if rule is None:
        return
    if not isinstance(rule, Mapping) or not set(rule) <= {"min_delta", "patience"}:
        raise ParameterError(f"early_stopping must be None or a dict with min_delta and patience, found {rule!r}")
    check_real("min_delta of early_stopping", rule.get("min_delta", 0.0))
    check_integer("patience of early_stopping", rule.get("patience", 0))
