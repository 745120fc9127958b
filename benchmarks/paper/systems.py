"""A system of a recipe: from its settings to a trained model and what is measured of it."""

from __future__ import annotations

import io
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

import air_recsys.models as models
from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.graph_quality import group_recovery
from air_recsys.exceptions import DataFileError
from air_recsys.images import inpainting_errors, model_for
from air_recsys.metrics import auroc, average_precision, nmae
from air_recsys.models.presets import routed
from air_recsys.models.trained import TrainedRecommender
from air_recsys.storage.reading import parse_json, read_arrays
from air_recsys.storage.writing import replace_file
from air_recsys.training import Record
from benchmarks.paper.cases import Case, load_case, observed_entries, validation_entries
from benchmarks.paper.recipes import SCARCE, Recipe
from benchmarks.paper.scarce import scarce_errors

BY_HOLES = "by holes"
"""In place of a model: what `air_recsys.images.model_for` would take for these holes of a picture."""
_FOR_HOLES: dict[str, dict[str, Any]] = {
    "PatchAIR": {"model": "PatchAIR"},
    "AIR": {"model": "AIR", "preset": "completion"},
}
QUICK_EPOCHS = 60
"""Epochs of a quick run."""
QUICK_TITLE = " (QUICK: a few epochs, no figures of any worth)"
"""The suffix of a quick run's title."""
_QUICK = {"n_epochs": QUICK_EPOCHS, "evaluate_every": 10, "n_rounds": 1, "snapshot_epochs": (20, 40, 60)}
_OF_RECIPES = ("model", "preset", "side", "dense")
_CURVES = ("observed", "hidden", "user_energy", "item_energy")


@dataclass
class Outcome:
    """The results of a run: numbers, curves over training, and arrays."""

    numbers: dict[str, float]
    curves: dict[str, list[float]] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write everything to one file, in one step: an interruption leaves no half of it."""
        content = json.dumps({"numbers": self.numbers, "curves": self.curves})
        whole = io.BytesIO()
        np.savez_compressed(whole, content=np.array(content), **self.arrays)  # pyright: ignore[reportArgumentType]
        replace_file(path, whole.getvalue())

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote, or raise `DataFileError` where the file is not whole."""
        try:
            arrays = read_arrays(path.read_bytes())
            content = parse_json(str(arrays.pop("content")))
            return cls(dict(content["numbers"]), dict(content["curves"]), arrays)
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise DataFileError(f"{path} is not a whole run ({error}): delete it, and it is run again") from None


def run_system(
    recipe: Recipe,
    settings: dict[str, Any],
    seed: int,
    *,
    root: Path,
    validation: float = 0.0,
    quick: bool = False,
    device: str = "auto",
    graphs: dict[str, np.ndarray] | None = None,
) -> Outcome:
    """Train one system on one recipe and measure it on the entries that it did not see.

    Parameters
    ----------
    settings : dict
        "model", "preset" (of AIR), "side" (give the graphs that come with the data), "dense" (graphs of all pairs),
        "graphs_at" (an epoch of `graphs`), and parameters of the model.
    validation, quick, device
        As in `benchmarks.paper.runs.Options`.
    graphs : dict of ndarray, optional
        Arrays of the run whose graphs this one takes.
    """
    if recipe.data == SCARCE:
        return Outcome(scarce_errors(lambda: make_model(settings, None, seed, quick, device), seed, validation))
    case = load_case(recipe.data, root)
    observed = observed_entries(recipe, case, root, seed)
    asked, shown = ~observed, observed
    if validation > 0:
        asked = validation_entries(recipe, observed, validation, seed)
        shown = observed & ~asked
    data = Interactions.from_dense(np.where(shown, case.truth, np.nan), allow_negative=True)
    if settings["model"] == BY_HOLES:
        settings = _FOR_HOLES[type(model_for(shown)).__name__]
    model = make_model(settings, case, seed, quick, device, graphs)
    watch = None
    if "curves" in recipe.keep and isinstance(model, TrainedRecommender):
        watch = _Watch(model, case.truth, shown, asked)
    start = time.perf_counter()
    model.fit(data, callbacks=[] if watch is None else [watch])
    m, n = case.truth.shape
    completed = model.predict(np.repeat(np.arange(m), n), np.tile(np.arange(n), m)).reshape(m, n)
    seconds = time.perf_counter() - start
    numbers = _errors(case, completed, shown, asked) | {"seconds": seconds}
    if case.groups is not None and isinstance(model, TrainedRecommender):
        numbers |= recovery(model, *case.groups)
    return Outcome(numbers, {} if watch is None else watch.curves, _arrays(recipe, model))


def make_model(
    settings: dict[str, Any],
    case: Case | None,
    seed: int,
    quick: bool = False,
    device: str = "auto",
    graphs: dict[str, np.ndarray] | None = None,
) -> models.Recommender:
    """The model of a recipe's settings, not fitted."""
    parameters = {key: value for key, value in settings.items() if key not in _OF_RECIPES}
    if settings.get("dense"):
        parameters |= {"graph_neighbors": None, "graph_refresh": None}
    if settings.get("side") and case is not None and case.side is not None:
        parameters |= {"user_graph": case.side[0], "item_graph": case.side[1]}
    if graphs is not None:
        parameters |= _graphs_at(graphs, parameters.pop("graphs_at"), quick)
    kind = getattr(models, settings["model"])
    model = models.AIR.of_preset(settings["preset"]) if "preset" in settings else kind()
    names = {name.removeprefix("solver__") for name in model.get_params()}
    parameters |= {name: value for name, value in (("random_state", seed), ("device", device)) if name in names}
    if quick:
        unwanted = () if parameters.get("snapshot_epochs") else ("snapshot_epochs",)
        parameters |= {name: value for name, value in _QUICK.items() if name in names and name not in unwanted}
    return model.set_params(**routed(model, parameters))


class _Watch:
    """Errors and energies at every record of a training."""

    def __init__(self, model: TrainedRecommender, truth: np.ndarray, shown: np.ndarray, asked: np.ndarray) -> None:
        self._model, self._truth, self._shown, self._asked = model, truth, shown, asked
        self._range = float(truth.max() - truth.min())
        self.curves: dict[str, list[float]] = {name: [] for name in ("epoch", *_CURVES)}

    def __call__(self, record: Record) -> None:
        factors = self._model.current_factors()
        scores = factors.user_factors @ factors.item_factors.T + factors.user_biases[:, None] + factors.item_biases
        error = np.abs(scores + factors.mean - self._truth) / self._range  # (m, n)
        values = (error[self._shown].mean(), error[self._asked].mean(), record.row_energy, record.column_energy)
        self.curves["epoch"].append(record.epoch)
        for name, value in zip(_CURVES, values, strict=True):
            self.curves[name].append(float(value))


def _errors(case: Case, completed: np.ndarray, shown: np.ndarray, asked: np.ndarray) -> dict[str, float]:
    numbers = entry_errors(case.truth, asked, completed[asked])
    if case.picture:
        clipped = np.where(shown, case.truth, completed.clip(0, 1))
        errors = inpainting_errors(case.truth, clipped, ~asked)
        numbers["psnr"] = errors["psnr"]
        if (shown | asked).all():  # a window of SSIM would see hidden pixels that are not asked for
            numbers["ssim"] = errors["ssim"]
    return numbers


def entry_errors(truth: np.ndarray, asked: np.ndarray, scores: np.ndarray) -> dict[str, Any]:
    """NMAE of scores of the entries asked for, row by row; average precision and AUROC where the truth is 0/1."""
    expected = truth[asked]
    errors: dict[str, Any] = {"nmae": nmae(expected, scores, value_range=float(np.ptp(truth)))}
    if np.isin(truth, (0, 1)).all():
        errors |= {"average_precision": average_precision(expected, scores), "auroc": auroc(expected, scores)}
    return errors


def recovery(model: models.Recommender, user_groups: np.ndarray, item_groups: np.ndarray) -> dict[str, float]:
    """AUC and NMI of both learned graphs; nothing for a model without graphs."""
    if model.user_graph_ is None or model.item_graph_ is None:
        return {}
    user_auc, user_nmi = group_recovery(model.user_graph_, user_groups)
    item_auc, item_nmi = group_recovery(model.item_graph_, item_groups)
    return {"user_auc": user_auc, "item_auc": item_auc, "user_nmi": user_nmi, "item_nmi": item_nmi}


def _arrays(recipe: Recipe, model: models.Recommender) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    if "graphs" in recipe.keep and isinstance(model, TrainedRecommender):
        for epoch, snapshot in model.snapshots_.items():
            for name, graph in (("user", snapshot.user_graph), ("item", snapshot.item_graph)):
                if graph is not None:
                    arrays[f"{name}_graph_{epoch}"] = graph.to_scipy().toarray().astype(np.float32)
    return arrays


def _graphs_at(graphs: dict[str, np.ndarray], position: int, quick: bool) -> dict[str, Any]:
    epochs = sorted(int(name.rpartition("_")[2]) for name in graphs if name.startswith("user_graph_"))
    epoch = epochs[0] if quick and position not in epochs else position
    return {f"{name}_graph": sp.csr_array(graphs[f"{name}_graph_{epoch}"].astype(float)) for name in ("user", "item")}
