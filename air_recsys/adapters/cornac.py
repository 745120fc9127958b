"""Cornac: AIR as one of its recommenders, for its experiments, searches and nearest-neighbour indexes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from air_recsys.adapters.solver import AUTO, solver_for
from air_recsys.exceptions import DataError, NotFittedError, ParameterError
from air_recsys.interactions import Interactions
from air_recsys.metrics import rmse
from air_recsys.models.air import AIR
from air_recsys.models.base import Factors
from air_recsys.training import Record
from air_recsys.validation import check_integer, check_real, needs_extra

with needs_extra("cornac"):
    from cornac.data import Dataset
    from cornac.exception import ScoreException
    from cornac.models.recommender import MEASURE_DOT, ANNMixin, Recommender

Triples = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Indices of users, indices of items, ratings."""


class CornacAIR(Recommender, ANNMixin):
    r"""AIR behind Cornac's contract of a recommender; the defaults are those of `AIR.for_ratings`.

    The score of a pair is :math:`s_{ui} = \mu + b_u + c_i + p_u \cdot q_i`, in the unit of the ratings and not
    clipped; `rate` clips it to the range of the training ratings. `rate`, `rank`, `recommend`, `clone`, `save` and
    `load` are Cornac's own.

    Parameters
    ----------
    name : str
        Row of the model in the tables of an experiment.
    n_factors, depth, n_epochs, learning_rate, weight_decay, bias_decay, user_graph_reg, item_graph_reg
        Those of `air_recsys.AIR`.
    graph_neighbors, evaluate_every, device
        Those of `air_recsys.AIR`. A posterior knows only `n_factors`, `graph_neighbors` and `device`, and leaves out a
        graph whose strength is 0.
    solver : {"auto", "variational", "langevin", "adam"}
        That of `air_recsys.AIR`. "auto" is the preset's "variational", scores of a posterior, and "adam", trained
        scores, where `early_stopping` or ``n_factors=None`` is given, or in `air_params` ``biases=False``,
        ``center=False``, `transforms`, `tv_reg`, `unobserved_weight`, `patience` or `stopping_delta`; `model_.solver`
        says which.
    air_params : dict, optional
        Its other parameters, for instance ``{"schedule": "cooldown"}``.
    early_stopping : dict, optional
        As in Cornac's own models, ``{"min_delta": 0.0, "patience": 5}``: training stops after `patience` looks at the
        validation set, one every `evaluate_every` epochs, without a gain of at least `min_delta` in `monitor_value`.
        The state kept is that of the lowest RMSE on the validation set, graphs included. Only with trained scores.
    trainable : bool
        With False `fit` keeps what was learned before, as after `load`.
    verbose : bool
        Show a progress bar.
    seed : int, RandomState or None
        Source of the start; the same seed gives the same model.

    Attributes
    ----------
    model_ : AIR
        The trained model, with Cornac's raw ids: its graphs, `similar_items`, `recommend`, `save` in a file without
        pickle. Training it further does not change what Cornac sees.
    best_epoch, stopped_epoch : int
        Of early stopping, in epochs; `stopped_epoch` is 0 where it did not stop the training.

    Raises
    ------
    DataError, ParameterError
        By `fit`, with what was expected and what was found; also for a setting that the `solver` named cannot take.

    Notes
    -----
    The contract is that of `cornac.models.Recommender`, Cornac 3.0.

    Examples
    --------
    >>> from cornac.data import Dataset
    >>> likes = {"ann": "abc", "bob": "abd", "eve": "cde", "joe": "bde"}
    >>> triples = [(user, item, 5.0 if item in "ab" else 2.0) for user, items in likes.items() for item in items]
    >>> model = CornacAIR(n_factors=2, n_epochs=100, device="cpu", seed=0).fit(Dataset.from_uir(triples))
    >>> sorted(model.recommend("eve", k=2))
    ['a', 'b']
    >>> model.score(0).shape  # user 0 and all five items
    (5,)
    >>> model.model_.item_graph_.ids.tolist()
    ['a', 'b', 'c', 'd', 'e']
    """

    def __init__(
        self,
        name: str = "AIR",
        n_factors: int | str | None = "auto",
        depth: int = 2,
        n_epochs: int = 40,
        learning_rate: float = 0.05,
        weight_decay: float = 12.0,
        bias_decay: float = 1.0,
        user_graph_reg: float | str = "auto",
        item_graph_reg: float | str = "auto",
        graph_neighbors: int | None = 20,
        evaluate_every: int = 5,
        device: str = "auto",
        solver: str = AUTO,
        air_params: dict[str, Any] | None = None,
        early_stopping: dict[str, Any] | None = None,
        trainable: bool = True,
        verbose: bool = False,
        seed: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(name=name, trainable=trainable, verbose=verbose)
        self.n_factors = n_factors
        self.depth = depth
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.bias_decay = bias_decay
        self.user_graph_reg = user_graph_reg
        self.item_graph_reg = item_graph_reg
        self.graph_neighbors = graph_neighbors
        self.evaluate_every = evaluate_every
        self.device = device
        self.solver = solver
        self.air_params = air_params
        self.early_stopping = early_stopping
        self.seed = seed
        self._factors: Factors | None = None

    # ---------------------------------------------------------------- fitting

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
        known = AIR().get_params()
        named = {name: getattr(self, name) for name in self._get_init_params() if name in known}
        further = _checked_params(self.air_params, [name for name in known if name not in {*named, "random_state"}])
        model = AIR.for_ratings(**named, **further, random_state=self.seed)
        stops = self.early_stopping is not None
        model.set_params(solver=solver_for(model.get_params(), stops_early=stops))
        if stops and model.solver != "adam":
            raise ParameterError(f"early_stopping needs solver='adam' or 'auto', found {model.solver!r}")
        return model

    def _train(self, model: AIR) -> None:
        self.is_fitted, self._factors = False, None  # in case the training fails
        self.model_ = model
        data = _interactions(self.train_set, _triples(self.train_set))
        pairs = self._known_pairs(self.val_set)
        watched = self.early_stopping is not None
        held_out = _interactions(self.train_set, pairs) if watched and pairs is not None else None
        try:
            model.fit(data, validation=held_out, callbacks=[self._stops(model)] if watched else [])
        finally:
            self._factors = None  # those of a moment of the training
        biases = model.user_biases_, model.item_biases_
        self._factors = Factors(model.user_factors_, model.item_factors_, *biases, model.global_mean_)
        self.is_fitted = True

    def _stops(self, model: AIR) -> Callable[[Record], bool]:
        def stop(record: Record) -> bool:
            self._factors = model.current_factors()
            self.current_epoch = record.epoch - 1  # Cornac adds one at every call
            return self.early_stop(self.train_set, self.val_set, **(self.early_stopping or {}))

        return stop

    def monitor_value(self, train_set: Dataset, val_set: Dataset | None) -> float | None:
        """Return what early stopping wants to grow: minus the RMSE of `score` on the known pairs of `val_set`.

        None where there is no validation set, or none of its users and items is known. While `fit` runs, the scores
        are those of the moment, so that a subclass can monitor another metric by Cornac's `ranking_eval`.
        """
        pairs = self._known_pairs(val_set)
        if pairs is None:
            return None
        users, items, ratings = pairs
        factors = self._fitted_factors()
        products = np.einsum("nr,nr->n", factors.user_factors[users], factors.item_factors[items])
        return -rmse(ratings, products + factors.user_biases[users] + factors.item_biases[items] + factors.mean)

    def _known_pairs(self, val_set: Dataset | None) -> Triples | None:
        if val_set is None:
            return None
        users, items, ratings = _triples(val_set)
        known = (users < self.num_users) & (items < self.num_items)
        return (users[known], items[known], ratings[known]) if known.any() else None

    def _check_learned_from(self, train_set: Dataset) -> None:
        factors, data = self._fitted_factors(), self.model_.interactions_
        n_users, n_items = len(factors.user_factors), len(factors.item_factors)
        if _ids(train_set) != (data.user_ids[:n_users].tolist(), data.item_ids[:n_items].tolist()):
            raise DataError(
                f"{self.name} has trainable=False and knows {n_users} users and {n_items} items; expected a train_set "
                f"with the same ids in the same order, found {train_set.num_users} users, {train_set.num_items} items"
            )

    # ---------------------------------------------------------------- scores

    def score(self, user_idx: int, item_idx: int | None = None) -> Any:
        """Return the score of a user for one item, or for all items of the training data.

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
        if self.is_unknown_user(user_idx):
            raise ScoreException(f"Can't make score prediction for user {user_idx}")
        if item_idx is None:
            return items @ users[user_idx] + item_biases + (user_biases[user_idx] + mean)
        if self.is_unknown_item(item_idx):
            raise ScoreException(f"Can't make score prediction for item {item_idx}")
        return items[item_idx] @ users[user_idx] + item_biases[item_idx] + (user_biases[user_idx] + mean)

    def _fitted_factors(self) -> Factors:
        if self._factors is None:
            raise NotFittedError(f"{self.name} is not trained yet: call fit with trainable=True, or load a model")
        return self._factors

    # ---------------------------------------------------------------- nearest neighbours

    def get_vector_measure(self) -> str:
        """Return Cornac's name of the dot product, the measure by which the vectors rank as `score` does."""
        return MEASURE_DOT

    def get_user_vectors(self) -> np.ndarray:
        """Return the factors of the users and a one, shape (num_users, r + 1)."""
        factors = self._fitted_factors().user_factors
        return np.column_stack((factors, np.ones(len(factors), factors.dtype)))

    def get_item_vectors(self) -> np.ndarray:
        """Return the factors of the items and their bias, shape (num_items, r + 1)."""
        factors = self._fitted_factors()
        return np.column_stack((factors.item_factors, factors.item_biases))


def _ids(dataset: Dataset) -> tuple[list, list]:
    """Return the raw ids in index order; the maps may hold those of a test set, which come last."""
    maps = (dataset.uid_map, dataset.num_users), (dataset.iid_map, dataset.num_items)
    users, items = (sorted(ids, key=ids.__getitem__)[:size] for ids, size in maps)
    return users, items


def _triples(dataset: Dataset) -> Triples:
    users, items, ratings = (np.asarray(column) for column in dataset.uir_tuple)
    return users, items, ratings


def _interactions(train_set: Dataset, triples: Triples) -> Interactions:
    return Interactions(*triples, *_ids(train_set), allow_negative=True)


def _checked_params(air_params: Any, allowed: list[str]) -> dict[str, Any]:
    if air_params is None:
        return {}
    if not isinstance(air_params, Mapping) or not set(air_params) <= set(allowed):
        raise ParameterError(
            f"air_params must be a dict of parameters of AIR that CornacAIR has not itself, {', '.join(allowed)}; "
            f"found {air_params!r}"
        )
    return dict(air_params)


def _check_early_stopping(rule: Any) -> None:
    if rule is None:
        return
    if not isinstance(rule, Mapping) or not set(rule) <= {"min_delta", "patience"}:
        raise ParameterError(f"early_stopping must be None or a dict with min_delta and patience, found {rule!r}")
    check_real("min_delta of early_stopping", rule.get("min_delta", 0.0))
    check_integer("patience of early_stopping", rule.get("patience", 0))
