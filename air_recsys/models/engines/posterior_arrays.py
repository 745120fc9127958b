"""The arrays of a posterior beside the scores, from which deviations and new rows follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Extent
from air_recsys.models.rows import SIDES, Side
from air_recsys.nn.posterior.equations import Rows
from air_recsys.nn.posterior.estimate import Uncertainty
from air_recsys.nn.posterior.features import POWER, Projection
from air_recsys.nn.posterior.rows import Columns, Known, Prior
from air_recsys.nn.posterior.triangles import positions_in_triangle, spans, width_of
from air_recsys.nn.posterior.unseen import UnseenPrior
from air_recsys.storage.lazy import Tensor, torch

_BLOCK = 2_000_000  # entries of the covariances of a block of pairs
_NEW_PRECISION, _NEW_WEIGHTS = 0.6, 1.5  # of S^-1, and of W of the pattern without the degree
_OF_ROWS = ("s", "_noise", "_covariances")  # names of arrays with a row for each of a side, after that of the side
_PREFIX = "spread_"  # names of these arrays in model files
_FIELDS = (
    *("user_noise", "item_noise", "users", "items", "user_weights", "item_weights"),
    *("user_precisions", "item_precisions", "user_covariances", "item_covariances"),
)  # in the order of `Uncertainty` and `Priors`


class Draw(NamedTuple):
    """The given values that new rows follow from: of the columns, and of the prior."""

    means: np.ndarray  # (n, d)
    covariances: np.ndarray | None  # triangles, (n, d (d + 1) / 2), beside means
    noise: np.ndarray  # (n,), variance of an entry of weight 1
    weights: np.ndarray  # W, (k, d)
    precision: np.ndarray  # S^-1, (d, d)


class Gaussian(NamedTuple):
    """Rows, given one draw of the other side."""

    mean: np.ndarray  # (m, d)
    covariance: np.ndarray  # triangles, (m, d (d + 1) / 2)
    scales: np.ndarray  # of their noise, (m,)


class PosteriorArrays(NamedTuple):
    """The numbers behind standard deviations and new rows, see `air_recsys.nn.posterior.estimate.Uncertainty`.

    Parameters
    ----------
    scales : ndarray, shape (2,)
        The unit of the numbers below in that of the ratings, and the common variance of a rating around its score.
    user_noise, item_noise : ndarray
        Of each user and item, multiples of that variance.
    users, items : ndarray
        Means (n, d) of factors and bias, or draws of them (n, s, d).
    user_weights, item_weights : ndarray
        W of their priors, one for each draw (s = 1 beside means), (s, k, d).
    user_precisions, item_precisions : ndarray
        S^-1, (s, d, d).
    user_basis, item_basis : ndarray
        What each item adds to the features of a user, (n_items, k), and each user to those of an item. Between these
        and the degree are the features that are known beside the pattern, see `Interactions.with_features`.
    log_degrees : ndarray, shape (2,)
        Mean logarithms of the number of ratings of users and of items.
    user_unseen, item_unseen : ndarray, optional
        M of rows without ratings, (s, g + 1, d), where features are known, see `air_recsys.nn.posterior.unseen`.
    user_unseen_covariances, item_unseen_covariances : ndarray, optional
        C, (s, d, d).
    user_covariances, item_covariances : ndarray, optional
        Upper triangles, (n, d (d + 1) / 2), beside means.
    """

    scales: np.ndarray
    user_noise: np.ndarray
    item_noise: np.ndarray
    users: np.ndarray
    items: np.ndarray
    user_weights: np.ndarray
    item_weights: np.ndarray
    user_precisions: np.ndarray
    item_precisions: np.ndarray
    user_basis: np.ndarray
    item_basis: np.ndarray
    log_degrees: np.ndarray
    user_covariances: np.ndarray | None = None
    item_covariances: np.ndarray | None = None
    user_unseen: np.ndarray | None = None
    item_unseen: np.ndarray | None = None
    user_unseen_covariances: np.ndarray | None = None
    item_unseen_covariances: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        left: Uncertainty,
        unit: float,
        projections: tuple[Projection, Projection],
        unseen: Sequence[UnseenPrior | None] = (None, None),
    ) -> Self:
        """Take over what training left, on the CPU; the projections give features of users and of items."""
        named = dict(zip(_FIELDS, (*left[1:5], *left.priors, *left[6:]), strict=True))
        arrays = {name: tensor.cpu().numpy().copy() for name, tensor in named.items() if tensor is not None}
        bases = [side.basis.to(left.rows.dtype).cpu().numpy() for side in projections]
        degrees = np.array([float(side.logarithm) for side in projections])
        whole = cls(
            np.array([unit, left.noise]), user_basis=bases[0], item_basis=bases[1], log_degrees=degrees, **arrays
        )
        for side, prior in zip(SIDES, unseen, strict=True):
            if prior is not None:
                weights, covariances = (part.to(left.rows.dtype).cpu().numpy() for part in prior[:2])
                named = {f"{side}_unseen": weights, f"{side}_unseen_covariances": covariances}
                whole = whole._replace(**named)
        return whole

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a model file."""
        return {f"{_PREFIX}{name}": array for name, array in self._asdict().items() if array is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], extent: Extent) -> Self:
        """The arrays that `to_arrays` wrote of a model of some extent.

        Raises
        ------
        ValueError
            If an array has another shape than the others ask for, a unit or variance is not above 0, or a precision
            is not positive definite.
        """
        own = {name.removeprefix(_PREFIX): array for name, array in arrays.items() if name.startswith(_PREFIX)}
        whole = cls(**own)
        whole._check_form(own, extent)
        for name in ("scales", "user_noise", "item_noise"):
            _check_positive(name, own[name])
        for side in ("user", "item"):
            _check_precisions(f"{side}_precisions", own[f"{side}_precisions"])
            if whole.user_covariances is not None:
                name = f"{side}_covariances"
                _check_positive(f"the diagonal of {name}", own[name][:, _diagonal(own[name].shape[1])])
        return whole

    def _check_form(self, own: Mapping[str, np.ndarray], extent: Extent) -> None:
        if any(array.dtype.kind != "f" for array in own.values()):
            raise ValueError("expected floating point numbers in what a posterior has left, found others")
        for name, expected in self._shapes(extent).items():
            array = own.get(name)
            if array is None and "_unseen" in name:
                raise ValueError(f"expected {name} beside known features, found none")
            if array is not None and array.shape != expected:
                raise ValueError(f"expected {name} of shape {expected}, found {array.shape}")
        beside_means = self.users.ndim == 2
        if {self.user_covariances is not None, self.item_covariances is not None} != {beside_means}:
            raise ValueError("expected covariances of both sides beside means, and of none beside draws, found others")
        if beside_means and len(self.user_weights) != 1:
            raise ValueError(f"expected one prior beside means, found {len(self.user_weights)}")

    def _shapes(self, extent: Extent) -> dict[str, tuple[int, ...]]:
        """The expected shapes, given those of the priors' weights."""
        (draws, k, d), (_, n_features, _) = self.user_weights.shape, self.item_weights.shape
        shapes: dict[str, tuple[int, ...]] = {"scales": (2,), "log_degrees": (2,)}
        middle = () if self.users.ndim == 2 else (draws,)
        n_users, n_items, (of_users, of_items) = extent.n_users, extent.n_items, extent.n_features
        sides: tuple[tuple[Side, int, int, int, int], ...] = (
            ("user", n_users, k, of_users, n_items),
            ("item", n_items, n_features, of_items, n_users),
        )
        for side, size, features, most, others in sides:
            n_known = self.n_known(side) if most else 0
            if n_known > most:
                raise ValueError(f"expected at most {most} known features of {side}s, found {n_known}")
            shapes |= {f"{side}_noise": (size,), f"{side}s": (size, *middle, d)}
            shapes |= {f"{side}_weights": (draws, features, d), f"{side}_precisions": (draws, d, d)}
            if most:
                shapes |= {f"{side}_unseen": (draws, n_known + 1, d), f"{side}_unseen_covariances": (draws, d, d)}
            trained = min(others, len(getattr(self, f"{side}_basis")))  # those that came later are no part of it
            shapes |= {
                f"{side}_basis": (trained, max(features - n_known - 2, 0)),
                f"{side}_covariances": (size, d * (d + 1) // 2),
            }
        return shapes

    def grown(self, n_users: int, n_items: int) -> Self:
        """The same with rows for new users and items."""

        def padded(array: np.ndarray | None, size: int) -> np.ndarray | None:
            if array is None or len(array) == size:
                return array
            return np.concatenate([array, np.ones((size - len(array), *array.shape[1:]), array.dtype)])

        sizes = {"user": n_users, "item": n_items}
        names = [(f"{side}{name}", size) for side, size in sizes.items() for name in _OF_ROWS]
        return self._replace(**{name: padded(getattr(self, name), size) for name, size in names})

    def of_rows(self, users: np.ndarray, items: np.ndarray) -> Self:
        """The same of some users and items, ascending."""
        kept: dict[str, np.ndarray] = {}
        for side, other, rows in (("user", "item", users), ("item", "user", items)):
            rows_of = dict.fromkeys((f"{side}s", f"{side}_noise", f"{side}_covariances"), rows)
            rows_of[f"{other}_basis"] = rows[rows < len(getattr(self, f"{other}_basis"))]
            kept |= {name: array[of] for name, of in rows_of.items() if (array := getattr(self, name)) is not None}
        return self._replace(**kept)

    def without(self, side: Side) -> Self:
        """The same for no rows of a side: those that come are new."""
        names = (*(f"{side}{name}" for name in _OF_ROWS), f"{'item' if side == 'user' else 'user'}_basis")
        kept = {name: getattr(self, name) for name in names}
        return self._replace(**{name: None if array is None else array[:0] for name, array in kept.items()})

    def with_rows(self, side: Side, others: PosteriorArrays) -> Self:
        """The same with the rows of a side of others after its own."""
        joined = {}
        for name in [f"{side}{name}" for name in _OF_ROWS]:
            rows = getattr(self, name), getattr(others, name)
            joined[name] = None if rows[0] is None else np.concatenate(rows)
        return self._replace(**joined)

    def n_trained(self, side: Side) -> int:
        """The number of rows of a side that took part in training; those after them were folded in."""
        return len(self.item_basis if side == "user" else self.user_basis)

    def has_unseen(self, side: Side) -> bool:
        """Whether rows without ratings have a prior of their own: where something is known of that side."""
        return getattr(self, f"{side}_unseen") is not None

    def n_known(self, side: Side) -> int:
        """The number of features of a side that are known beside the pattern."""
        return max(getattr(self, f"{side}_weights").shape[1] - getattr(self, f"{side}_basis").shape[1] - 2, 0)

    def n_pattern(self, side: Side) -> int:
        """The number of features of the pattern, the degree and the constant not among them."""
        return max(getattr(self, f"{side}_weights").shape[1] - 2 - self.n_known(side), 0)

    def used(self, side: Side, known: np.ndarray) -> np.ndarray:
        """The part of known numbers that the posterior saw: new rows have no places, as have none of strength 0."""
        kept = known[:, : self.n_known(side)]
        return np.pad(kept, ((0, 0), (0, self.n_known(side) - kept.shape[1])))

    def features(self, side: Side, ratings: sp.csr_array, known: np.ndarray | None = None) -> np.ndarray:
        """The features of new rows; rows and columns that training did not see are no part of the pattern.

        `known` are those beside the pattern, (n, g); by default all are at their average.
        """
        basis, logarithm = getattr(self, f"{side}_basis"), self.log_degrees[0 if side == "user" else 1]
        assert ratings.shape is not None  # SciPy types it as optional
        seen = ratings if ratings.shape[1] == len(basis) else ratings[:, : len(basis)]
        degrees = np.diff(seen.indptr).clip(min=1).astype(np.float64)
        own = sp.csr_array((np.ones(seen.indices.size), seen.indices, seen.indptr), seen.shape)
        vectors = degrees[:, None] ** -POWER * (own @ basis.astype(np.float64))
        degree = np.column_stack([np.log(degrees) - logarithm, np.ones(degrees.size)])
        if self.n_known(side):
            known = np.zeros((degrees.size, 0)) if known is None else known
            return np.column_stack([vectors, self.used(side, known), degree])
        return np.column_stack([vectors, degree])[:, -getattr(self, f"{side}_weights").shape[1] :]

    def draws(self, side: Side, columns: np.ndarray, *, new: bool) -> list[Draw]:
        """The equations' known parts for trained or new rows of a side, one a draw, for some of the other side."""
        other = "item" if side == "user" else "user"
        means, covariances = getattr(self, f"{other}s")[columns], getattr(self, f"{other}_covariances")
        draws = np.asarray(means if means.ndim == 3 else means[:, None], np.float64).swapaxes(0, 1)
        covariance = None if covariances is None else covariances[columns].astype(np.float64)
        noise = self.scales[1] * getattr(self, f"{other}_noise")[columns].astype(np.float64)
        weights, precisions = (
            getattr(self, f"{side}_{name}").astype(np.float64) for name in ("weights", "precisions")
        )
        if new:
            weights[:, : self.n_pattern(side)] *= _NEW_WEIGHTS
            precisions *= _NEW_PRECISION
        return [Draw(each, covariance, noise, *prior) for each, *prior in zip(draws, weights, precisions, strict=True)]

    def known(self, side: Side, columns: np.ndarray, *, new: bool, device: torch.device) -> list[Known]:
        """The same on a device."""
        found = []
        for means, covariances, *rest in self.draws(side, columns, new=new):
            covariance = None if covariances is None else double(covariances, device)
            found.append(Known(Rows(double(means, device), covariance), *(double(part, device) for part in rest)))
        return found

    def of_row(self, side: Side, columns: np.ndarray, features: np.ndarray, *, new: bool) -> tuple[Columns, Prior]:
        """The same for a single row with these columns and features (1, k), trained or new."""
        other = "item" if side == "user" else "user"
        means, covariances = getattr(self, f"{other}s")[columns], getattr(self, f"{other}_covariances")
        draws = (means if means.ndim == 3 else means[:, None]).swapaxes(0, 1).astype(np.float64)
        noise = self.scales[1] * getattr(self, f"{other}_noise")[columns].astype(np.float64)
        weights, precisions = (
            getattr(self, f"{side}_{name}").astype(np.float64) for name in ("weights", "precisions")
        )
        if new:
            features = np.where(np.arange(features.shape[1]) < self.n_pattern(side), _NEW_WEIGHTS, 1.0) * features
            precisions *= _NEW_PRECISION
        covariances = None if covariances is None else covariances[columns].astype(np.float64)
        return Columns(draws, covariances, noise), Prior((features @ weights)[:, 0], precisions)

    def effects(self, side: Side) -> np.ndarray:
        """Mean and standard deviation, over the other side, of what a known feature adds to a score, (g, 2).

        Of a row of which features alone are known; the means are over draws, too; in the unit of the ratings.
        """
        other, unseen = self.items if side == "user" else self.users, getattr(self, f"{side}_unseen")
        partners = (other if other.ndim == 3 else other[:, None]).astype(np.float64)  # (n, s, d)
        inputs = np.concatenate([partners[:, :, :-1], np.ones_like(partners[:, :, :1])], axis=2)
        effects = np.einsum("nsd,sgd->nsg", inputs, unseen[:, :-1].astype(np.float64)).mean(axis=1)
        return float(self.scales[0]) * np.column_stack([effects.mean(axis=0), effects.std(axis=0)])

    def unseen(self, side: Side, known: np.ndarray) -> list[Gaussian]:
        """The expected rows without ratings (n, g), one a draw."""
        inputs = np.column_stack([self.used(side, known), np.ones(len(known))]).astype(np.float64)
        priors = getattr(self, f"{side}_unseen"), getattr(self, f"{side}_unseen_covariances")
        return [
            Gaussian(inputs @ weights, triangles(covariance[None]).repeat(len(known), 0), np.ones(len(known)))
            for weights, covariance in zip(*priors, strict=True)
        ]

    def deviations(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The standard deviation of a new rating of each pair, (n,)."""
        unit = self.scales[0]
        block = max(1, _BLOCK // max(self.users[:1].size, self.users.shape[-1] ** 2))
        score = np.empty(users.size)
        for start in range(0, users.size, block):
            pairs = slice(start, start + block)
            score[pairs] = self._score_variance(users[pairs], items[pairs])
        # A covariance that was rounded may have an eigenvalue a little below 0.
        return np.sqrt(unit**2 * score.clip(min=0) + self.noise(users, items))

    def noise(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The variance of a rating of each pair around its true score, (n,)."""
        unit, noise = self.scales
        return unit**2 * noise * self.user_noise[users] * self.item_noise[items]

    def _score_variance(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        left, right = self.users[users].astype(np.float64), self.items[items].astype(np.float64)
        if self.user_covariances is None or self.item_covariances is None:  # draws, (b, s, d)
            scores = (left[:, :, :-1] * right[:, :, :-1]).sum(2) + left[:, :, -1] + right[:, :, -1]
            return scores.var(axis=1)
        of_left, of_right = (
            each.astype(np.float64) for each in (self.user_covariances[users], self.item_covariances[items])
        )
        left[:, -1] = right[:, -1] = 1.0  # a score is linear in (p, b) with (q, 1), and in (q, c) with (p, 1)
        rows, columns = np.triu_indices(left.shape[1])
        times = 2.0 - (rows == columns)  # how often an entry of a triangle stands in its matrix
        of_columns = (of_right * left[:, rows] * left[:, columns]) @ times
        of_right[:, columns == left.shape[1] - 1] = 0.0  # the biases of columns take no part in products
        of_right += right[:, rows] * right[:, columns]
        return of_columns + (of_left * of_right) @ times


def _check_positive(name: str, values: np.ndarray) -> None:
    if not (values > 0).all():
        raise ValueError(f"expected numbers above 0 in {name}, found {values[~(values > 0)][0]}")


def _check_precisions(name: str, matrices: np.ndarray) -> None:
    try:
        np.linalg.cholesky(matrices.astype(np.float64))
    except np.linalg.LinAlgError:
        raise ValueError(f"expected positive definite matrices in {name}, found another") from None


def _diagonal(size: int) -> np.ndarray:
    """The places of the diagonal in an upper triangle of so many entries."""
    return np.array([start for _, start, _ in spans(width_of(size))])


def matrices(triangles: np.ndarray) -> np.ndarray:
    """The symmetric matrices (m, d, d) with these upper triangles."""
    return triangles[:, positions_in_triangle(width_of(triangles.shape[1]))]


def triangles(matrices: np.ndarray) -> np.ndarray:
    """The upper triangles of matrices."""
    return matrices[:, *np.triu_indices(matrices.shape[-1])]


def double(array: np.ndarray, device: torch.device) -> Tensor:
    """An array as a tensor in double precision."""
    return torch.as_tensor(np.asarray(array, dtype=np.float64), device=device)
