"""What a squared error takes where it is given nothing: its settings, and targets that fall with popularity."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import ParameterError
from air_recsys.models.like_factors.rows import like_counts
from air_recsys.storage.validation import check_integer, check_real

_USER_POWER, _ITEM_POWER = 0.2, 0.1  # e_u, e_i
_WIDTH = 128
_LIKES_PER_ALPHA = 10.0
_EDGES = 0.6
_OF_LARGEST = 0.5  # a regularization as large as the likes' largest singular value leaves factors of 0
_OF_ALS = {"factors": 100, "regularization": 0.01, "alpha": 1.0}
FOUND = tuple(_OF_ALS)  # the settings that may be "auto"


def check_settings(settings: dict[str, Any], *, auto: bool) -> None:
    """Raise `ParameterError` unless factors, regularization and alpha are in range, or with `auto` "auto"."""
    expected = {"factors": "an integer >= 1", "regularization": "a number >= 0", "alpha": "a number > 0"}
    for name, kind in expected.items():
        value = settings[name]
        if auto and isinstance(value, str):
            if value != "auto":
                raise ParameterError(f'{name} must be "auto" or {kind}, found {value!r}')
        elif name == "factors":
            check_integer(name, value, minimum=1)
        else:
            check_real(name, value, strict=name == "alpha")


def is_auto(regularization: Any, alpha: Any) -> bool:
    """Whether the objective is ours to choose: neither of its two settings is given."""
    return regularization == "auto" and alpha == "auto"


def settings_for(likes: sp.csr_matrix, given: dict[str, Any]) -> dict[str, Any]:
    """The factors, regularization and alpha of a training; those that are given stay.

    Examples
    --------
    >>> likes = sp.csr_matrix(np.ones((20, 40)))
    >>> auto = dict.fromkeys(("factors", "regularization", "alpha"), "auto")
    >>> {name: round(value, 3) for name, value in settings_for(likes, auto).items()}
    {'factors': 20, 'regularization': 25.912, 'alpha': 4.0}
    >>> settings_for(likes, auto | {"alpha": 2.0})
    {'factors': 100, 'regularization': 0.01, 'alpha': 2.0}
    """
    auto = is_auto(given["regularization"], given["alpha"])
    defaults = _fitting(likes) if auto else _OF_ALS
    settings = {name: defaults[name] if value == "auto" else value for name, value in given.items()}
    kinds = {"factors": int, "regularization": float, "alpha": float}
    return {name: kinds[name](value) for name, value in settings.items()}


def _fitting(likes: sp.csr_matrix) -> dict[str, Any]:
    """Settings that grow with the likes as those that were best on several data sets did."""
    m, n = np.count_nonzero(np.diff(likes.indptr)), np.unique(likes.indices).size
    confidence = likes.nnz / m / _LIKES_PER_ALPHA
    edge = np.sqrt(likes.nnz / (m * n)) * (np.sqrt(m) + np.sqrt(n))  # norm of a matrix of noise with that many ones
    largest = likes.nnz / np.sqrt(m * n)  # at most the largest singular value of the likes
    return {
        "factors": min(_WIDTH, m, n),
        "regularization": confidence * min(_EDGES * edge, _OF_LARGEST * largest),
        "alpha": confidence / likes.data.mean(),  # of a value of 1, where the values differ
    }


class Targets(NamedTuple):
    """The targets of likes, t_ui = unit * d_u**-0.2 * d_i**-0.1, and the powers that undo them for the items."""

    unit: float  # gives the trained likes targets of mean square 1
    users: np.ndarray  # (n_users,), d_u, the numbers of likes, at least 1
    items: np.ndarray  # (n_items,), d_i

    @classmethod
    def of_likes(cls, likes: sp.csr_matrix) -> Targets:
        """The targets for a matrix of likes to train on."""
        raw = cls(1.0, like_counts(likes), like_counts(likes.T.tocsr()))
        return raw._replace(unit=float(1 / np.sqrt((raw.of("user", likes) ** 2).mean())))

    def check(self, n_users: int, n_items: int) -> None:
        """Raise `ValueError` where these are not the counts of so many users and items."""
        check_real("unit", self.unit, strict=True)
        for name, counts, size in (("users", self.users, n_users), ("items", self.items, n_items)):
            if counts.shape != (size,) or not (counts >= 1).all():
                raise ValueError(f"expected numbers of likes >= 1 of {size} {name}, found shape {counts.shape}")

    def of(self, side: str, rows: sp.csr_matrix) -> np.ndarray:
        """The target of each stored like of some rows, "user" or "item", known or new ones, shape (nnz,).

        A row has as many likes as it stores; the other side keeps the counts that are held here.
        """
        own, others = (_USER_POWER, _ITEM_POWER) if side == "user" else (_ITEM_POWER, _USER_POWER)
        held = self.items if side == "user" else self.users
        counts = np.diff(rows.indptr)
        return self.unit * np.repeat(like_counts(rows) ** -own, counts) * held[rows.indices] ** -others

    @property
    def item_powers(self) -> np.ndarray:
        """What the trained factors of the items are multiplied by, d_i**0.1, shape (n_items, 1)."""
        return self.items[:, None] ** _ITEM_POWER

    def with_rows(self, side: str, ids: Any, rows: sp.csr_matrix) -> Targets:
        """Targets with the counts of other rows at some ids, and 1 up to an id beyond the last."""
        held = self.users if side == "user" else self.items
        places = np.asarray(ids)
        counts = np.ones(max(len(held), int(places.max(initial=-1)) + 1))
        counts[: len(held)] = held
        counts[places] = like_counts(rows)
        return self._replace(**{f"{side}s": counts})


def powers_of(items: sp.csr_matrix) -> np.ndarray:
    """Return `Targets.item_powers` of rows of items, shape (n, 1)."""
    return like_counts(items)[:, None] ** _ITEM_POWER
