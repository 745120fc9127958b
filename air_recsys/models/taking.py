r"""Lists from ratings: by how likely users are to take an item, and to like it then.

People rate what they have chosen, so the best rating expected is not what they would choose. Lists by both rank by

.. math:: s_{ui} = z_{ui} + w \log P(r_{ui} \ge t)

with P the probability of a rating of at least t by the model of the ratings; t the least rating that is not below the
mean of all; and z the scores of a regression of the items as in a `GraphRanker`, standardised over the items of each
user. It is of all rated pairs: a pair counts 1 with the best rating, half with the worst, over the mean of these of
its user. The weight w makes the best lists of likes, ratings from t on, in a fifth of each user's ratings that was
hidden from both models. Users without ratings have the shares of users who have rated an item in place of z.

Source: Steck, Training and Testing of Recommender Systems on Data Missing Not at Random, KDD 2010.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from air_recsys.data.ids import IdIndex
from air_recsys.data.interactions import Interactions
from air_recsys.data.scales import like_of
from air_recsys.data.splits.base import Split
from air_recsys.metrics import ndcg_at_k, top_k
from air_recsys.metrics.checks import Csr
from air_recsys.models.forgetting import Left
from air_recsys.models.graph_ranker.hidden import HeldOut, HiddenPart
from air_recsys.models.graph_ranker.inputs import RankerSettings, counted, interaction_pattern, interaction_values
from air_recsys.models.graph_ranker.ranker import of_pairs
from air_recsys.models.graph_ranker.regression import item_weights
from air_recsys.models.graph_ranker.users import of_new_items, of_new_users, ready_state, with_likes, without_likes
from air_recsys.models.learned import Factors, Selection
from air_recsys.models.ranking import ties
from air_recsys.models.ranking.allowed import among
from air_recsys.models.ranking.calibration import RankCalibration
from air_recsys.models.ranking.lists import shares_of_users
from air_recsys.models.rows import Side
from air_recsys.models.state import FittedState
from air_recsys.models.storage.contents import item_weights_from, item_weights_to_arrays

FEWEST = 1000  # ratings whose hidden fifth tells something
HIDDEN = 0.2
LENGTH = 10  # of the lists that are compared
_WEIGHTS = (2.0, 0.5, 1.0, 1.5, 3.0, 4.0, 6.0)  # of log P that are tried; the first where nothing is hidden
_SETTINGS = RankerSettings(factor_weight=0.0, regression_share=0.5, strength=1.0)
_LOSS = 0.5  # of the strength of a pair with the worst rating
_ASKED, _NEAR = 1000, 200  # users whose lists are compared, and candidates of each
_LEAST = 1e-9  # probability
_SPARE = 60  # candidates by z beyond four times the length of a list
_MOST_SCORES = 4_000_000  # held at a time
_PREFIX = "taking_"

Liking = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""The probability that users like items, of pairs of positions, (n,)."""


class Figures(NamedTuple):
    """The mean NDCG of lists of 10 on hidden likes, by what they rank; 0 where nothing was hidden."""

    rating: float = 0.0
    taken: float = 0.0
    both: float = 0.0


_UNKNOWN = Figures()


@dataclass(frozen=True, eq=False)
class Taking:
    """What lists by taking and liking follow from, beside the model of the ratings.

    Parameters
    ----------
    likes : FittedState
        That of a `GraphRanker`, with the users and items of the model in their order.
    scale : tuple of float
        The worst and the best rating.
    liked, share : float
        The least rating that is a like, t, and the share of the training ratings that are likes.
    weight : float
        Of log P, w.
    """

    likes: FittedState
    scale: tuple[float, float]
    liked: float
    share: float
    weight: float = _WEIGHTS[0]
    figures: Figures = _UNKNOWN

    @classmethod
    def of(cls, data: Interactions, calibration: RankCalibration | None = None) -> Self:
        """What lists from ratings follow from, with the weight that needs no hidden ones."""
        liked, scale = like_of(data.ratings), data.rating_scale or (data.ratings.min(), data.ratings.max())
        likes = _state(likes_of(data, scale), None, calibration)
        return cls(likes, scale, liked, float(np.mean(data.ratings >= liked)))

    @property
    def line(self) -> str:
        """What a like is, and what the choice of the weight has found."""
        like = f"like: rating >= {self.liked:g} ({100 * self.share:.0f} % of the ratings)"
        figures = ", ".join(f"{name} {value:.4f}" for name, value in self.figures._asdict().items())
        found = f"NDCG@{LENGTH} of hidden likes: {figures}" if any(self.figures) else "nothing was hidden to choose it"
        return f"{like}; weight of liking {self.weight:g}: {found}"

    def standard(self, users: np.ndarray) -> np.ndarray:
        """The standardised scores z of all items for some users, (b, n_items)."""
        ranker = ready_state(self.likes)
        scores = ranker.scorers.scores(users)
        if not ranker.first:
            scores[~ranker.with_items()[users]] = shares_of_users(self.likes)
        return _standardised(scores)[:, ranker.first :]

    def probabilities(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The probability that users take items next, of pairs, (n,); NaN where nothing was hidden."""
        ranker, shares = ready_state(self.likes), shares_of_users(self.likes)
        if self.likes.calibration is None:
            return np.full(users.size, np.nan)
        known = ranker.with_items()[users]
        found = shares[items]
        found[known] = of_pairs(ranker.probabilities, users[known], items[known], shares.size)
        return found

    def grown(self, data: Interactions, new: Interactions) -> Taking:
        """The same with new ratings taken in, after which the model of the ratings has `data`."""
        return replace(self, likes=with_likes(self.likes, likes_of(new, self.scale, data.users, data.items)))

    def without(self, left: Left) -> Taking:
        """The same of what is left of the ratings."""
        return replace(self, likes=without_likes(self.likes, left._replace(data=likes_of(left.data, self.scale))))

    def of_new(self, data: Interactions, side: Side) -> Taking:
        """The same for new users or new items alone, of whom these are the ratings."""
        known, fold = self.likes.data, of_new_users if side == "user" else of_new_items
        known_ids = (None, known.items) if side == "user" else (known.users, None)
        return replace(self, likes=fold(self.likes, likes_of(data, self.scale, *known_ids)))

    def best(
        self,
        users: np.ndarray,
        n: int,
        weight: float,
        liking: Liking,
        left_out: Csr | None = None,
        common: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The n items with the highest scores s of some users, best first, and the scores, (b, n) each.

        `left_out`, (b, n_items), stores items to leave out; `common` are those that a list may hold, ascending.
        """
        items, scores = np.full((users.size, n), -1), np.full((users.size, n), -np.inf)
        every = np.arange(self.likes.data.n_items) if common is None else common
        step = max(1, _MOST_SCORES // self.likes.data.n_items)
        for start in range(0, users.size if every.size else 0, step):
            block = slice(start, start + step)
            z = self.standard(users[block])
            if left_out is not None:
                z[left_out[block].nonzero()] = -np.inf

            def of_rows(rows: np.ndarray, columns: np.ndarray, own: np.ndarray = users[block]) -> np.ndarray:
                return liking(own[rows], every[columns])

            found, scores[block] = _best(z[:, every], n, weight, of_rows)
            items[block] = among(every, found)
        return items, scores

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a model file, beside the ratings."""
        arrays = item_weights_to_arrays(self.likes.item_weights)
        if self.likes.calibration is not None:
            arrays["calibration"] = self.likes.calibration.to_array()
        numbers = [self.likes.n_new_items, *self.scale, self.liked, self.share, self.weight, *self.figures]
        arrays["numbers"] = np.array(numbers, dtype=np.float64)
        return {f"{_PREFIX}{name}": each for name, each in arrays.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], data: Interactions) -> Self:
        """What `to_arrays` was given, of these ratings; an error where a part is missing."""
        own = {name.removeprefix(_PREFIX): each for name, each in arrays.items() if name.startswith(_PREFIX)}
        n_new, low, high, liked, share, weight, *figures = own["numbers"].tolist()
        weights = item_weights_from(data.n_items, own)
        if weights is None:
            raise ValueError("expected the regression of lists by taking, found none")
        calibration = RankCalibration.of_array(own["calibration"]) if "calibration" in own else None
        likes = _state(likes_of(data, (low, high)), weights, calibration)
        likes = replace(likes, n_new_items=min(max(int(n_new), 0), data.n_items))
        return cls(likes, (low, high), liked, share, weight, Figures._make(figures))


def _state(pairs: Interactions, weights: Csr | np.ndarray | None, calibration: RankCalibration | None) -> FittedState:
    """The state of a ranker by a regression alone, which is made where there is none."""
    weights = item_weights(counted(pairs, _SETTINGS), _SETTINGS) if weights is None else weights
    sizes, chosen = (pairs.n_users, pairs.n_items), Selection(_SETTINGS._asdict() | {"n_steps": 0})
    (users, sources), biases = (np.zeros((size, 1), np.float32) for size in sizes), [np.zeros(size) for size in sizes]
    factors = Factors(users, sources, biases[0], biases[1], 0.0)
    return FittedState(
        pairs, factors, chosen=chosen, item_weights=weights, source_factors=sources, calibration=calibration
    )


def handed_on(before: FittedState, after: FittedState, change: Callable[[Taking], Taking]) -> FittedState:
    """The state after a change of its ratings, with what its lists follow from changed alike, where it has that."""
    if isinstance(taking := before.taking, Taking):
        after.once("taking", lambda: change(taking))
    return after


def with_saved(state: FittedState, arrays: Mapping[str, np.ndarray]) -> FittedState:
    """The state of a file, with what its lists follow from where the file holds that."""
    if any(name.startswith(_PREFIX) for name in arrays):
        state.once("taking", lambda: Taking.from_arrays(arrays, state.data))
    return state


def likes_of(
    data: Interactions, scale: tuple[float, float], users: IdIndex | None = None, items: IdIndex | None = None
) -> Interactions:
    """The rated pairs as likes, 1 with the best rating and less with others; over other ids where given."""
    low, high = scale
    strengths = 1 - _LOSS * ((high - data.ratings) / ((high - low) or 1.0)).clip(0, 1)
    users, items = data.users if users is None else users, data.items if items is None else items
    rows, columns = users.lookup(data.user_ids)[data.user_index], items.lookup(data.item_ids)[data.item_index]
    return Interactions(rows, columns, np.ones(data.n_ratings), users, items, weights=strengths, empty=True)


def learned(
    data: Interactions, split: Split, liking: Callable[..., np.ndarray], by_rating: Callable[[np.ndarray], np.ndarray]
) -> Taking:
    """What lists from ratings follow from, with the weight that makes the best lists of a hidden part.

    `liking`, of a least rating and pairs, and `by_rating`, which makes lists of some users, are those of a model that
    has not seen this part.
    """
    shown, hidden, whole = data.select(split.train), data.select(split.test), Taking.of(data)
    likes = hidden.ratings >= whole.liked
    if not likes.any():
        return whole
    pattern, target = interaction_values(likes_of(shown, whole.scale)), interaction_pattern(hidden.select(likes))
    way = HeldOut(HiddenPart("hidden", pattern, target), 0, _ASKED)
    users, scores = way.users, way.scores(_SETTINGS)
    seen, liked, taken = (each[users] for each in (pattern, target, interaction_pattern(hidden)))
    z = _standardised(scores.astype(np.float64))
    z[seen.nonzero()] = -np.inf
    n, width = min(LENGTH, data.n_items), min(_NEAR, data.n_items)
    near = np.sort(top_k(z, width), axis=1)
    of_taking = np.take_along_axis(z, near, axis=1)
    of_liking = _log(liking(whole.liked, np.repeat(users, width), near.ravel())).reshape(near.shape)
    at = {
        weight: ndcg_at_k(np.take_along_axis(near, top_k(of_taking + weight * of_liking, n), axis=1), liked, n)
        for weight in (*_WEIGHTS, 0.0)
    }
    weight = max(_WEIGHTS, key=at.__getitem__)
    figures = Figures(ndcg_at_k(by_rating(users), liked, n), at[0.0], at[weight])
    calibration = RankCalibration.of(scores, seen, taken, at_random=True)
    return replace(whole, likes=replace(whole.likes, calibration=calibration), weight=weight, figures=figures)


def _standardised(scores: np.ndarray) -> np.ndarray:
    """The scores of each user, (b, n_items), with mean 0 and deviation 1, in their place."""
    widths = scores.std(axis=1, keepdims=True)
    scores -= scores.mean(axis=1, keepdims=True)
    scores /= np.where(widths > 0, widths, 1.0)
    return scores


def _log(probabilities: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(probabilities, _LEAST))


def _best(z: np.ndarray, n: int, weight: float, liking: Liking) -> tuple[np.ndarray, np.ndarray]:
    """The n columns with the highest scores of each row, and these; z is -inf at what is left out.

    As log P is at most 0, z is a bound: those with the highest z are asked for P until no other one can come before
    them.
    """
    columns, scores = np.full((len(z), n), -1), np.full((len(z), n), -np.inf)
    rows, width = np.arange(len(z)), z.shape[1]
    size = min(width, 4 * n + _SPARE)
    while rows.size:
        own = z[rows]
        near = np.sort(np.argpartition(-own, size - 1, axis=1)[:, :size], axis=1)  # ascending, as ties are
        total = np.take_along_axis(own, near, axis=1)
        lowest, reach = total.min(axis=1), np.abs(own, where=np.isfinite(own), out=np.zeros_like(own)).max(axis=1)
        asked = np.nonzero(np.isfinite(total)) if weight else (np.empty(0, np.int64),) * 2
        total[asked] += weight * _log(liking(rows[asked[0]], near[asked]))
        found, best = ties.best_of(total, min(n, size), reach + weight)
        columns[rows, : found.shape[1]] = np.where(found < 0, -1, np.take_along_axis(near, found.clip(min=0), axis=1))
        scores[rows, : found.shape[1]] = best
        rows = rows[(best[:, -1] <= lowest) & (size < width)]
        size = min(width, 8 * size)
    return columns, scores
