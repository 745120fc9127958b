"""Kernels of what rows are described by: the similarity of two, in [0, 1], also of rows that come later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.storage.reading import checked_csr

_WORD = 3  # letters
_LETTERS = 26
NumbersKind = Literal["tanimoto", "cosine", "rbf"]


class Kernel(Protocol):
    """Rows of one description."""

    def similarity(self, others: Any = None) -> np.ndarray:
        """Of rows of others (k), or of its own, to its own (n), in [0, 1]; (k, n)."""
        ...

    def take(self, rows: np.ndarray) -> Self:
        """The same of some rows."""
        ...

    def joined(self, others: Self) -> Self:
        """The same of its rows and of others after them."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """What it is made of, for a file."""
        ...

    def present(self) -> np.ndarray:
        """Which rows it knows, bool (n,)."""
        ...

    def nothing(self, n: int) -> Self:
        """Rows of which nothing is known."""
        ...


class Bits(NamedTuple):
    r"""Fingerprints: Tanimoto, :math:`|x \cap y| / |x \cup y|`. Empty ones are like none."""

    packed: np.ndarray  # uint8, (n, n_bits / 8), the lowest bit first

    def similarity(self, others: Self | None = None) -> np.ndarray:
        """See `Kernel`."""
        own = self._unpacked()
        rows = own if others is None else others._unpacked()
        return tanimoto(rows, own)

    def take(self, rows: np.ndarray) -> Self:
        """See `Kernel`."""
        return type(self)(self.packed[rows])

    def joined(self, others: Self) -> Self:
        """See `Kernel`."""
        return type(self)(np.concatenate([self.packed, others.packed]))

    def arrays(self) -> dict[str, np.ndarray]:
        """See `Kernel`."""
        return {"packed": self.packed}

    def present(self) -> np.ndarray:
        """See `Kernel`."""
        return np.asarray(self.packed.any(axis=1))

    def nothing(self, n: int) -> Self:
        """See `Kernel`."""
        return type(self)(np.zeros((n, self.packed.shape[1]), np.uint8))

    def _unpacked(self) -> np.ndarray:
        return np.unpackbits(self.packed, axis=1, bitorder="little").astype(np.float32)  # sums of ones are exact


class Words(NamedTuple):
    """Counts of all words of three letters in sequences: the cosine, which is the spectrum kernel."""

    counts: sp.csr_array  # (n, 26^k)

    @classmethod
    def of(cls, sequences: list[str], k: int = _WORD) -> Self:
        """Of sequences of letters; shorter ones have no word."""
        words, rows = [], []
        powers = _LETTERS ** np.arange(k)[::-1]
        for row, sequence in enumerate(sequences):
            letters = np.frombuffer(sequence.upper().encode(), np.uint8).astype(np.int64) - ord("A")
            if letters.size >= k:
                words.append(np.lib.stride_tricks.sliding_window_view(letters, k) @ powers)
                rows.append(np.full(words[-1].size, row))
        places = (np.concatenate(rows or [[]]).astype(np.int64), np.concatenate(words or [[]]).astype(np.int64))
        counts = sp.coo_array((np.ones(places[0].size), places), shape=(len(sequences), _LETTERS**k))
        return cls(sp.csr_array(counts.tocsr()))

    def similarity(self, others: Self | None = None) -> np.ndarray:
        """See `Kernel`."""
        from sklearn.metrics.pairwise import cosine_similarity

        rows = self.counts if others is None else others.counts
        return np.asarray(cosine_similarity(rows, self.counts)).clip(0, 1)

    def take(self, rows: np.ndarray) -> Self:
        """See `Kernel`."""
        return type(self)(self.counts[rows])

    def joined(self, others: Self) -> Self:
        """See `Kernel`."""
        return type(self)(sp.csr_array(sp.vstack([self.counts, others.counts])))

    def arrays(self) -> dict[str, np.ndarray]:
        """See `Kernel`."""
        return {"counts": self.counts.data, "words": self.counts.indices, "starts": self.counts.indptr}

    def present(self) -> np.ndarray:
        """See `Kernel`."""
        return np.diff(self.counts.indptr) > 0

    def nothing(self, n: int) -> Self:
        """See `Kernel`."""
        width: Any = self.counts.shape
        return type(self)(sp.csr_array((n, width[1])))


class Numbers(NamedTuple):
    r"""Rows of numbers: Tanimoto, the cosine, or :math:`\exp(-|x - y|^2 / m)` of columns of the first ones' scales."""

    rows: np.ndarray  # (n, f), of NaN where nothing is known
    kind: NumbersKind
    middle: np.ndarray  # (f,)
    scale: np.ndarray  # (f,)
    width: float  # m, the median of the first rows' squared distances

    @classmethod
    def of(cls, rows: np.ndarray, kind: NumbersKind) -> Self:
        """Of first rows."""
        middle, scale = rows.mean(axis=0), rows.std(axis=0)
        scale[scale <= 1e-12 * abs(middle)] = 1
        made = cls(rows, kind, middle, scale, 1.0)
        if kind != "rbf" or len(rows) < 2:
            return made
        apart = made._apart(made)[np.triu_indices(len(rows), 1)]
        return made._replace(width=float(np.median(apart)) if apart.any() else 1.0)

    def similarity(self, others: Self | None = None) -> np.ndarray:
        """See `Kernel`."""
        others = self if others is None else others
        if self.kind == "rbf":
            return np.exp(-self._apart(others) / self.width)
        rows, own = np.nan_to_num(others.rows), np.nan_to_num(self.rows)
        if self.kind == "tanimoto":
            return tanimoto(rows, own)
        from sklearn.metrics.pairwise import cosine_similarity

        return np.asarray(cosine_similarity(rows, own)).clip(0, 1)

    def take(self, rows: np.ndarray) -> Self:
        """See `Kernel`."""
        return self._replace(rows=self.rows[rows])

    def joined(self, others: Self) -> Self:
        """See `Kernel`."""
        return self._replace(rows=np.concatenate([self.rows, others.rows]))

    def arrays(self) -> dict[str, np.ndarray]:
        """See `Kernel`."""
        rows, known = np.nan_to_num(self.rows), self.present()
        return {
            "rows": rows,
            "known": known,
            "middle": self.middle,
            "scale": self.scale,
            "width": np.array([self.width]),
        }

    def present(self) -> np.ndarray:
        """See `Kernel`."""
        return np.asarray(~np.isnan(self.rows).any(axis=1))

    def nothing(self, n: int) -> Self:
        """See `Kernel`."""
        return self._replace(rows=np.full((n, self.rows.shape[1]), np.nan))

    def _apart(self, others: Self) -> np.ndarray:
        from sklearn.metrics.pairwise import euclidean_distances

        rows, own = (np.nan_to_num((each - self.middle) / self.scale) for each in (others.rows, self.rows))
        return euclidean_distances(rows, own, squared=True)


class Table(NamedTuple):
    """A similarity as it was given; rows that come later bring their own."""

    values: np.ndarray  # (n, n), NaN where nothing is known; or (k, n + k), of later rows to these and to each other

    def similarity(self, others: Self | None = None) -> np.ndarray:
        """See `Kernel`."""
        return np.nan_to_num(self.values if others is None else others.values[:, : len(self.values)])

    def take(self, rows: np.ndarray) -> Self:
        """See `Kernel`."""
        return type(self)(self.values[np.ix_(rows, rows)])

    def joined(self, others: Self) -> Self:
        """See `Kernel`."""
        own, later = len(self.values), others.values
        return type(self)(np.block([[self.values, later[:, :own].T], [later]]))

    def arrays(self) -> dict[str, np.ndarray]:
        """See `Kernel`."""
        return {"values": np.nan_to_num(self.values), "known": self.present()}

    def present(self) -> np.ndarray:
        """See `Kernel`."""
        return ~np.isnan(np.diagonal(self.values, self.values.shape[1] - self.values.shape[0]))

    def nothing(self, n: int) -> Self:
        """See `Kernel`."""
        return type(self)(np.full((n, len(self.values) + n), np.nan))


def tanimoto(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    r"""Return :math:`x^\top y / (|x|^2 + |y|^2 - x^\top y)` of rows (k, f) and of others (n, f); (k, n), in float64.

    Examples
    --------
    >>> tanimoto(np.array([[1.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])).tolist()
    [[0.5, 0.0]]
    """
    products = (rows @ columns.T).astype(np.float64)
    union = (rows * rows).sum(axis=1, dtype=np.float64)[:, None] + (columns * columns).sum(axis=1, dtype=np.float64)
    union -= products
    return np.divide(products, union, out=np.zeros_like(products), where=union > 0)


def kernel_from(kind: str, arrays: Mapping[str, np.ndarray], n_rows: int) -> Any:
    """The kernel of `arrays()` of a file; kind is the name of its class, or that of `Numbers`."""
    kernel: Any
    if kind == "Bits":
        kernel = Bits(_checked(arrays["packed"], np.uint8, 2))
    elif kind == "Words":
        shape = (n_rows, _LETTERS**_WORD)
        kernel = Words(checked_csr(arrays["counts"], arrays["words"], arrays["starts"], shape))
    elif kind == "Table":
        values, lacking = _checked(arrays["values"], np.float64, 2), ~_checked(arrays["known"], np.bool_, 1)
        if not values.shape == (n_rows, n_rows) == 2 * lacking.shape:
            raise ValueError(f"expected a similarity of {n_rows} rows, found shape {values.shape}")
        kernel = Table(np.where(lacking | lacking[:, None], np.nan, values))
    elif kind in ("tanimoto", "cosine", "rbf"):
        rows = _checked(arrays["rows"], np.float64, 2)
        middle, scale, width = (_checked(arrays[name], np.float64, 1) for name in ("middle", "scale", "width"))
        if not rows.shape[1] == middle.size == scale.size or width.shape != (1,) or min(*scale, *width) <= 0:
            raise ValueError(f"expected scales of {rows.shape[1]} columns, found {scale.size}")
        rows = np.where(_checked(arrays["known"], np.bool_, 1)[:, None], rows, np.nan)
        kernel = Numbers(rows, kind, middle, scale, float(width[0]))
    else:
        raise ValueError(f"expected a kind of kernel, found {kind!r}")
    if kernel[0].shape[0] != n_rows:
        raise ValueError(f"expected a description of {n_rows} rows, found {kernel[0].shape[0]}")
    return kernel


def kind_of(kernel: Any) -> str:
    """The word for a kernel that `kernel_from` reads."""
    return kernel.kind if isinstance(kernel, Numbers) else type(kernel).__name__


def _checked(array: np.ndarray, dtype: Any, ndim: int) -> np.ndarray:
    if array.dtype != dtype or array.ndim != ndim:
        raise ValueError(f"expected {np.dtype(dtype)} in {ndim} dimensions, found {array.dtype} in {array.ndim}")
    return array
