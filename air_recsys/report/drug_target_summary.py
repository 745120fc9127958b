"""The first section of a report on drugs and targets: how accurate the list is, in three sentences, two pictures."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.dti import DrugTargetAIR, enrichment_curve
from air_recsys.evaluation.rating_errors import probability_reliability
from air_recsys.evaluation.resampling import UserResamples, advantage_of, with_interval
from air_recsys.metrics import aupr, auroc, average_precision, calibration_error
from air_recsys.metrics.binary import weighted_precision
from air_recsys.models.drug_target.calibration import cross_calibrated
from air_recsys.report.figures import panel
from air_recsys.report.markup import Markup, element, gallery, picture, section, table
from air_recsys.report.plots import plot_enrichment, plot_reliability
from air_recsys.report.sections import note
from air_recsys.report.summary import advantage_text

_RESAMPLES = 200
_BASELINE = "counts of interactions"
_PROTOCOL = (
    "Every recorded pair was predicted by a model without a tenth of the records, the pair among them. Hidden pairs "
    "are random, so this is the accuracy for drugs and targets with other known pairs. Intervals come from a "
    "bootstrap over drugs. Probabilities come from a calibration without the pair."
)


def drug_target_summary(model: DrugTargetAIR) -> Markup:
    """Return what the model knows, how accurate it is on recorded pairs that it lacks, and whether it is honest."""
    held = model.held_out()
    truth, score = held["interaction"].to_numpy(), held["score"].to_numpy()
    lead = _data_sentence(model)
    if truth.all():
        nothing = note("Only interactions are recorded, so no measure is defined.")
        return section("accuracy", "At a glance", element("p", lead, class_="lead"), nothing)
    rows, accuracy = _compared(type(model).__name__, held)
    probability = cross_calibrated(score, truth)
    curve = enrichment_curve(truth, score)
    words = element("p", " ".join([lead, accuracy, _first_sentence(curve)]), class_="lead")
    pictures = [_enrichment(curve), _reliability(truth, probability)]
    columns = ["system", "average precision", "95 % interval", "AUPR (trapezoid)", "AUROC"]
    error = element(
        "p", f"Expected calibration error of the probabilities: {calibration_error(truth, probability):.3f}."
    )
    measures = table(f"Of {truth.size:,} hidden pairs", columns, rows)
    return section("accuracy", "At a glance", words, gallery(*pictures), note(_PROTOCOL), measures, error)


def _data_sentence(model: DrugTargetAIR) -> str:
    data = model.interactions_
    known = int((data.ratings == 1).sum())
    return (
        f"{type(model).__name__} has learned from {known:,} known interactions of {data.n_users:,} drugs and "
        f"{data.n_items:,} targets, {known / (data.n_users * data.n_items):.2%} of all pairs."
    )


def _first_sentence(curve: pd.DataFrame) -> str:
    sizes, rates = curve["n_top"].to_numpy(), curve["hit_rate"].to_numpy()
    last = np.flatnonzero(sizes <= max(10, sizes[-1] // 100))[-1]
    return f"Of the first {sizes[last]:,} hidden pairs of its list {rates[last]:.0%} interact."


def _compared(name: str, held: pd.DataFrame) -> tuple[list[list[Any]], str]:
    """Return the rows of the table of measures, and the sentence on the one that counts."""
    truth = held["interaction"].to_numpy()
    resamples = UserResamples(held["drug"].to_numpy(), _RESAMPLES)
    rows, drawn = [], {}
    for system, column in ((name, "score"), (_BASELINE, "counts")):
        score = held[column].to_numpy()
        drawn[system] = resamples.of(partial(weighted_precision, truth, score))
        measures = {"average_precision": average_precision(truth, score)}
        measures |= {"aupr": aupr(truth, score), "auroc": auroc(truth, score)}
        rows.append({"model": system} | with_interval(measures, drawn[system]))
    own, ends = rows[0], ("average_precision low", "average_precision high")
    interval = f"{own[ends[0]]:.3g} to {own[ends[1]]:.3g}"
    better = advantage_text("average_precision", advantage_of(rows, drawn, higher_is_better=True))
    precision = f"{own['average_precision']:.3g} (95 % interval {interval})"
    shown = [
        [
            row["model"],
            row["average_precision"],
            f"{row[ends[0]]:.3g} to {row[ends[1]]:.3g}",
            row["aupr"],
            row["auroc"],
        ]
        for row in rows
    ]
    return shown, f"The average precision for {len(held):,} hidden pairs is {precision}{better}."


def _enrichment(curve: pd.DataFrame) -> Markup:
    description = f"Curves of hit rate and found interactions by the size of the list. {_first_sentence(curve)}"
    return picture(panel(plot_enrichment, curve), description, "What the top of the list of hidden pairs holds.")


def _reliability(truth: np.ndarray, probability: np.ndarray) -> Markup:
    found = probability_reliability(truth, probability)
    shares = ", ".join(f"{row['held']:.1%} at {row['meant']:.1%}" for row in found.to_dict("records"))
    text = f"Shares of interactions by probability: {shares}."
    return picture(panel(plot_reliability, found), text, "Probabilities, and shares of hidden pairs that interact.")
