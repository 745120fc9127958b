r"""The sources of a score under a posterior, and the variances of scores.

With all else held fixed, the factors' half of the equations of a user (`posterior_rows`) with bias b is

.. math:: (S^{-1}_{pp} + t A_{pp})\, p = \big(S^{-1} (W^\top f - (0, b))\big)_p + t \sum_j h_j,

so :math:`p \cdot q` is what the pattern says and what each known feature of the user says (the first term, a sum over
features), and one contribution for each rated item.

A user without ratings has the factors that its features say (`air_recsys.nn.posterior.unseen`).

The equations of the item give another view of :math:`c + p \cdot q`, with the users held fixed: what each known
feature of the item adds to its bias and, by its factors, for this user.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from air_recsys.models.engines.posterior_arrays import Draw, PosteriorArrays, matrices, triangles
from air_recsys.models.rows import Edges, ScoreContributions, Side, other_side
from air_recsys.models.state import FittedState
from air_recsys.nn.posterior.prior import inverse_scale


def contributions_of(
    state: FittedState, arrays: PosteriorArrays, trained: PosteriorArrays, user: int, item: int
) -> ScoreContributions:
    """The sources of a personal score: the pattern, features and the rated items, no graphs.

    `trained` are the arrays of the training, others than `arrays` for new rows alone.
    """
    of_item_features = _of_item_features(state, arrays, trained, user, item)
    arrays, item = _beside_trained(state, arrays, trained, "item", item)
    sources = state.sources(user, np.empty(0, dtype=np.intp))
    rated, ratings, weights = sources[:3]
    n_items, unit = len(arrays.item_noise), float(arrays.scales[0])
    bias = float(state.factors.user_biases[user]) / unit
    values = (sources.deviations + state.origin.factors.item_biases[rated]) / unit + bias
    row = sp.csr_array((ratings, rated, [0, rated.size]), shape=(1, n_items))
    own, known = _places_of_known(arrays, "user"), _known_of(state, arrays, "user", user)
    features = arrays.features("user", row, known)[0]
    pattern, of_items, of_features = 0.0, np.zeros(rated.size), np.zeros(own.stop - own.start)
    draws = arrays.draws("user", np.append(rated, item), new=user >= arrays.n_trained("user"))
    for number, draw in enumerate(draws):
        if known is not None and not rated.size:
            unseen = _of_unseen(arrays, "user", known[0], number)[:, :-1] @ draw.means[-1, :-1]
            of_features += unseen[:-1]
            pattern += unseen[-1]
            continue
        means, confidence = draw.means, _confidence(draw, weights, _noise_within(arrays, "user", user, rated.size))
        precision, inputs = draw.precision, means[:-1, :-1]
        matrix = precision[:-1, :-1] + (inputs.T * confidence) @ inputs + _covariance(draw, confidence)
        summands = (values - means[:-1, -1] - bias)[:, None] * inputs  # (k, r)
        if draw.covariances is not None:
            summands -= matrices(draw.covariances)[:-1, :-1, -1]
        reach = np.linalg.solve(matrix, means[-1, :-1])
        of_items += confidence * (summands @ reach)
        says = (features[:, None] * draw.weights) @ (precision[:-1].T @ reach)  # (k,), of each feature
        of_features += says[own]
        pattern += says.sum() - says[own].sum() - bias * float(precision[:-1, -1] @ reach)
    of_sources = np.column_stack([unit * of_items / len(draws), np.zeros(rated.size)])
    no_edges, nothing = Edges(sp.csr_array((n_items, n_items)), 0.0), np.zeros(n_items)
    return ScoreContributions(
        sources,
        unit * float(pattern) / len(draws),
        of_sources,
        no_edges,
        nothing,
        nothing,
        unit * of_features / len(draws),
        of_item_features,
    )


def _beside_trained(
    state: FittedState, arrays: PosteriorArrays, trained: PosteriorArrays, side: Side, row: int
) -> tuple[PosteriorArrays, int]:
    """Arrays that know all rows of a side, the new ones after the trained ones, and the place of a row in them."""
    if state.alone != side:
        return arrays, row
    n_trained = len(getattr(trained, f"{side}_noise"))
    return state.once("beside trained ones", lambda: trained.with_rows(side, arrays)), n_trained + row


def _of_item_features(
    state: FittedState, arrays: PosteriorArrays, trained: PosteriorArrays, user: int, item: int
) -> np.ndarray:
    """The share of each known feature of an item in its bias and its product with a user's factors, (g,)."""
    own = _places_of_known(arrays, "item")
    found, known = np.zeros(own.stop - own.start), _known_of(state, arrays, "item", item)
    if known is None:
        return found
    data = state.of_side("item").data
    place = np.flatnonzero(data.item_index == item)
    users, weights = data.user_index[place], data.weights
    arrays, user = _beside_trained(state, arrays, trained, "user", user)
    weights = np.ones(place.size) if weights is None else weights[place]
    draws = arrays.draws("item", np.append(users, user), new=item >= arrays.n_trained("item"))
    for number, draw in enumerate(draws):
        inputs = draw.means.copy()
        inputs[:, -1] = 1.0  # a score is linear in (q, c) with (p, 1)
        if not place.size:
            found += _of_unseen(arrays, "item", known[0], number)[:-1] @ inputs[-1]
            continue
        confidence = _confidence(draw, weights, _noise_within(arrays, "item", item, place.size))
        precision = draw.precision
        matrix = precision + (inputs[:-1].T * confidence) @ inputs[:-1]
        matrix[:-1, :-1] += _covariance(draw, confidence)
        found += known[0] * (draw.weights[own] @ (precision @ np.linalg.solve(matrix, inputs[-1])))
    return float(arrays.scales[0]) * found / len(draws)


def _of_unseen(arrays: PosteriorArrays, side: Side, known: np.ndarray, draw: int) -> np.ndarray:
    """The share of each feature in a row without ratings, and last that of all such rows, (g + 1, d)."""
    return np.append(known, 1.0)[:, None] * getattr(arrays, f"{side}_unseen")[draw]


def _known_of(state: FittedState, arrays: PosteriorArrays, side: Side, row: int) -> np.ndarray | None:
    features = state.features(side)
    return None if features is None or not arrays.has_unseen(side) else arrays.used(side, features.numbers([row]))


def _places_of_known(arrays: PosteriorArrays, side: Side) -> slice:
    """The places of the known features in W: before the degree and the constant."""
    last = getattr(arrays, f"{side}_weights").shape[1] - 2
    return slice(last - arrays.n_known(side), last)


def _noise_within(arrays: PosteriorArrays, side: Side, row: int, count: int) -> float:
    """The noise that a row with so many ratings was solved with, 1 / E t."""
    noise = float(getattr(arrays, f"{side}_noise")[row])
    return noise / float(inverse_scale(np.array(count))) if row >= arrays.n_trained(side) else noise


def _confidence(draw: Draw, weights: np.ndarray, own_noise: float) -> np.ndarray:
    """The inverse variance of each rating, (k,); the last of the other side's rows is that of the pair."""
    return weights / (draw.noise[:-1] * own_noise)


def _covariance(draw: Draw, confidence: np.ndarray) -> np.ndarray | float:
    """The part of the covariances of the other side's factors in the equations, (r, r); 0 for draws."""
    if draw.covariances is None:
        return 0.0
    return np.einsum("j,jab->ab", confidence, matrices(draw.covariances)[:-1, :-1, :-1])


def score_covariance(arrays: PosteriorArrays, user: int, items: np.ndarray, side: Side = "user") -> np.ndarray:
    r"""The covariances :math:`x_i^\top S x_j` of a user's scores at some items, (k, k), in the unit of the ratings.

    S is the covariance of the user's factors and bias, and :math:`x = (q, 1)` of an item; with draws they are those of
    the drawn scores. With the side "item" they are those of an item at some users.
    """
    unit, covariances = float(arrays.scales[0]), getattr(arrays, f"{side}_covariances")
    rows, columns = (getattr(arrays, f"{each}s") for each in (side, other_side(side)))
    if covariances is None:
        own, others = (part.astype(np.float64) for part in (rows[user], columns[items]))
        scores = np.einsum("ksd,sd->ks", others[:, :, :-1], own[:, :-1]) + others[:, :, -1] + own[:, -1]
        return unit**2 * np.atleast_2d(np.cov(scores, bias=True))
    inputs, spread = _with_one(columns[items]), matrices(covariances[[user]].astype(np.float64))[0]
    return unit**2 * (inputs @ spread @ inputs.T)


_MOST_OTHERS = 2000  # of models of draws, evenly spaced
_BLOCK = 256


def score_variances(arrays: PosteriorArrays, side: Side) -> np.ndarray:
    r"""The mean variance of the scores of each row of a side without noise, (n,), in the unit of the ratings.

    With means and covariances the variance of a score is :math:`\tilde p^\top C \tilde p + \tilde q^\top S \tilde q
    + \mathrm{tr}(S' C')`, where S and C are the covariances of factors and bias of the user and of the item, S'
    and C' those of the factors alone, and :math:`\tilde p = (p, 1)`, :math:`\tilde q = (q, 1)`. It is linear in
    what the other side has, so its mean over all of them follows from two matrices. With draws it is the
    variance over the draws.
    """
    own, other = (arrays.users, arrays.items) if side == "user" else (arrays.items, arrays.users)
    if own.ndim == 3:
        variances = _of_draws(own, other)
    else:
        assert arrays.user_covariances is not None
        assert arrays.item_covariances is not None
        covariances = arrays.user_covariances, arrays.item_covariances
        variances = _of_means(own, other, *(covariances if side == "user" else covariances[::-1]))
    return float(arrays.scales[0]) ** 2 * variances.clip(min=0)


def _of_means(own: np.ndarray, other: np.ndarray, spread: np.ndarray, of_other: np.ndarray) -> np.ndarray:
    left, right = _with_one(own), _with_one(other)
    mean_spread = matrices(of_other.mean(axis=0, dtype=np.float64)[None])[0]
    moment = right.T @ right / len(right)
    moment[:-1, :-1] += mean_spread[:-1, :-1]
    times = 2.0 - np.eye(len(moment))  # off the diagonal twice
    of_own = spread.astype(np.float64) @ triangles((times * moment)[None])[0]
    return of_own + np.einsum("nd,de,ne->n", left, mean_spread, left, optimize=True)


def _with_one(means: np.ndarray) -> np.ndarray:
    """Factors with 1 in place of the bias."""
    return np.column_stack([means[:, :-1], np.ones(len(means))]).astype(np.float64)


def _of_draws(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    few = np.unique(np.linspace(0, len(other) - 1, min(len(other), _MOST_OTHERS)).astype(np.int64))
    others = other[few].astype(np.float64)
    variances = np.empty(len(own))
    for start in range(0, len(own), _BLOCK):
        rows = own[start : start + _BLOCK].astype(np.float64)
        total = np.zeros((len(rows), few.size))
        squared = np.zeros_like(total)
        for draw in range(rows.shape[1]):
            left, right = rows[:, draw], others[:, draw]
            scores = left[:, :-1] @ right[:, :-1].T + left[:, -1:] + right[:, -1]
            total += scores
            squared += scores**2
        n_draws = rows.shape[1]
        variances[start : start + _BLOCK] = (squared / n_draws - (total / n_draws) ** 2).mean(axis=1)
    return variances
