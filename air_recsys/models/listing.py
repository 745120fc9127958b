"""`ListsByTaking`: models of ratings whose lists go by taking and liking, see `air_recsys.models.taking`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable
from functools import partial
from typing import Any, Literal, Self, get_args

import numpy as np
import pandas as pd
from scipy.special import ndtr
from tqdm import tqdm

from air_recsys.data.ids import asked_ids
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataWarning
from air_recsys.models.deviations import BestItems, PredictsDeviations
from air_recsys.models.ranking.allowed import Allowed, allowed_items, list_length
from air_recsys.models.ranking.lists import Popular, best_items_of, first_of, recommend_with
from air_recsys.models.rating_values import MOST_VALUES, RatingValues
from air_recsys.models.state import FittedState, lock_of
from air_recsys.models.taking import FEWEST, HIDDEN, LENGTH, Taking, learned
from air_recsys.nn.devices import gpu_of
from air_recsys.splits import user_holdout
from air_recsys.storage.threads import threads
from air_recsys.storage.validation import check_choice

RankedBy = Literal["auto", "both", "rating", "taken"]
RANKED_BY: tuple[RankedBy, ...] = get_args(RankedBy)
_DAMPING = 5.0  # ratings of the mean user that are added to each item's
_MANY = 100_000  # ratings, of which learning takes long enough to be told


class ListsByTaking(PredictsDeviations):
    """A recommender of ratings whose lists go by what users take and like, or by the rating expected."""

    def trained_again(self, state: FittedState, part: Interactions) -> Self:
        """A model with the settings of this one, trained on a part of its ratings."""
        raise NotImplementedError

    def recommend(
        self,
        user_ids: Any,
        n: int = 10,
        exclude_seen: bool = True,
        *,
        items: Any = None,
        exclude: Any = None,
        device: str = "cpu",
        rank_by: RankedBy = "auto",
    ) -> pd.DataFrame:
        """The best n items of each user, as `Recommender.recommend`.

        Parameters
        ----------
        user_ids, n, exclude_seen, items, exclude, device
            As in `Recommender.recommend`. Lists by "both" and "taken" are made on the CPU.
        rank_by : {"auto", "both", "rating", "taken"}
            "rating": the expected rating. "taken": how likely users are to take an item, whatever they think of it
            then. "both": that and the probability that they like it, see `air_recsys.models.taking`. "auto": of a
            posterior of 1,000 ratings or more "both", unless lists by the rating were better on hidden ratings;
            else "rating". What "both" and "taken" need is learned at the first call, see `learn_lists`.

        Returns
        -------
        DataFrame
            Columns user, item, score, rank and source. By "both" and "taken" there are also, after the score, which
            is the expected rating there too and not in order: liking, the probability of a rating that is a like, see
            `lists_line_`, and taking, that the user takes the item next, see `GraphRanker.predict_proba` (NaN with
            fewer ratings than 1,000). An unknown user gets the items with most likes (by "taken", most ratings).

        Examples
        --------
        >>> from air_recsys import AIR
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> ratings[0, 3:6] = ratings[4, 1] = np.nan
        >>> model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings)
        >>> best = model.recommend(0, n=1, rank_by="both")
        >>> best["item"].tolist(), bool(best["liking"].item() > 0.8)
        ([3], True)
        """
        check_choice("exclude_seen", exclude_seen, (True, False))
        check_choice("rank_by", rank_by, RANKED_BY)
        state, asked = self._fitted(), asked_ids(user_ids, "user")
        allowed = allowed_items(state.data.items, items, exclude, state.data.users, asked)
        length = list_length(n, allowed.n_left)
        place = gpu_of(device)
        if (by := self._ranked_by(state, rank_by)) == "rating":
            return self.by_rating(state, asked, n, exclude_seen, allowed, place)
        state = self._measured(state)
        taking = self._taking(state)
        liking, weight = partial(self._liking, state, taking.liked), taking.weight if by == "both" else 0.0

        def best(users: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            left_out = allowed.left_out(rows, state.statistics.seen[users] if exclude_seen else None)
            return taking.best(users, length, weight, liking, left_out, allowed.common)

        popular = partial(_most_rated, state, taking.liked if by == "both" else -np.inf, length)
        how: dict[str, Any] = {"allowed": allowed, "clips": False, "popular": popular}
        with threads(self.n_threads):
            return self._with_numbers(state, taking, recommend_with(best, taking.likes, asked, length, **how))

    def best_items(
        self,
        user_id: Hashable,
        n: int = 10,
        exclude_seen: bool = True,
        *,
        items: Any = None,
        exclude: Any = None,
        rank_by: RankedBy = "auto",
    ) -> BestItems:
        """The best n items of one known user with scores and deviations, see `PredictsDeviations.best_items`."""
        check_choice("rank_by", rank_by, RANKED_BY)
        state = self._fitted()
        user = state.data.users.place(user_id)
        if (by := self._ranked_by(state, rank_by)) == "rating":
            return super().best_items(user_id, n, exclude_seen, items=items, exclude=exclude)
        table = self.recommend([user_id], n, exclude_seen, items=items, exclude=exclude, rank_by=by)
        ids, scores = table["item"].to_numpy(), table["score"].to_numpy()
        places, state = state.data.items.lookup(ids), self._measured(state)
        deviations = self._deviations(state, np.full(ids.size, user), places, None, scores)
        return BestItems(ids, scores, deviations, table["liking"].to_numpy())

    def learn_lists(self) -> Self:
        """Learn what lists by `recommend` need where they do not go by the rating alone, and return the model.

        Else the first list waits for it: it takes another training on four fifths of the ratings, a few regressions
        of the items on each other, and for n items up to 4096 an array of n x n. It is part of files that `save`
        writes from then on, and follows `partial_fit`, `forget` and `fold_in`.
        """
        self._ranked_by(self._fitted(), "auto")
        return self

    @property
    def lists_line_(self) -> str:
        """What counts as a like, and by what `recommend` makes lists."""
        state = self._fitted()
        by = self._ranked_by(state, "auto")
        return f"lists by {by}" + (f"; {state.origin.taking.line}" if isinstance(state.origin.taking, Taking) else "")

    def _ranked_by(self, state: FittedState, asked: RankedBy) -> RankedBy:
        """What lists go by."""
        data, equations = state.origin.data, state.origin.equations
        if asked != "auto":
            return asked
        if equations is None or not equations.knows_deviations or data.n_ratings < FEWEST or not np.ptp(data.ratings):
            return "rating"
        figures = self._taking(state).figures
        return "both" if figures.both > figures.rating else "rating"

    def _taking(self, state: FittedState) -> Taking:
        """What lists of a state follow from, learned when it is first asked for."""
        known = state.origin
        if known.taking is None:
            with lock_of(self):
                known.once("taking", lambda: self._learned(known))
        whole = known.taking
        assert isinstance(whole, Taking)
        side = state.alone
        return whole if side is None else state.once("taking", lambda: whole.of_new(state.data, side))

    def _learned(self, state: FittedState) -> Taking:
        data = state.data
        if data.n_ratings < FEWEST or np.bincount(data.user_index).max() < 1 / HIDDEN:
            return Taking.of(data)
        if data.n_ratings >= _MANY and getattr(self, "verbose", None) is not False:
            told = f"learning once what lists of {data.n_ratings:,} ratings go by, in another training"
            tqdm.write(f"{told}; learn_lists() does it in advance", file=sys.stderr)
        split = user_holdout(data, HIDDEN, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # which the training of the model has told
            again = self.trained_again(state, data.select(split.train))
        of_part = again._measured(again._fitted())
        n, every = min(LENGTH, data.n_items), Allowed(data.n_items)

        def by_rating(users: np.ndarray) -> np.ndarray:
            how: dict[str, Any] = {"n": n, "exclude_seen": True, "device": None, "allowed": every}
            return best_items_of(of_part, users, np.arange(users.size), **how)[0]

        return learned(data, split, partial(again._liking, of_part), by_rating)

    def _liking(self, state: FittedState, liked: float, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The probability of a rating of at least `liked`, of pairs of positions, (n,)."""
        values, scores = np.unique(state.origin.data.ratings), self._central(state, users, items, None)
        if state.spread is not None:
            below = values[values < liked]
            return state.spread.probabilities(scores, np.append(below[-1:], liked))[:, -1]
        deviations = self._deviations(state, users, items, None, scores)
        if values.size > MOST_VALUES:
            return ndtr((scores - liked) / deviations)
        known = state.once("rating values", lambda: RatingValues.of(state))
        return known.probabilities(scores, deviations, users)[:, values >= liked].sum(axis=1)

    def _with_numbers(self, state: FittedState, taking: Taking, table: pd.DataFrame) -> pd.DataFrame:
        """A table of lists with the expected ratings as scores, and the probabilities of liking and of taking."""
        users, items = (state.index(side).lookup(table[side].to_numpy()) for side in ("user", "item"))
        known, of_items = (table["source"] == "model").to_numpy(), state.of_side("item")
        counts, data = of_items.statistics.item_counts, of_items.data
        likes = np.bincount(data.item_index, data.ratings >= taking.liked, minlength=data.n_items)
        popular = {
            "score": of_items.statistics.damped_item_means,
            "liking": (likes + _DAMPING * taking.share) / (counts + _DAMPING),
            "taking": counts / data.n_users,
        }
        columns = {name: each[items] for name, each in popular.items()}
        pairs = users[known], items[known]
        columns["score"][known] = self.score_pairs(state, *pairs)
        columns["liking"][known] = self._liking(state, taking.liked, *pairs)
        columns["taking"][known] = taking.probabilities(*pairs)
        return table.assign(**columns).reindex(columns=["user", "item", *columns, "rank", "source"])


def _most_rated(state: FittedState, least: float, n: int, allowed: np.ndarray | None = None) -> Popular:
    """The n items with most ratings from a least one on."""
    data = state.of_side("item").data
    counts = np.bincount(data.item_index, data.ratings >= least, minlength=data.n_items)
    return first_of(counts, counts, n, allowed)
