"""Surprise: its trainsets, and AIR as an algorithm."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.ids import asked_ids
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, DataWarning, NotFittedError, ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import AIR
from air_recsys.models.solvers import AUTO, Solver, as_solver, parameter_names, solver_for, with_overrides
from air_recsys.storage.validation import check_integer, needs_extra

with needs_extra("surprise"):
    from surprise import AlgoBase, PredictionImpossible, Trainset
    from surprise.utils import get_rng


def to_trainset(interactions: Interactions) -> Trainset:
    """A Surprise trainset with the same raw ids, inner ids equal to our indices.

    Users and items without ratings keep their ids, with empty rating lists; some of Surprise's algorithms fail on
    those.
    """
    by_user: dict[int, list[tuple[int, float]]] = {index: [] for index in range(interactions.n_users)}
    by_item: dict[int, list[tuple[int, float]]] = {index: [] for index in range(interactions.n_items)}
    triples = (interactions.user_index, interactions.item_index, interactions.ratings)
    for user, item, rating in zip(*(column.tolist() for column in triples), strict=True):
        by_user[user].append((item, rating))
        by_item[item].append((user, rating))
    return Trainset(
        by_user,
        by_item,
        interactions.n_users,
        interactions.n_items,
        interactions.n_ratings,
        (float(interactions.ratings.min()), float(interactions.ratings.max())),
        {raw: inner for inner, raw in enumerate(interactions.user_ids.tolist())},
        {raw: inner for inner, raw in enumerate(interactions.item_ids.tolist())},
    )


class _SetByFit:
    """An attribute that raises `NotFittedError` until `fit` sets it on the instance."""

    def __get__(self, algo: object, owner: type | None = None) -> Any:
        if algo is None:
            return self
        raise NotFittedError(f"this {type(algo).__name__} is not fitted yet: call fit first")


_UNSET: Any = _SetByFit()


class SurpriseAIR(AlgoBase):
    r"""`AIR` as an algorithm of Surprise, for `cross_validate`, `GridSearchCV`, `surprise.dump` and others.

    An estimate is :math:`\hat{r}_{ui} = \mu + b_u + b_i + p_u^\top q_i`, as in Surprise's SVD. By default its terms
    are the means of a posterior; a user graph and an item graph are learned too and are the similarities of the
    algorithm. If one side of a pair is unknown, its terms are left out if the model has biases around a mean (the
    default). Otherwise, and if both are unknown, the prediction is impossible and Surprise uses the mean of the
    trainset. Lists made of estimates go by the expected rating; those of `model_.recommend`, by taking and liking, are
    better.

    Parameters
    ----------
    sim_options : dict, optional
        ``{"user_based": False}`` chooses the item graph for `sim` and `get_neighbors`, else it is the user graph. The
        similarities are learned, so Surprise's other options are not used, with a warning.
    solver : {"auto", "variational", "langevin", "adam"} or an object of `air_recsys.models.solvers`
        That of `AIR`. "auto" is the preset's "variational", a posterior, and "adam", factors trained together with
        the graphs, for ``n_factors=None`` and for a parameter that "adam" alone reads, such as `n_epochs`,
        `weight_decay` or `biases`; `model_.solver` is the choice.
    user_features, item_features : DataFrame, optional
        Features of users and items, indexed by raw id, see `Interactions.with_features`. They give estimates for
        unknown users and items of the tables.
    user_similarity, item_similarity : SimilarityGraph or DataFrame, optional
        Similarities of users and items, by raw id, see `AIR.fit`.
    **parameters
        Those of `AIR` and of its solver, by name, in place of the values of `AIR.for_ratings`. They and all others of
        `AIR` and of the solver become attributes of the same name. Without a `random_state` the seed is drawn from
        NumPy's global generator, as Surprise does.

    Attributes
    ----------
    model_ : AIR
        The fitted model, with the raw ids: `recommend`, `similar_items`, `user_graph_`, `save`.
    pu, qi : ndarray, shapes (n_users, n_factors) and (n_items, n_factors)
        The factors by inner id, under the names of Surprise's SVD.
    bu, bi : ndarray, shapes (n_users,) and (n_items,)
        The biases by inner id, in the unit of the ratings.
    sim : csr_array, shape (n, n)
        The learned similarities, `compute_similarities()`.

    Raises
    ------
    ParameterError
        If `sim_options` is not a dict, and for a parameter that neither `AIR` nor the `solver` named reads; at
        `fit`, for a parameter out of its range.

    Examples
    --------
    >>> import pandas as pd
    >>> from surprise import Dataset, Reader
    >>> table = pd.DataFrame({"user": list("aabbcc"), "item": list("xyxzyz"), "rating": [5, 1, 4, 2, 1, 2]})
    >>> trainset = Dataset.load_from_df(table, Reader(rating_scale=(1, 5))).build_full_trainset()
    >>> algo = SurpriseAIR(n_sweeps=20, device="cpu", random_state=0).fit(trainset)
    >>> algo.predict("a", "x").est > algo.predict("a", "y").est
    True
    >>> len(algo.get_neighbors(trainset.to_inner_uid("b"), k=1))
    1
    """

    trainset: Trainset = _UNSET
    model_: AIR = _UNSET
    pu: np.ndarray = _UNSET
    qi: np.ndarray = _UNSET
    _user_vectors: np.ndarray = _UNSET
    _item_vectors: np.ndarray = _UNSET
    _further: tuple[dict[int | str, int], dict[int | str, int]] = _UNSET

    def __init__(
        self,
        *,
        sim_options: Mapping[str, Any] | None = None,
        solver: str | Solver = AUTO,
        user_features: pd.DataFrame | None = None,
        item_features: pd.DataFrame | None = None,
        user_similarity: SimilarityGraph | pd.DataFrame | None = None,
        item_similarity: SimilarityGraph | pd.DataFrame | None = None,
        **parameters: Any,
    ) -> None:
        model = AIR.for_ratings(solver=solver_for(parameters, solver), **parameters)
        self.solver = as_solver(model.solver)
        self.user_features, self.item_features = user_features, item_features
        self.user_similarity, self.item_similarity = user_similarity, item_similarity
        for name, value in (model.get_params(deep=False) | self.solver.get_params()).items():
            if name != "solver":
                setattr(self, name, value)
        # A copy: Surprise writes into the dictionary that it is given.
        AlgoBase.__init__(self, sim_options=_checked(sim_options or {}))

    def fit(self, trainset: Trainset) -> Self:
        """Train on a trainset and return the algorithm; a repeated pair counts with its mean rating.

        Raises
        ------
        DataError
            For anything but a trainset with ratings.
        ParameterError, DivergenceError
            As `AIR.fit`.
        """
        if not isinstance(trainset, Trainset):
            raise DataError(
                "expected a trainset, such as build_full_trainset() of a dataset returns, found "
                f"{type(trainset).__name__}"
            )
        AlgoBase.fit(self, trainset)
        for name in ("model_", "pu", "qi", "_user_vectors", "_item_vectors", "_further", "sim"):
            self.__dict__.pop(name, None)  # a fit that fails leaves no half of two models
        self.model_ = self._new_model().fit(
            Interactions.from_surprise(trainset),
            user_features=self.user_features,
            item_features=self.item_features,
            user_similarity=self.user_similarity,
            item_similarity=self.item_similarity,
        )
        self._take_factors()
        return self

    def _new_model(self) -> AIR:
        of_solver = {name: getattr(self, name) for name in parameter_names(type(self.solver))}
        parameters: dict[str, Any] = {name: getattr(self, name) for name in parameter_names(AIR)}
        seed = parameters["random_state"]
        if not isinstance(seed, (int, np.integer)):
            parameters["random_state"] = int(get_rng(seed).randint(0, 2**31 - 1))
        parameters["solver"] = with_overrides(self.solver, of_solver)
        return AIR(**parameters)

    def _take_factors(self) -> None:
        model = self.model_
        data, n_users, n_items = model.interactions_, self.trainset.n_users, self.trainset.n_items
        factors, biases = (model.user_factors_, model.item_factors_), (model.user_biases_, model.item_biases_)
        # Behind those of the trainset are the users and items of which features alone are known.
        self.pu, self.qi = factors[0][:n_users], factors[1][:n_items]
        self.bu, self.bi = biases[0][:n_users], biases[1][:n_items]
        self._further = _by_name(data.user_ids, n_users), _by_name(data.item_ids, n_items)
        # With the biases inside, one product is a whole estimate.
        users = np.column_stack([factors[0], biases[0], np.ones_like(biases[0])])
        items = np.column_stack([factors[1], np.ones_like(biases[1]), biases[1] + model.global_mean_])
        self._user_vectors, self._item_vectors = users.astype(np.float64), items.astype(np.float64)

    def estimate(self, u: int | str, i: int | str) -> float:
        """The estimate of a pair of inner ids (``"UKN__"`` and the raw id for an unknown one), not clipped.

        Raises
        ------
        PredictionImpossible
            If both are unknown, or one is and the model has no biases around a mean.
        """
        user, item = self._further[0].get(u, u), self._further[1].get(i, i)
        knows_user = user is not u or self.trainset.knows_user(u)
        knows_item = item is not i or self.trainset.knows_item(i)
        model = self.model_
        if knows_user and knows_item:
            carried = model.carried_
            added = 0.0 if carried is None else carried.score(int(user), int(item))
            return float(self._user_vectors[user].dot(self._item_vectors[item]) + added)
        if not (knows_user or knows_item):
            raise PredictionImpossible("User and item are unknown.")
        if not (getattr(self, "biases", True) and getattr(self, "center", True)):  # a posterior has both
            raise PredictionImpossible("User or item is unknown.")
        return float(self._user_vectors[user][-2] + model.global_mean_ if knows_user else self._item_vectors[item][-1])

    @property
    def rating_values_(self) -> np.ndarray:
        """The values of the training ratings in ascending order: the columns of `predict_proba`."""
        return self.model_.rating_values_

    def predict_proba(self, uid: Any, iid: Any) -> np.ndarray:
        """The probability of each value of `rating_values_` for new ratings of pairs, see `AIR.predict_proba`.

        Parameters
        ----------
        uid, iid : raw id or sequence of raw ids
            Pairs, position by position, as in `predict`. An unknown id has the probabilities of a mean rating;
            an inner id, where raw ones are text, is an error.

        Returns
        -------
        ndarray of float64, shape (n, k)
            Rows add up to 1.

        Raises
        ------
        NotFittedError
            Before `fit`.
        DataError
            Where the trainset has more than 101 values of ratings, and with ``solver="adam"`` fewer than 100 ratings.

        Examples
        --------
        >>> import pandas as pd
        >>> from surprise import Dataset, Reader
        >>> table = pd.DataFrame({"user": list("aabbcc"), "item": list("xyxzyz"), "rating": [5, 1, 4, 2, 1, 2]})
        >>> trainset = Dataset.load_from_df(table, Reader(rating_scale=(1, 5))).build_full_trainset()
        >>> algo = SurpriseAIR(n_sweeps=20, device="cpu", random_state=0).fit(trainset)
        >>> algo.rating_values_, algo.predict_proba("a", ["x", "z"]).shape
        (array([1., 2., 4., 5.]), (2, 4))
        """
        data, users, items = self.model_.interactions_, asked_ids(uid, "user"), asked_ids(iid, "item")
        data.users.check_type(users, all_of_them=True)  # inner ids in place of raw ones
        data.items.check_type(items, all_of_them=True)
        return self.model_.predict_proba(users, items, unknown="mean")

    def compute_similarities(self) -> sp.csr_array:
        """The learned similarities of the users, or of the items where ``user_based`` is False.

        They are a csr_array (n, n) by inner ids, symmetric, >= 0, with an empty diagonal: the larger, the more alike.

        Raises
        ------
        ParameterError
            If that graph was not learned.
        """
        return self._graph().to_scipy()

    @cached_property
    def sim(self) -> sp.csr_array:
        """The learned similarities, computed at the first access."""
        return self.compute_similarities()

    def get_neighbors(self, iid: int, k: int) -> list[int]:
        """The inner ids of the k users (or items) most alike to an inner id, the most alike first.

        A node with fewer than k edges has fewer neighbours.

        Raises
        ------
        ValueError
            For an `iid` that is not an inner id.
        ParameterError
            If that graph was not learned, or unless k >= 1.
        """
        check_integer("k", k, minimum=1)
        graph, data = self._graph(), self.trainset
        if graph.kind == "user":
            return [data.to_inner_uid(raw) for raw in graph.neighbors(data.to_raw_uid(iid), k)["user"]]
        return [data.to_inner_iid(raw) for raw in graph.neighbors(data.to_raw_iid(iid), k)["item"]]

    def _graph(self) -> SimilarityGraph:
        model, data = self.model_, self.model_.interactions_
        if self.sim_options["user_based"]:
            kind, other, graph, ids = "user", False, model.user_graph_, data.user_ids
        else:
            kind, other, graph, ids = "item", True, model.item_graph_, data.item_ids
        if graph is None and len(ids) == 1:
            return SimilarityGraph(np.zeros((1, 1)), ids, kind)  # nothing to learn
        if graph is None:
            raise ParameterError(
                f"similarities of {kind}s need a learned graph, found {kind}_graph_reg=0; set it larger or choose "
                f"sim_options={{'user_based': {other}}}"
            )
        return graph


def _by_name(ids: np.ndarray, first: int) -> dict[int | str, int]:
    """The places of ids from the first on, by the names that Surprise gives to ids that it does not know."""
    return {f"UKN__{raw}": first + place for place, raw in enumerate(ids[first:].tolist())}


def _checked(sim_options: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(sim_options, Mapping):
        raise ParameterError(f"sim_options must be a dict such as {{'user_based': False}}, found {sim_options!r}")
    unused = [name for name in sim_options if name != "user_based"]
    if unused:
        warnings.warn(
            f"sim_options of SurpriseAIR is only read for 'user_based', found {unused}: similarities are learned",
            DataWarning,
            stacklevel=3,
        )
    return dict(sim_options)
