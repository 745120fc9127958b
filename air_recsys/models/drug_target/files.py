"""`DrugTargetAIR` in a model file: the format of `air_recsys.models.storage`, with similarities and dense scores."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from air_recsys.data.described.kernels import table_of
from air_recsys.data.described.sides import Described
from air_recsys.data.described.tables import as_similarity
from air_recsys.data.interactions import Interactions
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.drug_target.answers import HeldOut
from air_recsys.models.drug_target.pairs import WORDS, Words, checked_words
from air_recsys.models.drug_target.similarities import Pair, Similarities
from air_recsys.models.solvers import plain
from air_recsys.models.storage import files
from air_recsys.models.storage.contents import (
    graph_from_arrays,
    graph_to_arrays,
    interactions_from_arrays,
    interactions_to_arrays,
)
from air_recsys.storage.validation import check_integer, check_real

_SIMILARITIES = ("drug_similarity", "target_similarity")
_GRAPHS = ("drug_graph_", "target_graph_")
_SOLE = "similarity"  # a kernel by this name alone is the similarity itself


class Learned(NamedTuple):
    """The content of a file with a fitted model, but for its parameters."""

    data: Interactions
    similarity_weight: float
    regression_weight: float
    noise: float
    n_rounds: int
    words: Words
    names: dict[Any, str]
    described: Pair
    similarities: Similarities
    scores: np.ndarray  # (n_drugs, n_targets)
    graphs: tuple[SimilarityGraph, SimilarityGraph]
    asked: Mapping[str, Any]  # what was computed on first use: "scores", "held_out", "calibration"


def write(
    path: str | os.PathLike[str],
    model: str,
    parameters: dict[str, Any],
    learned: Learned,
    check: Callable[[files.Contents], Any],
) -> Path:
    """Write a fitted model that `check` lets pass; the file at `path` is replaced in one step."""
    attributes: dict[str, Any] = {
        "similarity_weight_": learned.similarity_weight,
        "regression_weight_": learned.regression_weight,
        "noise": float(learned.noise),
        "n_rounds_": int(learned.n_rounds),
    }
    arrays = {"scores_": learned.scores, **interactions_to_arrays(learned.data)}
    if "scores" in learned.asked:
        arrays["open_scores_"] = learned.asked["scores"]
    if "held_out" in learned.asked:
        found: HeldOut = learned.asked["held_out"]
        arrays |= {"held_out_scores": found.scores, "deviations_": found.deviations}
    given = zip(_SIMILARITIES, learned.similarities, strict=True)
    arrays |= {name: matrix for name, matrix in given if matrix is not None}
    if learned.words != WORDS:
        attributes["words"] = list(learned.words)
    if learned.names:
        ids = learned.data.user_ids.tolist(), learned.data.item_ids.tolist()
        attributes["names"] = [[learned.names.get(id) for id in own] for own in ids]
    for side, described in zip(WORDS, learned.described, strict=True):
        if described is not None and list(described.kernels) != [_SOLE]:
            attributes[f"{side}_kernels"], of_kernels = described.to_contents(side)
            arrays |= of_kernels
    for name, graph in zip(_GRAPHS, learned.graphs, strict=True):
        arrays |= graph_to_arrays(name, graph)
    plainly = {name: plain(value) for name, value in parameters.items()}
    return files.write_contents(path, model, plainly, attributes, arrays, check)


def learned_of(contents: files.Contents) -> Learned:
    """Return what `write` was given, from a file that was read."""
    arrays, attributes = contents.arrays, contents.attributes
    data = interactions_from_arrays(arrays)
    ids = data.user_ids, data.item_ids
    given: Any = tuple(
        as_similarity(name, arrays[name], own) if name in arrays else None
        for name, own in zip(_SIMILARITIES, ids, strict=True)
    )
    words = checked_words(*attributes.get("words", WORDS))
    kinds = zip(_GRAPHS, words, ids, strict=True)
    drug_graph, target_graph = (_graph(contents, name, kind, own) for name, kind, own in kinds)
    return Learned(
        data,
        check_real("similarity_weight_", attributes["similarity_weight_"], maximum=1),
        check_real("regression_weight_", attributes.get("regression_weight_", 0.0), maximum=1),  # of before: none
        check_real("noise", attributes["noise"], strict=True),
        check_integer("n_rounds_", attributes.get("n_rounds_", contents.parameters.get("n_rounds", 10)), minimum=1),
        words,
        _names(contents, ids),
        _described(contents, given),
        given,
        _scores(contents, "scores_", data),  # as large as what follows, which the file does not hold
        (drug_graph, target_graph),
        _asked(contents, data),
    )


def _names(contents: files.Contents, ids: tuple[np.ndarray, np.ndarray]) -> dict[Any, str]:
    given = contents.attributes.get("names", ([], []))
    pairs = [each for own, names in zip(ids, given, strict=True) for each in zip(own.tolist(), names, strict=False)]
    return {id: str(name) for id, name in pairs if name is not None}


def _described(contents: files.Contents, given: Similarities) -> Pair:
    """What the two sides are described by: a similarity alone, or kernels whose mean it is."""
    drugs, targets = (
        similarity
        if similarity is None
        else Described.from_contents(side, contents.attributes[f"{side}_kernels"], contents.arrays, len(similarity))
        if f"{side}_kernels" in contents.attributes
        else Described({_SOLE: table_of(similarity)}, {_SOLE: 1.0})
        for side, similarity in zip(WORDS, given, strict=True)
    )
    return drugs, targets


def _asked(contents: files.Contents, data: Interactions) -> dict[str, Any]:
    arrays = contents.arrays
    asked: dict[str, Any] = {}
    if "open_scores_" in arrays:
        asked["scores"] = _scores(contents, "open_scores_", data)
    if "held_out_scores" in arrays:
        scores = arrays["held_out_scores"]
        if scores.ndim != 1 or scores.dtype != np.float64 or not np.isfinite(scores).all():
            raise ValueError(f"expected finite held_out_scores in float64, found shape {scores.shape}")
        asked["held_out"] = HeldOut(scores, _scores(contents, "deviations_", data))
    return asked


def _scores(contents: files.Contents, name: str, data: Interactions) -> np.ndarray:
    expected, scores = (data.n_users, data.n_items), contents.arrays[name]
    if scores.shape != expected or scores.dtype not in (np.float32, np.float64) or not np.isfinite(scores).all():
        raise ValueError(
            f"expected finite {name} of shape {expected} in float64, found shape {scores.shape} in {scores.dtype}"
        )
    return scores


def _graph(contents: files.Contents, name: str, kind: str, ids: np.ndarray) -> SimilarityGraph:
    graph = graph_from_arrays(name, kind, ids, contents.arrays)
    if graph is None:
        raise KeyError(name)
    return graph
