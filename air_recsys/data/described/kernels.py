"""Kernels of what rows are described by: the similarity of two, in [0, 1], also of rows that come later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.storage.reading import checked_csr

_WORD, _MOTIF, _LONG = 3, 7, 6  # letters
_LETTERS = 26
_CLASSES = ("KRO", "DNB", "EQZ", "ILMVJ", "ST", "FYW", "A", "CU", "G", "H", "P", "X")  # of amino acids that are alike
_CLASS_OF = np.array(
    [next(n for n, each in enumerate(_CLASSES) if chr(ord("A") + k) in each) for k in range(_LETTERS)]
)
_WIDTHS = {"words": _LETTERS**_WORD, "motifs": len(_CLASSES) ** _MOTIF, "long words": 2**24}
Kind = Literal["bits", "words", "motifs", "long words", "tanimoto", "rbf", "table"]


@dataclass(frozen=True, eq=False)
class Kernel:
    r"""Rows of one description, and how two are compared.

    Attributes
    ----------
    kind : str
        bits: Tanimoto, :math:`|x \cap y| / |x \cup y|`, of packed fingerprints. words, motifs and long words:
        the cosine of counts, spectrum kernels. tanimoto: of flags. rbf: :math:`\exp(-|x - y|^2)` of scaled numbers.
        table: as it was given; rows that come later bring their own.
    rows : ndarray or csr_array, shape (n, f)
        Of a table (n, n), and (k, n + k) of rows that come later, to these and to each other.
    known : ndarray of bool, shape (n,)
        Rows of which nothing is known are similar to none.
    middle, scale : ndarray, shape (f,)
        What numbers were scaled by, for later ones.
    """

    kind: Kind
    rows: Any
    known: np.ndarray
    middle: np.ndarray | None = None
    scale: np.ndarray | None = None

    def similarity(self, others: Self | None = None) -> np.ndarray:
        """Of rows of others (k), or of its own, to its own (n); (k, n)."""
        rows, own = (self if others is None else others).rows, self.rows
        if self.kind == "table":
            return rows[:, : own.shape[1]]
        if self.kind in ("bits", "tanimoto"):
            return tanimoto(*(_unpacked(each) if self.kind == "bits" else each for each in (rows, own)))
        from sklearn.metrics.pairwise import cosine_similarity, euclidean_distances

        if self.kind == "rbf":
            return np.exp(-euclidean_distances(rows, own, squared=True))
        return np.asarray(cosine_similarity(rows, own)).clip(0, 1)

    def take(self, rows: np.ndarray) -> Self:
        """Return the same of some rows."""
        return replace(
            self, rows=self.rows[np.ix_(rows, rows) if self.kind == "table" else rows], known=self.known[rows]
        )

    def joined(self, others: Self | None, n: int) -> Self:
        """Return its rows with n others after them; None: of which nothing is known."""
        width = self.rows.shape[1] + (n if self.kind == "table" else 0)
        later: Any = np.zeros((n, width), self.rows.dtype) if others is None else others.rows
        if self.kind in _WIDTHS:
            rows: Any = sp.csr_array(sp.vstack([self.rows, sp.csr_array(later)]))
        elif self.kind == "table":
            rows = np.block([[self.rows, later[:, : len(self.rows)].T], [later]])
        else:
            rows = np.concatenate([self.rows, later])
        return replace(
            self, rows=rows, known=np.append(self.known, np.zeros(n, dtype=bool) if others is None else others.known)
        )

    def of_later(self, numbers: np.ndarray) -> Self:
        """Return the same kernel of later rows of numbers."""
        scaled = numbers if self.scale is None else (numbers - self.middle) / self.scale
        return replace(self, rows=scaled, known=np.ones(len(numbers), dtype=bool))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what it is made of, for a file."""
        rows = self.rows
        parts = (
            {"rows": rows}
            if self.kind not in _WIDTHS
            else {"rows": rows.data, "words": rows.indices, "starts": rows.indptr}
        )
        scales = {} if self.scale is None or self.middle is None else {"middle": self.middle, "scale": self.scale}
        return parts | scales | {"known": self.known}


def bits_of(packed: np.ndarray) -> Kernel:
    """The kernel of fingerprints, uint8 (n, n_bits / 8), the lowest bit first; nothing is known of empty ones."""
    return Kernel("bits", packed, np.asarray(packed.any(axis=1)))


def words_of(sequences: list[str]) -> Kernel:
    """The kernel of the words of three letters of sequences of letters; nothing is known of shorter ones."""
    return Kernel("words", *_counted(sequences, np.arange(_LETTERS), _WORD))


def motifs_of(sequences: list[str], known: Kernel | None = None) -> Kernel:
    """The kernel of words of seven classes of amino acids, those that occur in several of the known sequences."""
    return _shared("motifs", *_counted(sequences, _CLASS_OF, _MOTIF), known)


def long_words_of(sequences: list[str], known: Kernel | None = None) -> Kernel:
    """The kernel of words of six letters, those that occur in several of the known sequences; few share a place."""
    counts, has_some = _counted(sequences, np.arange(_LETTERS), _LONG)
    places = counts.indices % _WIDTHS["long words"]
    folded = sp.csr_array((counts.data, places, counts.indptr), shape=(len(sequences), _WIDTHS["long words"]))
    folded.sum_duplicates()
    return _shared("long words", folded, has_some, known)


def _shared(kind: Kind, counts: sp.csr_array, has_some: np.ndarray, known: Kernel | None) -> Kernel:
    """A kernel without what one sequence has alone, which makes it only longer: so it is better on Davis."""
    sources = counts if known is None else known.rows
    words, numbers = np.unique(sources.indices, return_counts=True)
    counts.data *= np.isin(counts.indices, words[numbers > 1] if known is None else words)
    counts.eliminate_zeros()
    return Kernel(kind, counts, has_some)


def _counted(sequences: list[str], classes: np.ndarray, k: int) -> tuple[sp.csr_array, np.ndarray]:
    """Counts of the words of k classes of letters, (n, n_classes^k), and which sequences have any."""
    size = int(classes.max()) + 1
    powers = size ** np.arange(k)[::-1]
    words, starts = [np.empty(0, dtype=np.int64)], [0]
    for sequence in sequences:
        letters = classes[np.frombuffer(sequence.upper().encode(), np.uint8).astype(np.int64) - ord("A")]
        if letters.size >= k:
            words.append(np.lib.stride_tricks.sliding_window_view(letters, k) @ powers)
        starts.append(starts[-1] + max(letters.size - k + 1, 0))
    places = np.concatenate(words)
    counts = sp.csr_array((np.ones(places.size), places, starts), shape=(len(sequences), size**k))
    counts.sum_duplicates()
    return counts, np.diff(starts) > 0


def numbers_kernel(rows: np.ndarray, kind: Literal["tanimoto", "rbf"]) -> Kernel:
    """The kernel of rows of numbers; for rbf they are standardised, and the median of their distances is 1."""
    known = np.ones(len(rows), dtype=bool)
    if kind != "rbf":
        return Kernel(kind, rows, known)
    from sklearn.metrics.pairwise import euclidean_distances

    middle, scale = rows.mean(axis=0), rows.std(axis=0)
    scale[scale <= 1e-12 * abs(middle)] = 1
    scaled = (rows - middle) / scale
    apart = euclidean_distances(scaled, squared=True)[np.triu_indices(len(rows), 1)]
    width = np.sqrt(np.median(apart)) if apart.any() and np.median(apart) else 1.0
    return Kernel(kind, scaled / width, known, middle, scale * width)


def table_of(values: np.ndarray) -> Kernel:
    """The kernel of similarities as they were given."""
    return Kernel("table", values, np.ones(len(values), dtype=bool))


def tanimoto(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    r"""Return :math:`x^\top y / (|x|^2 + |y|^2 - x^\top y)` of rows (k, f) and of others (n, f); (k, n), in float64.

    Examples
    --------
    >>> tanimoto(np.array([[1.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])).tolist()
    [[0.5, 0.0]]
    """
    products = (rows @ columns.T).astype(np.float64)
    squares = [(each * each).sum(axis=1, dtype=np.float64) for each in (rows, columns)]
    union = squares[0][:, None] + squares[1] - products
    return np.divide(products, union, out=np.zeros_like(products), where=union > 0)


def _unpacked(packed: np.ndarray) -> np.ndarray:
    return np.unpackbits(packed, axis=1, bitorder="little").astype(np.float32)  # sums of ones are exact


def kernel_from(kind: Any, arrays: Mapping[str, np.ndarray], n_rows: int) -> Kernel:
    """The kernel of `arrays()` of a file, checked."""
    rows: Any = arrays["rows"]
    middle, scale, known = arrays.get("middle"), arrays.get("scale"), arrays["known"]
    if kind in _WIDTHS:
        rows = checked_csr(rows, arrays["words"], arrays["starts"], (n_rows, _WIDTHS[kind]))
    width = n_rows if kind == "table" else rows.shape[-1]
    dtype = np.uint8 if kind == "bits" else np.float64
    scales = [each for each in (middle, scale) if each is not None]
    if (
        kind not in ("bits", *_WIDTHS, "tanimoto", "rbf", "table")
        or (rows.shape, rows.dtype, known.shape, known.dtype) != ((n_rows, width), dtype, (n_rows,), np.bool_)
        or [each.shape for each in scales] != [(width,)] * (2 if kind == "rbf" else 0)
        or (scale is not None and not (scale > 0).all())
    ):
        raise ValueError(f"expected a kernel of {n_rows} rows, found {kind!r} of {rows.shape} in {rows.dtype}")
    return Kernel(kind, rows, known, middle, scale)
