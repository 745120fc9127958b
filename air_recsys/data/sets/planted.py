"""Generated ratings of any size with planted groups, to compare with what a model learns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.storage.validation import RandomState, as_generator, check_choice, check_integer, check_real

_LOW, _HIGH, _MEAN = 1.0, 5.0, 3.5
_ACTIVITY, _POPULARITY = 1.1, 1.6  # spreads of the logarithms; the counts of MovieLens-1M have 1.0 and 1.8
_USER_BIAS, _ITEM_BIAS, _TABLE = 0.4, 0.35, 0.5  # standard deviations in stars
_WIDTH, _INDIVIDUAL = 4, 0.2  # number of individual factors, and the standard deviation of their product
_BLOCK = 1_000_000


class PlantedRatings(NamedTuple):
    """Ratings and the groups and means behind them.

    Attributes
    ----------
    interactions : Interactions
        Ordered by user, then by item.
    user_groups, item_groups : ndarray of int, shape (n_users,) and (n_items,)
    expected : ndarray of float32, shape (n_ratings,)
        The mean of each rating's distribution, the rounding to stars included: no prediction without knowledge of the
        noise has a lower expected error, so its RMSE is the noise floor.
    """

    interactions: Interactions
    user_groups: np.ndarray
    item_groups: np.ndarray
    expected: np.ndarray


class _Effects(NamedTuple):
    table: np.ndarray  # (user groups, item groups)
    user_groups: np.ndarray
    item_groups: np.ndarray
    user_bias: np.ndarray
    item_bias: np.ndarray
    user_factors: np.ndarray  # (n_users, 4)
    item_factors: np.ndarray  # (n_items, 4)


def make_planted_ratings(
    n_users: int,
    n_items: int,
    n_ratings: int,
    n_user_groups: int = 20,
    n_item_groups: int = 15,
    random_state: RandomState = 0,
    *,
    noise: float = 0.75,
    star: float = 0.5,
) -> PlantedRatings:
    r"""Generate ratings of many users and items with long tails and planted groups.

    A rating is :math:`3.5 + b_u + c_i + T_{g(u)h(i)} + p_u \cdot q_i + \varepsilon`, cut to 1..5 and rounded to
    stars; :math:`T` is a table of user groups by item groups, the factors p and q of width 4 are each member's own.
    Standard deviations: biases 0.4 and 0.35, table 0.5, product of the factors 0.2. Which pairs are rated depends on
    log-normal activities of users and popularities of items, not on the groups. All groups have the same size
    (within one), and every user and item has at least one rating.

    Parameters
    ----------
    n_users, n_items : int
    n_ratings : int
        Between n_users + n_items and half of all pairs.
    n_user_groups, n_item_groups : int
    random_state : int, RandomState, Generator or None
        The same seed gives the same data.
    noise : float
        Standard deviation of epsilon, in stars.
    star : {0.5, 1.0}
        Step of the scale: half stars or whole ones.

    Returns
    -------
    PlantedRatings

    Raises
    ------
    ParameterError
        If a number is out of its range.

    Examples
    --------
    >>> made = make_planted_ratings(300, 200, 5000, n_user_groups=3, n_item_groups=2)
    >>> made.interactions
    Interactions(n_users=300, n_items=200, n_ratings=5000, density=8.33 %, ratings 1..5)
    >>> np.bincount(made.user_groups).tolist()
    [100, 100, 100]
    """
    _check(n_users, n_items, n_ratings, n_user_groups, n_item_groups)
    check_real("noise", noise, strict=True)
    check_choice("star", star, (0.5, 1.0))
    rng = as_generator(random_state)
    effects = _draw_effects(n_users, n_items, n_user_groups, n_item_groups, rng)
    users, items = np.divmod(_draw_pairs(n_users, n_items, n_ratings, rng), n_items)
    users, items = users.astype(np.int32), items.astype(np.int32)
    ratings, expected = np.empty(n_ratings, np.float32), np.empty(n_ratings, np.float32)
    for start in range(0, n_ratings, _BLOCK):
        block = slice(start, start + _BLOCK)
        clean = _clean_ratings(effects, users[block], items[block])
        ratings[block] = _to_stars(clean + noise * rng.standard_normal(clean.size, np.float32), star)
        expected[block] = _mean_of_stars(clean, noise, star)
    interactions = Interactions(users, items, ratings, np.arange(n_users), np.arange(n_items))
    return PlantedRatings(interactions, effects.user_groups, effects.item_groups, expected)


def _check(n_users: int, n_items: int, n_ratings: int, n_user_groups: int, n_item_groups: int) -> None:
    check_groups("user", n_users, n_user_groups)
    check_groups("item", n_items, n_item_groups)
    least, most = n_users + n_items, n_users * n_items // 2
    if not least <= check_integer("n_ratings", n_ratings) <= most:
        raise ParameterError(
            f"n_ratings must lie between n_users + n_items, {least}, and half of all pairs, {most}, found {n_ratings}"
        )


def check_groups(kind: str, n_members: int, n_groups: int, *, minimum: int = 1) -> None:
    """Raise `ParameterError` unless there are `minimum` members and groups, and no more groups than members."""
    check_integer(f"n_{kind}s", n_members, minimum=minimum)
    if check_integer(f"n_{kind}_groups", n_groups, minimum=minimum) > n_members:
        raise ParameterError(f"n_{kind}_groups must be at most n_{kind}s={n_members}, found {n_groups}")


def _draw_effects(
    n_users: int, n_items: int, n_user_groups: int, n_item_groups: int, rng: np.random.Generator
) -> _Effects:
    def normal(deviation: float, *shape: int) -> np.ndarray:
        return (deviation * rng.standard_normal(shape)).astype(np.float32)

    deviation = (_INDIVIDUAL / np.sqrt(_WIDTH)) ** 0.5  # of a factor; the product then has _INDIVIDUAL
    return _Effects(
        normal(_TABLE, n_user_groups, n_item_groups),
        rng.permutation(np.arange(n_users) % n_user_groups),
        rng.permutation(np.arange(n_items) % n_item_groups),
        normal(_USER_BIAS, n_users),
        normal(_ITEM_BIAS, n_items),
        normal(deviation, n_users, _WIDTH),
        normal(deviation, n_items, _WIDTH),
    )


def _draw_pairs(n_users: int, n_items: int, n_ratings: int, rng: np.random.Generator) -> np.ndarray:
    """Return distinct user * n_items + item, ascending, shape (n_ratings,): each user and each item at least once."""
    activity, popularity = (rng.lognormal(0, s, n) for s, n in ((_ACTIVITY, n_users), (_POPULARITY, n_items)))
    users, items = activity.cumsum() / activity.sum(), popularity.cumsum() / popularity.sum()

    def draw(shares: np.ndarray, size: int) -> np.ndarray:
        # The last share is 1 only up to rounding.
        return np.searchsorted(shares[:-1], rng.random(size))

    everyone = np.arange(n_users) * n_items + draw(items, n_users)
    everything = draw(users, n_items) * n_items + np.arange(n_items)
    needed = _distinct([everyone, everything])
    pairs = needed
    while (missing := n_ratings - pairs.size) > 0:
        more = [draw(users, size) * n_items + draw(items, size) for size in _blocks(missing + missing // 8 + 1)]
        pairs = _distinct([pairs, *more])
    return _thinned(pairs, needed, n_ratings, rng)


def _distinct(arrays: list[np.ndarray]) -> np.ndarray:
    """Return the distinct values of all arrays, ascending: by sorting, as `np.unique` hashes, which is slower here."""
    values = np.concatenate(arrays)
    values.sort()
    return values[np.concatenate([[True], values[1:] != values[:-1]])]


def _blocks(size: int) -> list[int]:
    whole, rest = divmod(size, _BLOCK)
    return [_BLOCK] * whole + [rest] * (rest > 0)


def _thinned(pairs: np.ndarray, needed: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return `size` of the sorted pairs, among them those needed; the others are dropped at random."""
    kept = np.ones(pairs.size, dtype=bool)
    kept[np.searchsorted(pairs, needed)] = False
    free = np.flatnonzero(kept)
    kept[:] = True
    kept[rng.choice(free, pairs.size - size, replace=False)] = False
    return pairs[kept]


def _clean_ratings(effects: _Effects, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    clean = effects.table[effects.user_groups[users], effects.item_groups[items]]
    clean += effects.user_bias[users] + effects.item_bias[items] + np.float32(_MEAN)
    clean += np.einsum("nr,nr->n", effects.user_factors[users], effects.item_factors[items])
    return clean


def _to_stars(values: np.ndarray, star: float) -> np.ndarray:
    return np.clip(np.rint(values / star) * star, _LOW, _HIGH)


def _mean_of_stars(clean: np.ndarray, noise: float, star: float) -> np.ndarray:
    """Return the mean of `_to_stars` at normal noise: the sum of the steps times their probabilities."""
    mean = np.full_like(clean, _LOW)
    for threshold in np.arange(_LOW + star / 2, _HIGH, star):
        mean += np.float32(star) * ndtr((clean - np.float32(threshold)) / np.float32(noise))
    return mean
