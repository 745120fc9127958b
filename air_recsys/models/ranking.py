"""`GraphRanker`: lists of items from who interacted with what, smoothed by graphs of the users and of the items."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.exceptions import ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.interactions import Interactions
from air_recsys.models import ranking_parts as parts
from air_recsys.models.base import Factors, Recommender
from air_recsys.models.ranking_choice import Search, hidden_parts, history_frame
from air_recsys.models.ranking_fold_in import FoldedUsers
from air_recsys.models.ranking_parts import Part, RankerSettings, interaction_pattern
from air_recsys.training import Callback
from air_recsys.validation import check_choice, check_integer, check_real

_BLOCK_ENTRIES = 16_000_000  # of scores held at a time


class GraphRanker(Recommender):
    r"""Rank items by three smoothings of the pattern R of interactions: over items, over users, over a few axes.

    .. math:: s_u = \frac{r_u A_{items}}{|\cdot|} + \lambda_u \frac{a_u R}{|\cdot|}
              + \lambda_f \frac{r_u V V^T}{|\cdot|}

    with sparse graphs A of the strongest co-occurrences (`air_recsys.graphs.cooccurrence`), V the leading singular
    vectors of R, and every term divided by its length. Each R, A and V has its rows or columns divided by a power of
    their numbers of interactions: how much popularity is to count differs from data to data, and matters more than
    anything else. These powers, the number of singular vectors and the two weights are chosen at `fit` on a fifth of
    each user's interactions, hidden for the while. It is hidden in three ways, all alike, popular items first and
    rare items first, since no data tell how popularity will count in the future; the geometric mean of NDCG decides.

    Parameters
    ----------
    n_factors : int
        Axes that are searched for; at most as many as there are users or items. How many are used is chosen.
    settings : mapping, optional
        `RankerSettings` by name, the others at their defaults: nothing is hidden or chosen then.
    n_validation : int
        Users whose lists are compared in each way of hiding, at most.
    random_state : int
        Of what is hidden, and of the search for singular vectors.

    Attributes
    ----------
    user_graph_, item_graph_ : SimilarityGraph
    user_factors_, item_factors_ : ndarray
        Of the third term alone: a score is more than their product.
    settings_ : RankerSettings
    history_ : DataFrame
        Every setting tried, with NDCG and recall of its lists of 20, geometric means over the ways of hiding; in the
        last row the one chosen.

    Raises
    ------
    ParameterError
        At `fit`, for a parameter out of its range.

    Notes
    -----
    All interactions count as 1, whatever their ratings. Scores order the items of a user; they are no ratings and
    cannot be compared between users.

    Sources: Fu et al., Revisiting Neighborhood-based Link Prediction for Collaborative Filtering, WWW 2022 (exponents
    of degrees); Shen et al., How Powerful is Graph Convolution for Recommendation?, CIKM 2021 (singular vectors).

    Examples
    --------
    >>> seen = np.array([[1, 1, np.nan, np.nan], [1, 1, 1, np.nan], [np.nan, np.nan, 1, 1]])
    >>> GraphRanker(settings={}).fit(seen).recommend(0, n=1)["item"].tolist()
    [2]
    """

    def __init__(
        self,
        n_factors: int = 512,
        settings: Mapping[str, float] | None = None,
        n_validation: int = 1000,
        random_state: int = 0,
    ) -> None:
        self.n_factors = n_factors
        self.settings = settings
        self.n_validation = n_validation
        self.random_state = random_state

    def _check_parameters(self, data: Interactions) -> None:
        for name in ("n_factors", "n_validation"):
            check_integer(name, getattr(self, name), minimum=1)
        check_integer("random_state", self.random_state, minimum=0)
        if self.settings is None:
            return
        if not isinstance(self.settings, Mapping):
            raise ParameterError(f"settings must be a mapping or None, found {type(self.settings).__name__}")
        for name, value in self.settings.items():
            check_choice("a name in settings", name, RankerSettings._fields)
            if name == "n_axes" or name.endswith("neighbors"):
                check_integer(name, value, minimum=1)
                continue
            lowest = -2.0 if name.endswith(("source", "target")) else 0.0
            check_real(name, value, minimum=lowest, maximum=10.0, strict=name.endswith("power"))

    # ---------------------------------------------------------------- fitting

    def _fit(self, data: Interactions, callbacks: list[Callback]) -> None:
        self.__dict__.pop("_parts", None)
        settings, tried = self._settings_for(data)
        pattern = interaction_pattern(data)
        self.history_ = history_frame(tried, settings)
        items = parts.raised(parts.item_graph(pattern, settings), settings.item_power)
        users = parts.raised(parts.user_graph(pattern, settings), settings.user_power)
        self.item_graph_ = SimilarityGraph(items, data.item_ids, "item")
        self.user_graph_ = SimilarityGraph(users, data.user_ids, "user")
        axes = parts.item_axes(pattern, self.n_factors, self.random_state)
        width = np.zeros(data.n_users), np.zeros(data.n_items)
        self._set_factors(Factors(*parts.factors(pattern, axes, settings), *width, 0.0))

    def _settings_for(self, data: Interactions) -> tuple[RankerSettings, list[dict[str, Any]]]:
        """Return the settings, given or chosen, and all that were tried."""
        if self.settings is not None:
            given: dict[str, Any] = dict(self.settings)
            return RankerSettings(**given), []
        ways = hidden_parts(interaction_pattern(data), self.random_state)
        if not ways[0][1].nnz:  # no user has interactions to spare
            return RankerSettings(), []
        search = Search(ways, self.n_factors, self.random_state, self.n_validation)
        return search.best(), search.history

    @property
    def settings_(self) -> RankerSettings:
        """What was given or chosen."""
        self._check_fitted()
        chosen, defaults = self.history_.iloc[-1], RankerSettings()._asdict()
        values: dict[str, Any] = {name: type(default)(chosen.get(name, default)) for name, default in defaults.items()}
        return RankerSettings(**values)

    def _after_load(self) -> None:
        if self.item_graph_ is None or self.user_graph_ is None:
            raise ValueError("expected both graphs of a GraphRanker, found one or none")
        settings = self.settings_._asdict()
        if not np.isfinite([float(value) for value in settings.values()]).all():
            raise ValueError("expected finite settings in the history, found NaN or infinity")

    # ---------------------------------------------------------------- scores

    @cached_property
    def _parts(self) -> tuple[Part, Part, Part]:
        pattern, settings = interaction_pattern(self.interactions_), self.settings_
        items, users = (
            sp.csr_array(graph.to_scipy(), dtype=np.float32)
            for graph in (self.item_graph_, self.user_graph_)
            if graph is not None
        )
        return (
            parts.item_part(pattern, items, settings),
            parts.user_part(pattern, users, settings),
            parts.factor_part(self.user_factors_, self.item_factors_),
        )

    @property
    def _weights(self) -> tuple[float, float, float]:
        chosen = self.settings_
        return chosen.item_weight, chosen.user_weight, chosen.factor_weight

    def _scores(self, users: np.ndarray) -> np.ndarray:
        """Return the scores of all items for some users, shape (b, n_items)."""
        return parts.blend(self._parts, self._weights, users)

    def _score_pairs(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        different, place = np.unique(users, return_inverse=True)
        order = np.argsort(place, kind="stable")
        scores = np.empty(users.size)
        block = max(1, _BLOCK_ENTRIES // self.interactions_.n_items)
        for start in range(0, different.size, block):
            first, last = np.searchsorted(place[order], (start, start + block))
            pairs = order[first:last]
            scores[pairs] = self._scores(different[start : start + block])[place[pairs] - start, items[pairs]]
        return scores

    def recommend(self, user_ids: Any, n: int = 10, exclude_seen: bool = True, *, device: str = "cpu") -> pd.DataFrame:
        """Return the best n items of each user, as `Recommender.recommend`; on the CPU."""
        check_choice("device", device, ("cpu", "auto"))

        def best(users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            block = max(1, _BLOCK_ENTRIES // self.interactions_.n_items)
            found = [
                self._best(users[start : start + block], n, exclude_seen) for start in range(0, users.size, block)
            ]
            items, scores = zip(*found, strict=True) if found else ([np.empty((0, n), int)], [np.empty((0, n))])
            return np.concatenate(items), np.concatenate(scores)

        return self._recommend_with(best, user_ids, n)

    def _best(self, users: np.ndarray, n: int, exclude_seen: bool) -> tuple[np.ndarray, np.ndarray]:
        return parts.best_items(self._scores(users), self._statistics.seen[users] if exclude_seen else None, n)

    def fold_in(self, interactions: Any) -> FoldedUsers:
        """Return new users, ready to be given lists, from their items, without training and without a trace.

        All three terms take part; see `air_recsys.models.ranking_fold_in`.

        Parameters
        ----------
        interactions : Interactions, DataFrame, or SciPy sparse
            Interactions and tables hold the users by id; their items have to be known. Who has the id of a trained
            user is not taken for its own neighbour. A matrix has one row a new user and one column an item of the
            model. Values do not count.

        Raises
        ------
        DataError, UnknownIdError
            Where the interactions do not fit the model.

        Examples
        --------
        >>> import pandas as pd
        >>> seen = np.array([[1, 1, np.nan, np.nan], [1, 1, 1, np.nan], [np.nan, np.nan, 1, 1]])
        >>> model = GraphRanker(settings={}).fit(seen)
        >>> new = pd.DataFrame({"user": ["eve", "eve"], "item": [0, 1], "rating": [1, 1]})
        >>> model.fold_in(new).recommend(n=1)[["user", "item"]].values.tolist()
        [['eve', 2]]
        """
        self._check_fitted()
        return FoldedUsers(self, interactions)

    def to_faiss(self, metric: str = "inner_product", factory: str | None = None) -> Any:
        """Raise: no index of factors holds these scores."""
        raise ParameterError(
            "a GraphRanker's scores are no products of factors: expected recommend in place of to_faiss"
        )
