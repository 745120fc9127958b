"""What a side, drugs or targets, is described by: kernels with shares, kept for those that come later."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.described.kernels import Kernel, kernel_from, long_words_of, motifs_of, table_of, words_of
from air_recsys.data.described.molecules import PRINTS, fingerprints, told_of
from air_recsys.data.described.numbers import checked_rows, numbers_of
from air_recsys.data.described.sequences import letters_of
from air_recsys.data.described.tables import as_similarity, check_aligned, later_rows, mended, texts_of, with_nearest
from air_recsys.exceptions import DataError, DataWarning

Given = Mapping[str, Any]
"""What is given for a side, by names: "smiles" and "sequences" are texts by id, all others tables by id."""
_TEXTS = {"smiles": tuple(PRINTS), "sequences": ("words", "motifs", "long words")}  # and their kernels
_SHARED = {"motifs": motifs_of, "long words": long_words_of}
_SHOWN = 3


class Described(NamedTuple):
    """Rows of a side by several kernels, and the share of each."""

    kernels: dict[str, Kernel]
    shares: dict[str, float]
    line: str = ""  # what was changed of structures
    smiles: np.ndarray | None = None  # (n,), as given, None where there are none

    @classmethod
    def of(cls, side: str, given: Given, ids: np.ndarray, stacklevel: int = 2) -> Described:
        """Of what is given for a side by names, in the order of ids; all kernels have the same share."""
        kernels, line, smiles = _kernels(side, given, ids, 0, {}, stacklevel + 1)
        return cls(kernels, dict.fromkeys(kernels, 1 / len(kernels)), line, smiles)

    def sole(self) -> np.ndarray | None:
        """The one similarity that was given as such, (n, n), if there is nothing else."""
        only = next(iter(self.kernels.values())) if len(self.kernels) == 1 else None
        return only.rows if only is not None and only.kind == "table" and only.known.all() else None

    def similarities(self) -> list[np.ndarray]:
        """Each kernel of all rows, (n, n)."""
        return [mended(each.similarity()) for each in self.kernels.values()]

    def similarity(self, squares: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """The mean of the kernels by their shares, (n, n); of two rows those kernels count that both have."""
        has = [each.known for each in self.kernels.values()]
        found = self._mean(zip(self.similarities() if squares is None else squares, has, has, strict=True))
        np.fill_diagonal(found, 1)
        return found

    def later(self, side: str, given: Given, ids: np.ndarray, n_known: int, stacklevel: int = 2) -> Described:
        """The same kernels, as far as they are given, of the ids after the known ones."""
        kernels, line, smiles = _kernels(side, given, ids, n_known, self.kernels, stacklevel + 1)
        return Described(kernels, {name: self.shares[name] for name in kernels}, line, smiles)

    def rows(self, later: Described, k: int) -> np.ndarray:
        """Similarities of k later rows to all, themselves the last, (k, n + k)."""
        n = next(iter(self.kernels.values())).known.size
        blocks = [
            (self._beside(name, each), each.known, np.append(self.kernels[name].known, each.known))
            for name, each in later.kernels.items()
        ]
        found = later._mean(blocks) if blocks else np.zeros((k, n + k))
        found[np.arange(k), np.arange(-k, 0)] = 1
        return found

    def across(self, later: Described) -> np.ndarray:
        """Similarities of later rows to the known ones, (k, n)."""
        names = later.kernels
        return later._mean(
            (self.kernels[name].similarity(names[name]), names[name].known, self.kernels[name].known) for name in names
        )

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        """Similarities of some of its rows to all, (k, n)."""
        some = {
            name: replace(each, rows=each.rows[rows], known=each.known[rows]) for name, each in self.kernels.items()
        }
        return self.across(self._replace(kernels=some))

    def joined(self, later: Described, n_later: int) -> Described:
        """Known and later rows; kernels that the later ones lack have empty rows there."""
        joined = {name: each.joined(later.kernels.get(name), n_later) for name, each in self.kernels.items()}
        if self.smiles is None:
            return self._replace(kernels=joined)
        new = np.full(n_later, None) if later.smiles is None else later.smiles
        return self._replace(kernels=joined, smiles=np.append(self.smiles, new))

    def take(self, rows: np.ndarray) -> Described:
        """The same of some rows."""
        smiles = None if self.smiles is None else self.smiles[rows]
        return self._replace(kernels={name: each.take(rows) for name, each in self.kernels.items()}, smiles=smiles)

    def told(self, own: float = 0.0) -> str:
        """Shares in words; own is that of the profiles of what is recorded, where these are one of the kernels."""
        shares = {"own profile": own} if own else {}
        shares |= {name: (1 - own) * share for name, share in self.shares.items()}
        return ", ".join(f"{name} {share:.2f}" for name, share in shares.items())

    def to_contents(self, side: str) -> tuple[list[list[Any]], dict[str, np.ndarray]]:
        """Names, kinds and shares of the kernels, and their arrays, for a file."""
        names = [[name, each.kind, self.shares[name]] for name, each in self.kernels.items()]
        arrays = {
            f"{side}_described_{number}_{part}": array
            for number, each in enumerate(self.kernels.values())
            for part, array in each.arrays().items()
        }
        if self.smiles is not None:
            lines = "".join(f"{' '.join((text or '').split())}\n" for text in self.smiles)
            arrays[f"{side}_described_smiles"] = np.frombuffer(lines.encode(), np.uint8)
        return names, arrays

    @classmethod
    def from_contents(
        cls, side: str, names: Iterable[Sequence[Any]], arrays: Mapping[str, np.ndarray], n_rows: int
    ) -> Described:
        """What `to_contents` was called on."""
        kernels, shares = {}, {}
        for number, (name, kind, share) in enumerate(names):
            start = f"{side}_described_{number}_"
            own = {key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)}
            kernels[str(name)] = kernel_from(kind, own, n_rows)
            shares[str(name)] = float(share)
        if not kernels or min(shares.values()) < 0 or abs(sum(shares.values()) - 1) > 1e-6:
            raise ValueError(f"expected shares of kernels that sum to 1, found {shares}")
        lines = arrays.get(f"{side}_described_smiles")  # older files have none
        smiles = None if lines is None else np.array([text or None for text in lines.tobytes().decode().split("\n")])
        if smiles is not None and len(smiles) != n_rows + 1:
            raise ValueError(f"expected SMILES of {n_rows} rows, found {len(smiles) - 1}")
        return cls(kernels, shares, smiles=None if smiles is None else smiles[:-1])

    def _beside(self, name: str, later: Any) -> np.ndarray:
        if later.kind == "table":
            return later.rows
        return np.hstack([self.kernels[name].similarity(later), mended(later.similarity())])

    def _mean(self, blocks: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> np.ndarray:
        """The mean of similarities, (k, n) each, over the kernels that both rows have."""
        total: Any = 0.0
        weight: Any = 0.0
        for (values, rows, columns), share in zip(blocks, self.shares.values(), strict=True):
            counts = share * np.outer(rows, columns)
            total, weight = total + counts * values, weight + counts
        return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)


def as_given(side: str, content: Any) -> Given:
    """What is given for a side by names; what is no mapping is one similarity."""
    if content is None or not _is_mapping(content):
        return {} if content is None else {ONE: content}
    if not content:
        raise DataError(f"expected {side}_similarity with a table or texts by name, found an empty mapping")
    return {str(name): each for name, each in content.items()}


def argument(side: str, name: str) -> str:
    """What is given under a name, for messages."""
    return f"{side}_similarity" if name == ONE else f"{side}_similarity[{name!r}]"


def n_kernels(given: Given) -> int:
    """The number of kernels of what is given for a side."""
    return sum(len(_TEXTS.get(name, (name,))) for name in given)


def ids_of(given: Given) -> np.ndarray:
    """The ids that are named by what is given for a side; none for what has no names."""
    ids: dict[Any, None] = {}
    for named in given.values():
        index = named.index if isinstance(named, pd.Series | pd.DataFrame) else named if _is_mapping(named) else ()
        ids |= dict.fromkeys(index)
    return np.asarray(pd.Index(ids, dtype=None if ids else object))


ONE = "similarity"


def _is_mapping(named: Any) -> bool:
    return isinstance(named, Mapping)


def _kernels(
    side: str, given: Given, ids: np.ndarray, n_known: int, known: Mapping[str, Kernel], stacklevel: int
) -> tuple[dict[str, Kernel], str, np.ndarray | None]:
    """The kernels of ids after the known ones, by those of the known ones if there are some; a line, and SMILES."""
    new, kernels, line, smiles = ids[n_known:], {}, "", None
    for name, content in given.items():
        told, own = argument(side, name), _TEXTS.get(name, (name,))[0]
        if known and own not in known:
            of_kernels = {kernel: text for text, several in _TEXTS.items() for kernel in several}
            names = " and ".join(dict.fromkeys(of_kernels.get(each, each) for each in known))
            found = f"it knows {side}s by {names}; give these, or fit it with the others"
            raise DataError(f"expected no {told}, as the model was fitted without: {found}")
        if name == "smiles":
            texts = _texts(told, content, new, stacklevel + 1)
            found, line = told_of(told, texts, stacklevel + 1)
            kernels, smiles = kernels | fingerprints(found), texts.to_numpy(object)
        elif name == "sequences":
            texts = _texts(told, content, new, stacklevel + 1).fillna("")
            letters = letters_of(told, texts, stacklevel + 1).tolist()
            found = {own: words_of(letters)}
            found |= {kind: make(letters, known.get(kind)) for kind, make in _SHARED.items()}
            kernels |= {kind: each for kind, each in found.items() if not known or kind in known}
        elif known and known[own].kind == "table":
            kernels[own] = table_of(later_rows(told, known[own].similarity(), content, ids, n_known))
        elif known:
            kernels[own] = _of_later(told, known[own], _table(told, content, new))
        elif _is_square(name, content):
            kernels[own] = table_of(as_similarity(told, content, ids, stacklevel + 1))
        else:
            kernels[own] = numbers_of(told, _table(told, content, new), stacklevel=stacklevel + 1)
    return kernels, line, smiles


def _is_square(name: str, content: Any) -> bool:
    """Whether a table is one of similarities: by its name, else if it has the ids as its index and its columns."""
    if name in (ONE, "features") or not isinstance(content, pd.DataFrame):
        return name == ONE
    return set(content.index) <= set(content.columns)


def _of_later(name: str, known: Kernel, table: pd.DataFrame) -> Kernel:
    rows = checked_rows(name, table)
    if rows.shape[1] != known.rows.shape[1]:
        raise DataError(f"expected {name} of {known.rows.shape[1]} columns, found {rows.shape[1]}")
    return known.of_later(rows)


def _texts(name: str, given: Any, ids: np.ndarray, stacklevel: int) -> pd.Series:
    """The text of each id; ids without one are told."""
    texts = texts_of(name, given, missing=True)
    twice = texts.index[texts.index.duplicated()]
    if len(twice):
        raise DataError(f"expected {name} with each id once, found again: {twice[0]!r}")
    lacking = [id for id in ids.tolist() if id not in texts.index]
    if len(lacking) == len(ids):
        raise DataError(f"expected {name} of the ids, such as {ids[0]!r}, found others: {texts.index[0]!r}")
    if lacking:
        shown = ", ".join(with_nearest(id, texts.index.tolist()) for id in lacking[:_SHOWN])
        told = f"{name}: {len(lacking)} of {len(ids)} ids have none and are similar to no other: {shown}"
        warnings.warn(told, DataWarning, stacklevel=stacklevel)
    return texts.reindex(ids).astype(object).where(lambda found: found.notna(), None)


def _table(name: str, given: Any, ids: np.ndarray) -> pd.DataFrame:
    if _is_mapping(given):
        given = pd.DataFrame.from_dict(dict(given), orient="index")
    if isinstance(given, np.ndarray) and given.ndim == 2 and len(given) == len(ids):
        return pd.DataFrame(given, ids)
    if not isinstance(given, pd.DataFrame):
        raise DataError(f"expected {name} as a DataFrame by id, found {type(given).__name__}")
    check_aligned(name, given, ids, ids[:0])
    return given.loc[ids]
