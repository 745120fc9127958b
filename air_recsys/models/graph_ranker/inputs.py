"""What a `GraphRanker` is given: its settings, who has what, how much an item of a user counts, and what gains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.metrics.checks import Csr
from air_recsys.storage.validation import check_choice, check_real

_LATEST = 0.1  # share of the interactions that a trend is read from
_PRIOR = 2.0  # interactions at the mean rate, added to those of each item
_RANGES = {
    "source": (-2.0, 10.0),
    "target": (-2.0, 10.0),
    "share": (0.0, 1.0),
    "penalty": (0.0, 1e6),
    "life": (0.0, 1e6),
    "strength": (0, 5),
}
"""By the last word of a name."""
_ABOVE_ZERO = ("factor_temperature", "regression_penalty")
STRENGTHS = ("alike", "as they are", "roots", "logs", "ranks", "BM25")
"""How values of interactions count, by the number that is the setting `strength`."""
_SATURATION = 1.2  # k of BM25
WORTH = 0.5  # of an event of another kind beside one of the target, until hidden parts tell


class RankerSettings(NamedTuple):
    """What a `GraphRanker` chooses on hidden parts of its training data.

    An exponent says how much less something popular counts: it is divided by (number of its interactions)^exponent.
    """

    factor_temperature: float = 0.15  # of the exponentials of cosines
    regression_exponent: float = 0.5  # of users, where items are regressed on each other
    regression_share: float = 1.0  # of the items' own degrees in the penalty; the rest is the same for all
    regression_penalty: float = 8.0
    regression_source: float = 0.25
    regression_target: float = -0.25
    user_half_life: float = 0.0  # an item counts half if its user has so many later ones; 0: all count alike
    item_trend: float = 0.0  # power of an item's share of the latest interactions over its share of all
    factor_weight: float = 0.5
    regression_weight: float = 1.0
    strength: float = 0.0  # how values count, see `strengths`; 0: all alike

    @property
    def weights(self) -> dict[str, float]:
        """The weights of factors and regression, without those that are 0."""
        weights = {"factor": self.factor_weight, "regression": self.regression_weight}
        return {name: weight for name, weight in weights.items() if weight}

    @classmethod
    def of_values(cls, values: Mapping[str, Any]) -> Self:
        """The settings among some values by name; raise `LookupError` or `ValueError` where they are not there."""
        given = {"strength": 0.0, **values}  # older files have none
        settings = cls(*(float(given[name]) for name in cls._fields))
        if not np.isfinite(settings).all():
            raise ValueError("expected finite settings, found NaN or infinity")
        return settings


def check_settings(settings: Any) -> None:
    """Raise `ParameterError` unless these are settings by name, each in its range."""
    if not isinstance(settings, Mapping):
        raise ParameterError(f"settings must be a mapping or None, found {type(settings).__name__}")
    for name, value in settings.items():
        check_choice("a name in settings", name, RankerSettings._fields)
        lowest, highest = _RANGES.get(name.rpartition("_")[2], (0.0, 10.0))
        check_real(name, value, minimum=lowest, maximum=highest, strict=name in _ABOVE_ZERO)
        if name == "strength":
            check_choice(name, value, range(len(STRENGTHS)))
    if not RankerSettings(**settings).weights:
        raise ParameterError("expected factor_weight or regression_weight above 0 in settings, found both 0")


def interaction_pattern(data: Interactions) -> Csr:
    """1 for every pair that interacted, (n_users, n_items)."""
    ones = np.ones(data.n_ratings, dtype=np.float32)
    return sp.csr_array((ones, (data.user_index, data.item_index)), shape=(data.n_users, data.n_items))


def interaction_values(data: Interactions) -> Csr:
    """How much there is of every pair, in the order of `interaction_pattern`: weights, else ratings, 0 if below it.

    1 where all are equal.
    """
    values = data._ratings if data.weights is None else data.weights
    if not values.size or max(values.min(), 0) == max(values.max(), 0):
        return interaction_pattern(data)
    pairs, shape = (data.user_index, data.item_index), (data.n_users, data.n_items)
    return sp.csr_array((np.maximum(values, 0).astype(np.float32), pairs), shape=shape)


def differ(values: Csr) -> bool:
    """Whether the values of a matrix differ."""
    return values.nnz > 0 and values.data.min() < values.data.max()


def strengths(values: Csr, strength: float) -> Csr:
    r"""How much the values of each row count, with a mean of 1 in each.

    With t a value over the mean of its row they are t, :math:`\sqrt t`, :math:`1 + \log(1 + t)`, 1/2 and its rank in
    the row over their number, or :math:`t / (1.2 + t)`, by the number of `STRENGTHS`. So the unit of the values does
    not matter, nor does a new row need others.
    """
    if not strength or not differ(values):
        return ones_of(values, values.shape[1])
    relative = _over_means(values, values.data.astype(np.float64))
    match STRENGTHS[int(strength)]:
        case "roots":
            relative = np.sqrt(relative)
        case "logs":
            relative = 1 + np.log1p(relative)
        case "ranks":
            relative = 0.5 + _ranks(values)
        case "BM25":
            relative = relative / (_SATURATION + relative)
    data = _over_means(values, relative).astype(np.float32)
    return sp.csr_array((data, values.indices, values.indptr), shape=values.shape)


def _over_means(rows: Csr, values: np.ndarray) -> np.ndarray:
    """Values at the entries of rows, divided by the means of these; 1 where they are 0."""
    counts, places = np.diff(rows.indptr), rows_of(rows)
    means = (np.bincount(places, values, counts.size) / np.maximum(counts, 1))[places]
    return np.divide(values, means, out=np.ones_like(values), where=means > 0)


def _ranks(values: Csr) -> np.ndarray:
    """The rank of each entry in its row over their number, that of equal ones their mean."""
    rows = rows_of(values)
    return pd.Series(values.data).groupby(rows).rank().to_numpy() / np.diff(values.indptr)[rows]


def rows_of(matrix: Csr) -> np.ndarray:
    """The row of each entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def counted(data: Interactions, settings: RankerSettings) -> Csr:
    """How much every pair counts, in the order of `interaction_pattern`; with other kinds these pairs and theirs."""
    own = strengths(interaction_values(data), settings.strength) if settings.strength else interaction_pattern(data)
    if data.kinds is None:
        return own
    others = {name: interaction_values(each) for name, each in data.kinds.beside.items()}
    return with_kinds(own, others, data.kinds.worths, settings.strength)


def with_kinds(own: Csr, others: Mapping[str, Csr], worths: Mapping[str, float], strength: float) -> Csr:
    """How much pairs count: the most of what events of a target count and, times their worths, those of other kinds.

    Examples
    --------
    >>> views = sp.csr_array([[1.0, 0.0], [1.0, 1.0]])
    >>> with_kinds(sp.csr_array([[1.0, 0.0], [0.0, 0.0]]), {"view": views}, {"view": 0.5}, 0).toarray().tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    for name, values in others.items():
        if worth := worths.get(name, WORTH):
            own = sp.csr_array(own.maximum(np.float32(worth) * strengths(values, strength)))
    own.sort_indices()
    return own


def entries_beside(rows: Csr, others: Csr) -> Csr:
    """The entries of a matrix where another one of its shape has none."""
    kept = ~np.isin(_places(rows), _places(others))
    counts = np.bincount(rows_of(rows)[kept], minlength=rows.shape[0])
    indptr = np.append(0, counts.cumsum()).astype(rows.indptr.dtype)
    return sp.csr_array((rows.data[kept], rows.indices[kept], indptr), shape=rows.shape)


def _places(rows: Csr) -> np.ndarray:
    return rows_of(rows) * np.int64(rows.shape[1]) + rows.indices


def ones_of(rows: Any, n_columns: int) -> Csr:
    """1 for every stored entry of a CSR matrix, with so many columns."""
    ones = np.ones(rows.nnz, dtype=np.float32)
    return sp.csr_array((ones, rows.indices, rows.indptr), shape=(rows.indptr.size - 1, n_columns))


def interaction_times(data: Interactions) -> Csr | None:
    """The time of every pair, in the order of `interaction_pattern`; None where there are none that differ."""
    return None if data.timestamps is None or not np.ptp(data.timestamps) else data.times_to_csr()


def some_users(pattern: Csr, seed: int, most: int) -> Csr:
    """The rows of a pattern, or some of them, at random, that have at most so many interactions."""
    return pattern if pattern.nnz <= most else pattern[rows_of_some(pattern, seed, most)]


def rows_of_some(pattern: Csr, seed: int, most: int) -> np.ndarray:
    """The positions of `some_users`, ascending."""
    users = np.random.default_rng(seed).permutation(pattern.shape[0])
    within = np.cumsum(np.diff(pattern.indptr)[users]) <= most
    return np.sort(users[within])


def times_columns(matrix: Csr, scales: np.ndarray) -> Csr:
    """A matrix with its columns multiplied, in the type of the matrix."""
    data = matrix.data * scales.astype(matrix.dtype)[matrix.indices]
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def own_items(pattern: Csr, data: Interactions, settings: RankerSettings) -> Csr:
    """How much each item of a user counts in its scores, (n_users, n_items), by `counted`, the pattern of `data`."""
    times = interaction_times(data) if settings.user_half_life else None
    return with_half_life(pattern, times, settings.user_half_life)


def item_gains(data: Interactions, settings: RankerSettings) -> np.ndarray:
    """The logs of what the scores of the items are multiplied by, (n_items,); 0 without a trend or times."""
    times = interaction_times(data) if settings.item_trend else None
    return np.zeros(data.n_items) if times is None else settings.item_trend * log_trend(times)


def with_half_life(pattern: Csr, times: Csr | None, half_life: float) -> Csr:
    """A pattern where an entry counts h / (h + k) times as much, with h the half-life and k later entries of its row.

    Entries of the same time count the same. A half-life of 0, or no times: all count alike.
    """
    if not half_life or times is None:
        return pattern
    rows = rows_of(pattern)
    later = np.diff(pattern.indptr)[rows] - pd.Series(times.data).groupby(rows).rank(method="max").to_numpy()
    weights = pattern.data * (half_life / (half_life + later)).astype(pattern.dtype)
    return sp.csr_array((weights, pattern.indices, pattern.indptr), shape=pattern.shape)


def log_trend(times: Csr) -> np.ndarray:
    r"""The log of how much more of the latest tenth each item has than of all interactions, (n_items,).

    .. math:: t_j = \log \frac{n_j^{latest} + 2}{x n_j + 2}

    with x the share that is latest, a tenth or a little more where many have the same time.
    """
    first = np.sort(times.data)[int((1 - _LATEST) * times.nnz)]
    latest = times.data >= first
    share, counts = latest.mean(), np.bincount(times.indices, minlength=times.shape[1])
    gained = np.bincount(times.indices[latest], minlength=times.shape[1])
    return np.log((gained + _PRIOR) / (share * counts + _PRIOR))
