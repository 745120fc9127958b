"""A system of a recipe: from its settings to a trained model and what is measured of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

import air_recsys.models as models
from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.graph_quality import group_recovery
from air_recsys.evaluation.results import write_json
from air_recsys.exceptions import DataFileError
from air_recsys.images import inpainting_errors, model_for
from air_recsys.metrics import auroc, average_precision, nmae
from air_recsys.models.presets import routed
from air_recsys.models.trained import TrainedRecommender
from air_recsys.storage.reading import parse_json
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
_QUICK = {"n_epochs": QUICK_EPOCHS, "evaluate_every": 10, "n_rounds": 1}
_OF_RECIPES = ("model", "preset", "side", "dense")


@dataclass
class Outcome:
    """The figures of a run."""

    numbers: dict[str, float]

    def write(self, path: Path) -> None:
        """Write them to a file in one step: an interruption leaves no half of it."""
        write_json(path, {"numbers": self.numbers})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote, or raise `DataFileError` where the file is not whole."""
        try:
            found = parse_json(path.read_bytes())["numbers"]
            return cls({name: np.nan if value is None else float(value) for name, value in found.items()})
        except (OSError, LookupError, TypeError, ValueError, AttributeError) as error:
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
) -> Outcome:
    """Train one system on one recipe and measure it on the entries that it did not see.

    Parameters
    ----------
    settings : dict
        "model", "preset" (of AIR), "side" (give the graphs that come with the data), "dense" (graphs of all pairs),
        and parameters of the model.
    validation, quick, device
        As in `benchmarks.paper.runs.Options`.
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
    model = make_model(settings, case, seed, quick, device)
    start = time.perf_counter()
    model.fit(data)
    m, n = case.truth.shape
    completed = model.predict(np.repeat(np.arange(m), n), np.tile(np.arange(n), m)).reshape(m, n)
    seconds = time.perf_counter() - start
    numbers = _errors(case, completed, shown, asked) | {"seconds": seconds}
    if case.groups is not None and isinstance(model, TrainedRecommender):
        numbers |= recovery(model, *case.groups)
    return Outcome(numbers)


def make_model(
    settings: dict[str, Any], case: Case | None, seed: int, quick: bool = False, device: str = "auto"
) -> models.Recommender:
    """The model of a recipe's settings, not fitted."""
    parameters = {key: value for key, value in settings.items() if key not in _OF_RECIPES}
    if settings.get("dense"):
        parameters |= {"graph_neighbors": None, "graph_refresh": None}
    if settings.get("side") and case is not None and case.side is not None:
        parameters |= {"user_graph": case.side[0], "item_graph": case.side[1]}
    kind = getattr(models, settings["model"])
    model = models.AIR.of_preset(settings["preset"]) if "preset" in settings else kind()
    names = {name.removeprefix("solver__") for name in model.get_params()}
    parameters |= {name: value for name, value in (("random_state", seed), ("device", device)) if name in names}
    if quick:
        parameters |= {name: value for name, value in _QUICK.items() if name in names}
    return model.set_params(**routed(model, parameters))


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
