"""`DrugTargetAIR` in a model file: the format of `air_recsys.models.files`, with similarities and dense scores."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from air_recsys.dti.similarities import as_similarity
from air_recsys.exceptions import ModelFileError
from air_recsys.graphs import SimilarityGraph
from air_recsys.ids import IdIndex
from air_recsys.models import files
from air_recsys.validation import check_real

if TYPE_CHECKING:
    from air_recsys.dti.model import DrugTargetAIR

Model = TypeVar("Model", bound="DrugTargetAIR")
_SIMILARITIES = ("drug_similarity", "target_similarity")
_GRAPHS = ("drug_graph_", "target_graph_")


def write(model: DrugTargetAIR, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model; the file at `path` is replaced in one step once the new one is complete."""
    given: dict[str, Any] = model.get_params(deep=False)
    parameters = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    attributes = {"similarity_weight_": model.similarity_weight_, "noise": float(model._noise)}
    arrays = {"scores_": model.scores_, **files.interactions_to_arrays(model.interactions_)}
    if "open_scores_" in vars(model):
        arrays["open_scores_"] = model.open_scores_
    arrays |= {name: matrix for name, matrix in zip(_SIMILARITIES, model._given[2], strict=True) if matrix is not None}
    for name in _GRAPHS:
        arrays |= files.graph_to_arrays(name, getattr(model, name))
    return files.write_contents(path, type(model), parameters, attributes, arrays)


def read(cls: type[Model], path: str | os.PathLike[str]) -> Model:
    """Read a model of class `cls` (or a subclass) that `write` wrote."""
    return files.read_contents(path, partial(_restore, cls))


def _restore(cls: type[Model], contents: files.Contents) -> Model:
    model, arrays = files.unfitted(cls, contents), contents.arrays
    model._check_parameters()
    data = files.interactions_from_arrays(arrays)
    model.interactions_ = data
    model.drugs_, model.targets_ = IdIndex(data.user_ids, "drug"), IdIndex(data.item_ids, "target")
    model.similarity_weight_ = check_real("similarity_weight_", contents.attributes["similarity_weight_"], maximum=1)
    model._noise = check_real("noise", contents.attributes["noise"], strict=True)
    drugs, targets = (
        as_similarity(name, arrays.get(name), ids)
        for name, ids in zip(_SIMILARITIES, (data.user_ids, data.item_ids), strict=True)
    )
    model.scores_ = _scores(contents, "scores_", model)  # as large as what follows, which the file does not hold
    model._given = *model._targets(data), (drugs, targets)
    if "open_scores_" in arrays:
        model.open_scores_ = _scores(contents, "open_scores_", model)
    model.drug_graph_ = _graph("drug_graph_", model.drugs_, contents)
    model.target_graph_ = _graph("target_graph_", model.targets_, contents)
    return model


def _scores(contents: files.Contents, name: str, model: DrugTargetAIR) -> np.ndarray:
    expected, found = (len(model.drugs_), len(model.targets_)), contents.arrays[name]
    if found.shape != expected or found.dtype != np.float64 or not np.isfinite(found).all():
        raise ModelFileError(
            f"{contents.source} is inconsistent: expected finite {name} of shape {expected} in float64, found shape "
            f"{found.shape} in {found.dtype}"
        )
    return found


def _graph(name: str, index: IdIndex, contents: files.Contents) -> SimilarityGraph:
    graph = files.graph_from_arrays(name, index.kind, index.ids, contents.arrays)
    if graph is None:
        raise KeyError(name)
    return graph
