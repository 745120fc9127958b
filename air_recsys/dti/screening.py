"""Screening of a library of compounds: what a model with structures says of each, in blocks."""

from __future__ import annotations

import itertools
import os
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.described.kernels import bits_of
from air_recsys.data.described.molecules import PRINTS, fingerprints, is_structure, structures
from air_recsys.data.described.sides import Described
from air_recsys.data.readers.library_file import Block, library_blocks
from air_recsys.exceptions import DataError, DataWarning, quoted
from air_recsys.models.drug_target.common import places_of
from air_recsys.models.drug_target.model import DrugTargetAIR
from air_recsys.storage.progress import messages_beside, progress_bar
from air_recsys.storage.validation import check_integer

_BLOCK = 2048
_SHOWN = 3


def screen(
    model: DrugTargetAIR,
    library: str | os.PathLike[str] | Mapping[Any, str] | pd.Series,
    target_ids: Any = None,
    n: int = 100,
    *,
    n_processes: int = 1,
    progress: bool | None = None,
) -> pd.DataFrame:
    r"""Return the most probable pairs of new compounds with targets, best first; see `DrugTargetAIR.fold_in`.

    Each compound is scored as `fold_in` does without measurements. The library is read in blocks, and only the best
    pairs are kept, so memory does not grow with it.

    Parameters
    ----------
    model : DrugTargetAIR
        Fitted with ``drug_similarity={"smiles": ...}``.
    library : path, mapping or Series
        A file of SMILES, a line each, with or without names and a header, packed by gzip or not; or SMILES by id.
    target_ids : id or array_like of ids, optional
        None: all targets.
    n : int
        Number of pairs.
    n_processes : int
        Processes that read structures, for more than one block of 2,048 compounds.
    progress : bool, optional
        Show a progress bar; None: on a terminal.

    Returns
    -------
    DataFrame
        The columns drug, target, probability, score, rank, nearest: the known drug whose interactions, or what the
        model expects of it, add most to the score, and similarity to it. Equal scores come in the library's order.

    Raises
    ------
    DataError
        For a model without structures, and a library without any.
    UnknownIdError

    Warns
    -----
    DataWarning
        Of SMILES that do not parse, which are left out.

    Examples
    --------
    >>> pairs = pd.DataFrame({"drug": ["ethanol", "benzene"], "target": ["t1", "t2"]})
    >>> model = DrugTargetAIR().fit(pairs, {"smiles": {"ethanol": "CCO", "benzene": "c1ccccc1"}})
    >>> screen(model, {"propanol": "CCCO", "toluene": "Cc1ccccc1"}, "t1", n=1)[["drug", "nearest"]].values.tolist()
    [['propanol', 'ethanol']]
    """
    check_integer("n", n, minimum=1)
    check_integer("n_processes", n_processes, minimum=1)
    scorer = _Scorer(model, target_ids, n)
    unread: list[str] = []
    n_unread = n_read = 0
    read = partial(_read, names=scorer.names)
    with ExitStack() as stack:
        bar = stack.enter_context(progress_bar(progress, unit=" compounds", desc="screening"))
        stack.enter_context(messages_beside(bar))
        for block, (prints, reasons) in _each(read, _blocks(library), n_processes, stack):
            scorer.add(block.ids, prints)
            bar.update(len(block.ids))
            shown = [f"{block.ids[place]}: {quoted(block.texts[place])}, {why}" for place, why in reasons]
            unread += shown[: _SHOWN - len(unread)]
            n_unread, n_read = n_unread + len(reasons), n_read + len(block.ids)
    if n_unread == n_read:
        raise DataError(f"expected SMILES, found none that parses among {n_read}: {'; '.join(unread)}")
    if n_unread:
        told = f"{n_unread} of {n_read} SMILES do not parse and are left out: {'; '.join(unread)}"
        warnings.warn(told, DataWarning, stacklevel=2)
    return scorer.table()


def _blocks(library: Any) -> Iterator[Block]:
    if isinstance(library, str | os.PathLike):
        yield from library_blocks(Path(library), is_structure, _BLOCK)
        return
    if not isinstance(library, Mapping | pd.Series):
        raise DataError(f"expected a path, or SMILES by id, found {type(library).__name__}")
    for some in _batched(library):
        yield Block([id for id, _ in some], [text for _, text in some])


def _batched(library: Any) -> Iterator[tuple[Any, ...]]:
    items = iter(library.items())
    while some := tuple(itertools.islice(items, _BLOCK)):
        yield some


Prints = tuple[dict[str, np.ndarray], list[tuple[int, str]]]


def _read(texts: list[str], names: list[str]) -> Prints:
    """Packed fingerprints of SMILES, and the places and reasons of those that do not parse."""
    found = structures(texts)
    unread = [(place, each.reason) for place, each in enumerate(found) if each.molecule is None]
    return {name: bits.rows for name, bits in fingerprints(found, names).items()}, unread


def _each(read: Any, blocks: Iterable[Block], n_processes: int, stack: ExitStack) -> Iterator[tuple[Block, Prints]]:
    """Read blocks, several at a time in processes; they come in their order."""
    blocks = iter(blocks)
    first = list(itertools.islice(blocks, 2))
    if n_processes == 1 or len(first) < 2:
        for block in itertools.chain(first, blocks):
            yield block, read(block.texts)
        return
    pool: Executor = stack.enter_context(ProcessPoolExecutor(n_processes, get_context("spawn")))
    waiting: deque[tuple[Block, Any]] = deque()
    for block in itertools.chain(first, blocks):
        waiting.append((block, pool.submit(read, block.texts)))
        if len(waiting) > 2 * n_processes:
            done, found = waiting.popleft()
            yield done, found.result()
    while waiting:
        done, found = waiting.popleft()
        yield done, found.result()


class _Kept(NamedTuple):
    """The best pairs so far."""

    scores: np.ndarray
    ids: np.ndarray
    targets: np.ndarray
    nearest: np.ndarray
    similarities: np.ndarray


class _Scorer:
    """Scores of compounds by what follows from the known drugs alone, and the best pairs of them."""

    def __init__(self, model: DrugTargetAIR, target_ids: Any, n: int) -> None:
        self.model, self.n = model, n
        self.similar = model.similar_scores()
        self.names = [name for name in PRINTS if self.similar.described.shares.get(name, 0) > 0]
        asked = np.arange(len(model.targets_)) if target_ids is None else places_of(model.targets_, target_ids)
        self.targets = np.unique(asked)
        self.kept = _Kept(*(np.empty(0, dtype) for dtype in (float, object, int, int, float)))

    def add(self, ids: list[Any], prints: dict[str, np.ndarray]) -> None:
        """Score a block and keep the best pairs."""
        kernels: Any = {name: bits_of(packed) for name, packed in prints.items()}
        later = Described(kernels, {name: self.similar.described.shares[name] for name in kernels})
        across = self.similar.described.across(later)  # (b, n_known)
        weights = self.similar.weights(across)
        scores = weights @ self.similar.profiles[:, self.targets] + self.similar.added[self.targets]
        scores[~np.any([each.known for each in kernels.values()], axis=0)] = -np.inf
        flat = scores.ravel()
        least = self.kept.scores[-1] if self.kept.scores.size == self.n else -np.inf
        places = np.flatnonzero(flat > least)
        if places.size > self.n:  # the best, of equal ones the first
            places = np.sort(places[np.argsort(-flat[places], kind="stable")[: self.n]])
        rows, columns = np.divmod(places, self.targets.size)
        targets = self.targets[columns]
        nearest = (weights[rows] * self.similar.profiles[:, targets].T).argmax(axis=1)
        new = flat[places], np.array(ids, object)[rows], targets, nearest, across[rows, nearest]
        whole = _Kept(*(np.concatenate(each) for each in zip(self.kept, new, strict=True)))
        order = np.argsort(-whole.scores, kind="stable")[: self.n]
        self.kept = _Kept(*(each[order] for each in whole))

    def table(self) -> pd.DataFrame:
        """The best pairs."""
        return pd.DataFrame(
            self.model.named(self.kept.ids, self.model.targets_.ids[self.kept.targets])
            | {
                "probability": self.similar.probabilities(self.kept.scores),
                "score": self.kept.scores,
                "rank": np.arange(1, self.kept.scores.size + 1),
                "nearest": self.similar.ids[self.kept.nearest],
                "similarity": self.kept.similarities,
            }
        )
