"""`SolvesRows`: models whose rows obey linear equations, for new rows, new ratings and explanations."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd

from air_recsys.data.interactions import is_matrix
from air_recsys.models.explain import Labels, explain
from air_recsys.models.explanation import Explanation
from air_recsys.models.forgetting import Left, kept
from air_recsys.models.listing import ListsByTaking
from air_recsys.models.new_rows import checked_features, new_rows
from air_recsys.models.partial_fit import check_rows, of_new_rows, solved_in_turn, updated
from air_recsys.models.rows import SIDES, RowSolver, Side
from air_recsys.models.state import FittedState, lock_of
from air_recsys.models.taking import handed_on
from air_recsys.storage.threads import threads
from air_recsys.storage.validation import check_choice


class SolvesRows(ListsByTaking):
    """A recommender of which the row of a user or an item is solved for, the other side held fixed."""

    def row_solver(self, side: Side = "user") -> RowSolver:
        """The linear solve behind `fold_in` for one side: its `solve` makes bare factors and biases of a CSR array.

        Raises
        ------
        ParameterError
            For models with `transforms` or `tv_reg`, which tie a row to all others.
        """
        check_choice("side", side, SIDES)
        return self._fitted().row_solver(side)

    def fold_in(
        self,
        ratings: Any = None,
        *,
        weights: np.ndarray | None = None,
        side: Side = "user",
        features: Any = None,
        similarity: Any = None,
    ) -> Self:
        """A model of new users (or items) alone, for all questions; this model does not change.

        It has the new users and all items of this model (with ``side="item"`` all users and the new items), and
        answers as this model would after `partial_fit`, with all else held fixed. Its ids are its own: what this model
        knows of a user with the same id does not count. Similar users are looked for among the new ones. It is not
        saved, and takes nothing further in.

        The new rows minimise the objective with the trained model held fixed, see
        `air_recsys.models.engines.objective_rows`. With a posterior they are posterior means, see
        `air_recsys.models.engines.posterior_rows`.

        Parameters
        ----------
        ratings : Interactions, DataFrame, SciPy sparse, or None
            Interactions and tables have the new users by id; their items must be known. A matrix has one row per new
            user, with the ids 0, 1, ..., and one column per item of the model (with ``side="item"`` one row per new
            item and one column per user); its stored entries are ratings, zeros included. None, with `features` or
            `similarity`: new rows without a rating. Ratings without timestamps are of no particular time.
        weights : ndarray, shape (nnz,), optional
            How much each stored entry of a CSR matrix counts; tables and Interactions bring their own.
        side : {"user", "item"}
            What the new rows are.
        features : DataFrame or ndarray, optional
            Features of the new rows, for models that were trained with features: by id beside ids, else in the order
            of the rows. Missing features count as the average.
        similarity : mapping, optional
            What the new rows are described by, by the names that `fit` had, such as "smiles"; where it had several,
            one is enough.

        Returns
        -------
        AIR
            Or `DMF` and its siblings, as this model. A row of which nothing is known has factors and bias 0: its
            scores are the mean and the biases of the other side.

        Raises
        ------
        DataError, UnknownIdError
            If the ratings do not fit the model. The rules are those of `fit`: ratings are finite, each pair occurs
            once, and weights are finite and >= 0. Ratings must lie on the scale of the training data, from the
            smallest to the largest rating in `fit`. If all of these are equal there is no scale, and only negative
            ratings are refused.
        ParameterError
            For models with `transforms` or `tv_reg`, which tie a row to all others, and for one of new rows.

        Examples
        --------
        >>> from air_recsys import AIR
        >>> frame = pd.DataFrame({"user": ["ann", "ann", "bob"], "item": ["x", "y", "x"], "rating": [5, 1, 4]})
        >>> model = AIR.for_ratings(random_state=0, device="cpu").fit(frame)
        >>> eve = model.fold_in(pd.DataFrame({"user": ["eve"], "item": ["x"], "rating": [5]}))
        >>> eve.recommend("eve")["item"].tolist(), model.interactions_.n_users
        (['y'], 2)
        """
        check_choice("side", side, SIDES)
        state, read = self._fitted(), partial(self.as_data, allow_negative=True)
        data = new_rows(state, ratings, side, read=read, weights=weights, features=features, similarity=similarity)
        with threads(self.n_threads):
            return copy.copy(self).take_state(of_new_rows(state, data, side))

    def partial_fit(
        self,
        interactions: Any,
        *,
        user_features: Any = None,
        item_features: Any = None,
        user_similarity: Any = None,
        item_similarity: Any = None,
    ) -> Self:
        """Update the model with ratings of known users, new users and new items, without training.

        A new rating of a pair replaces the old one. Every user of `interactions` is solved again from all of its
        ratings (under AIR's objective also from the item graph and its neighbours in the user graph). Then every new
        item is solved from all of its ratings, and then those users once more, with the new items. All other rows stay
        unchanged. New users and items have no edges in the graphs until the next `fit`, beside those of features.

        The new state replaces the old one in one step: other threads read one or the other, and writers wait for each
        other, so no ratings are lost. `clip` keeps the range of `fit`.

        Parameters
        ----------
        interactions : Interactions, sparse matrix, DataFrame or ndarray
            As for `fit`; positions of a matrix are ids here too.
        user_features, item_features : DataFrame, optional
            Features of new users and items, with the columns of `fit`. Users and items without ratings are added as
            well. The features of known ones do not change.
        user_similarity, item_similarity : mapping, optional
            What new users and items are described by, as in `fold_in`; those without ratings are added as well.

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
        data = self.as_data(interactions, allow_negative=True)
        if is_matrix(interactions):
            check_rows(self._fitted(), data)
        with lock_of(self):
            before = self._fitted()
            known = (user_features, item_features), (user_similarity, item_similarity)
            after = updated(before, data, *known)
            return self.take_state(handed_on(before, after, lambda taking: taking.grown(after.data, data)))

    def without(self, state: FittedState, left: Left) -> FittedState:
        """A state of what is left: rows that lost ratings are solved again, all else is held."""
        assert state.equations is not None
        state.equations.check()
        draft = kept(state, left)
        first = draft.data.n_items - draft.n_new_items
        items = left.lost_by_items[left.lost_by_items >= first]
        data = draft.data
        users = np.union1d(left.lost_by_users, data.user_index[np.isin(data.item_index, items)])
        after = solved_in_turn(draft, draft, users, items, first)
        return handed_on(state, after, lambda taking: taking.without(left))

    def feature_effects(self, side: Side = "item") -> pd.DataFrame:
        """The learned effect of each feature of users or items on a score.

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
        """The change of ratings of users and items over time; None without ``time="drift"``, empty if nothing changes.

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
        """The rated items and the similar users that speak for a score: contributions that add up to it.

        They follow from the equations of the user's factors, with all else held fixed. The part that these do not
        explain is the remainder. See `objective_contributions`, and for a posterior `posterior_scores`, of
        `air_recsys.models.engines` for the definitions.

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
        similarities = self.shown_graph(state, "user"), self.shown_graph(state.origin, "item")
        return explain(
            state, state.equations, pair, n, labels, clips=self.clips, similarities=similarities, timestamp=timestamp
        )
