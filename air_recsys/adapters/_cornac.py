"""What both recommenders of Cornac share, and `GraphRanker` as one, for experiments on implicit feedback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import NotFittedError, ParameterError
from air_recsys.models import AIR, GraphRanker
from air_recsys.models.ranking.ties import best_of
from air_recsys.storage.validation import check_integer, needs_extra

with needs_extra("cornac"):
    from cornac.data import Dataset
    from cornac.exception import ScoreException
    from cornac.models.recommender import Recommender

Triples = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Indices of users, indices of items, ratings."""


def raw_ids(dataset: Dataset) -> tuple[list, list]:
    """The raw ids in index order; the maps may hold those of a test set, which come last."""
    maps = (dataset.uid_map, dataset.num_users), (dataset.iid_map, dataset.num_items)
    users, items = (sorted(ids, key=ids.__getitem__)[:size] for ids, size in maps)
    return users, items


def triples_of(dataset: Dataset) -> Triples:
    """The ratings of a data set."""
    users, items, ratings = (np.asarray(column) for column in dataset.uir_tuple)
    return users, items, ratings


def ranked(scores: Any, item_indices: Any, k: int) -> np.ndarray:
    """Items, best first by scores that stand in their order, ties by index; behind the first k by index.

    Scores that differ by rounding alone tie, see `air_recsys.models.ranking.ties`; Cornac leaves such items in any
    order.

    Examples
    --------
    >>> ranked([1.0, 3.0, 3.0], [4, 7, 2], -1).tolist()
    [2, 7, 4]
    """
    given = np.arange(len(scores)) if item_indices is None else np.asarray(item_indices)
    if not given.size:
        return given
    by_index = np.argsort(given, kind="stable")
    sorted_scores = np.asarray(scores, dtype=np.float64)[by_index]
    n = given.size if k == -1 else min(check_integer("k", k, minimum=1), given.size)
    first = best_of(sorted_scores[None], n, float(np.abs(sorted_scores).max()))[0][0]
    return given[np.r_[by_index[first], np.delete(by_index, first)]]


class RanksTies(Recommender):
    """A recommender of Cornac whose lists do not depend on rounding."""

    def clone(self, new_params: Mapping[str, Any] | None = None) -> Self:
        """A new model with the same parameters but for new ones; `ParameterError` for a name that is none."""
        if unknown := set(new_params or {}) - set(self._get_init_params()):
            names = ", ".join(self._get_init_params())
            raise ParameterError(f"expected new_params of {names}, found {', '.join(sorted(unknown))}")
        return super().clone(new_params)

    def rank(
        self, user_idx: int, item_indices: Any = None, k: int = -1, **kwargs: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Items, best first, and the scores of `item_indices` in their order, as all models of Cornac do.

        Scores that differ by rounding alone tie, and the item with the lower index comes first, see
        `air_recsys.models.ranking.ties`; Cornac leaves such items in any order. Behind the first k all others follow
        in the order of their indices.
        """
        _, scores = super().rank(user_idx, item_indices, **kwargs)
        return ranked(scores, item_indices, k), scores

    def check_known(self, user_idx: int, item_idx: int | None) -> None:
        """Raise `ScoreException` for a user or an item that is not in the training data."""
        for index in (user_idx, item_idx):
            if isinstance(index, str):
                raise ScoreException(f"expected indices, as uid_map and iid_map have for raw ids, found {index!r}")
        if self.is_unknown_user(user_idx):
            raise ScoreException(f"Can't make score prediction for user {user_idx}")
        if item_idx is not None and self.is_unknown_item(item_idx):
            raise ScoreException(f"Can't make score prediction for item {item_idx}")

    def not_trained(self) -> NotFittedError:
        """The error of a question before `fit`."""
        return NotFittedError(f"{self.name} is not trained yet: call fit with trainable=True, or load a model")


@dataclass(eq=False, repr=False)
class CornacRanker(RanksTies):
    """`AIR.for_likes()` with Cornac's interface of a recommender, for metrics of lists.

    Every rating of the training data is a like, and its value says how much, see `GraphRanker`; in an experiment pass
    only likes, for instance with ``rating_threshold``. Scores order the items of a user and are not ratings.

    Parameters
    ----------
    name : str
        Row of the model in the tables of an experiment.
    n_factors, n_steps, settings, time_budget, validation, n_validation, device
        Those of `air_recsys.models.GraphRanker`. The times of a data set with triples of the format UIRT are read.
    trainable : bool
        If False, `fit` keeps the learned state, as after `load`.
    verbose : bool
        Print the choice of settings and its reason.
    seed : int
        The same seed gives the same model.

    Attributes
    ----------
    model_ : GraphRanker
        The trained model, with Cornac's raw ids: `recommend`, `fold_in`, graphs, `search_line_`, `save` without
        pickle.

    Notes
    -----
    The contract is that of `cornac.models.Recommender`, Cornac 3.0.

    Examples
    --------
    >>> from cornac.data import Dataset
    >>> likes = {"ann": "abc", "bob": "abd", "eve": "cde", "joe": "bde"}
    >>> triples = [(user, item, 1.0) for user, items in likes.items() for item in items]
    >>> model = CornacRanker(device="cpu").fit(Dataset.from_uir(triples))
    >>> len(model.recommend("eve", k=2)), model.score(0).shape
    (2, (5,))
    """

    name: str = "AIR for likes"
    n_factors: int = 128
    n_steps: int = 150
    settings: Mapping[str, float] | None = None
    time_budget: float | None = None
    validation: str = "auto"
    n_validation: int = 1000
    device: str = "auto"
    trainable: bool = True
    verbose: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        super().__init__(name=self.name, trainable=self.trainable, verbose=self.verbose)
        self.model_: GraphRanker | None = None

    def fit(self, train_set: Dataset, val_set: Dataset | None = None) -> Self:
        """Train on the pairs of `train_set`; `val_set` is not read, hidden parts of the training data choose."""
        if not self.trainable:
            self._fitted()
            self.is_fitted = False  # nothing is overwritten, of which Cornac warns
        super().fit(train_set, val_set)
        if self.trainable:
            self.is_fitted = False  # the state after a training that fails
            names = ("n_factors", "n_steps", "settings", "time_budget", "validation", "n_validation", "device")
            model = AIR.for_likes(**{name: getattr(self, name) for name in names}, random_state=self.seed)
            times = train_set.timestamps
            likes = Interactions(*triples_of(train_set), *raw_ids(train_set), timestamps=times, allow_negative=True)
            self.model_ = model.fit(likes)
            if self.verbose:
                tqdm.write(model.search_line_)
        self.is_fitted = True
        return self

    def score(self, user_idx: int, item_idx: int | None = None) -> Any:
        """The score of a user for one item, or for all items of the training data.

        Raises
        ------
        ScoreException
            For a user or an item that is not in the training data.
        """
        model = self._fitted()
        self.check_known(user_idx, item_idx)
        data = model.interactions_
        items = data.item_ids if item_idx is None else data.item_ids[[item_idx]]
        scores = model.predict(np.repeat(data.user_ids[[user_idx]], len(items)), items)
        return scores if item_idx is None else float(scores[0])

    def _fitted(self) -> GraphRanker:
        if self.model_ is None:
            raise self.not_trained()
        return self.model_
