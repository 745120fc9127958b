"""`write_drug_target_report`: one HTML file about a fitted `DrugTargetAIR`."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.evaluation.enrichment import enrichment_curve
from air_recsys.evaluation.rating_errors import probability_reliability
from air_recsys.evaluation.resampling import UserResamples, advantage_of, with_interval
from air_recsys.metrics import aupr, auroc, average_precision, calibration_error
from air_recsys.metrics.binary import weighted_precision
from air_recsys.models.drug_target.answers import cross_calibrated
from air_recsys.models.drug_target.model import DrugTargetAIR
from air_recsys.report.charts import panel
from air_recsys.report.document import Markup, check_page, element, gallery, page_html, picture, section, table
from air_recsys.report.learned import graph_section, parameters_section
from air_recsys.report.plots import plot_enrichment, plot_reliability
from air_recsys.report.sections import made_section, note
from air_recsys.report.structures import Shown, structures_part
from air_recsys.report.summary import advantage_text
from air_recsys.storage.validation import check_integer, import_extra
from air_recsys.storage.writing import replace_file

_CONTENTS = {
    "accuracy": "At a glance",
    "new": "New interactions",
    "drugs": "Drug graph",
    "targets": "Target graph",
    "data": "Data",
    "parameters": "Parameters",
    "made": "Versions",
}
_EXPLAINED = 10
_REASONS = 3
_SEARCHED = 50  # known interactions, among which are those of other drugs


def write_drug_target_report(model: DrugTargetAIR, path: str | os.PathLike[str], n: int = 50) -> Path:
    """Write a page: the most probable new interactions with their reasons, accuracy, both graphs.

    The page is one HTML file without scripts that loads nothing. Needs the extra ``viz``.

    Parameters
    ----------
    model : DrugTargetAIR
        Fitted, or loaded from a file.
    path : str or Path
        The file to write, replaced at once where it is there already.
    n : int
        New interactions that are listed; the first ten have reasons.

    Raises
    ------
    NotFittedError
    ParameterError
        If the folder does not exist.
    MissingExtraError
        Without matplotlib.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> model = DrugTargetAIR().fit(np.kron(np.eye(3), np.ones((4, 4))))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_drug_target_report(model, pathlib.Path(folder, "page.html"), n=3).read_text()
    >>> "Who is alike: the drug graph" in page
    True
    """
    target = Path(path)
    check_integer("n", n, minimum=1)
    check_page(model, "scores_", target)
    replace_file(target, drug_target_html(model, n).encode("utf-8", "replace"))
    return target


def drug_target_html(model: DrugTargetAIR, n: int) -> str:
    """Return the page of `write_drug_target_report` as text."""
    drug, target = model.drugs_.kind, model.targets_.kind
    with import_extra("matplotlib.style", "viz").context("default"):  # whatever the caller's figures look like
        body = [
            drug_target_summary(model),
            _new(model, n),
            graph_section(model.drug_graph_, drug, model.name),
            graph_section(model.target_graph_, target, model.name),
            _data(model),
            parameters_section(model),
            made_section(model),
        ]
    n_known = int((model.interactions_.ratings == 1).sum())
    lead = f"{n_known:,} known interactions of {len(model.drugs_):,} {drug}s and {len(model.targets_):,} {target}s"
    title = f"Which {drug}s may {_verb(model)} which {target}s"
    graphs = {f"{drug}s": f"{drug.capitalize()} graph", f"{target}s": f"{target.capitalize()} graph"}
    contents = {place: name for place, name in _CONTENTS.items() if place not in ("drugs", "targets")}
    contents = dict(list(contents.items())[:2]) | graphs | dict(list(contents.items())[2:])
    return page_html(f"Report: {drug}-{target} interactions", title, lead, contents, body)


def _verb(model: DrugTargetAIR) -> str:
    return "hit" if model.targets_.kind == "target" else "go with"


def _data(model: DrugTargetAIR) -> Markup:
    data = model.interactions_
    known = data.ratings == 1
    n_pairs, weight = data.n_users * data.n_items, model.unobserved_weight_
    drugs, targets = f"{model.drugs_.kind}s", f"{model.targets_.kind}s"
    rows: list[tuple[str, Any]] = [
        (drugs, data.n_users),
        (targets, data.n_items),
        ("known interactions", int(known.sum())),
        ("pairs recorded as 0", int((~known).sum())),
        ("pairs that are not recorded", n_pairs - data.n_ratings),
        (f"{drugs} without a known interaction", data.n_users - len(np.unique(data.user_index[known]))),
        (f"{targets} without a known interaction", data.n_items - len(np.unique(data.item_index[known]))),
        ("similarities", _given(model)),
        ("share of the regression in the scores", model.regression_weight_),
        ("a pair that is not recorded counts as", f"0, with weight {weight:g}" if weight else "missing"),
    ]
    return section("data", "Data", table("Training data", ["measure", "value"], rows))


def _given(model: DrugTargetAIR) -> str:
    return model.described_line_ or "none"


def _new(model: DrugTargetAIR, n: int) -> Markup:
    found = model.new_interactions(n)
    if found.empty:
        return section("new", "New interactions", note("All pairs are known to interact."))
    lead = element(
        "p",
        "Pairs that are not known to interact, the most probable first. The probability is the share of interactions "
        "among recorded pairs with similar scores by models without them. Of a pair that counts as 0 it is that of an "
        f"interaction that nobody has recorded, if {100 * model.known_share_:.3g} % of the true ones are recorded: an "
        "assumption that the table alone cannot settle; DrugTargetAIR(known_share=...) states another. The "
        "figure after 'up to' is the probability with the least share that the table allows.",
    )
    rows, shown = [], {}
    for row in found.to_dict("records"):
        ids, reasons = (row[model.drugs_.kind], row[model.targets_.kind]), ""
        if row["rank"] <= _EXPLAINED:
            speaking, own = model.explain(*ids, n=_SEARCHED).interactions.query("share > 0"), model.drugs_.kind
            reasons = "; ".join(_told(model, speaking.head(_REASONS)))
            speaking = speaking.loc[(speaking[own] != ids[0]) & ~speaking[own].duplicated()]
            known = zip(speaking[own], _told(model, speaking, named=False), strict=True)
            shown.setdefault(ids[0], Shown(ids[0], f", for {model.name(ids[1])}", list(known)[:_REASONS]))
        shown.setdefault(ids[0], Shown(ids[0]))
        recorded = "0" if row["recorded_zero"] else "nothing"
        most = f", up to {row['highest']:.3f}" if row["highest"] > row["probability"] else ""
        figures = f"{row['probability']:.3f} ± {row['deviation']:.3f}{most}"
        whole = [element("span", model.name(id), class_="whole") for id in ids]
        rows.append([int(row["rank"]), *whole, element("span", figures, class_="whole"), recorded, reasons])
    columns = ["rank", model.drugs_.kind, model.targets_.kind, "probability", "recorded", "largest contributions"]
    drawn = structures_part(model.described_[0], model.drugs_.ids, list(shown.values()), model.name)
    return section("new", "New interactions", lead, table(f"The first {len(rows)}", columns, rows), drawn)


def _told(model: DrugTargetAIR, interactions: pd.DataFrame, *, named: bool = True) -> list[str]:
    """Return what known interactions add to a score, with the names of the drugs or without."""
    joined = "hits" if _verb(model) == "hit" else "with"
    return [
        f"{model.name(row[model.drugs_.kind]) + ' ' if named else ''}{joined} {model.name(row[model.targets_.kind])} "
        f"({row['share']:.0%})"
        for row in interactions.to_dict("records")
    ]


_RESAMPLES = 200
_BASELINE = "counts of interactions"
_PROTOCOL = (
    "Every recorded pair was predicted by a model without a tenth of the records, the pair among them. Hidden pairs "
    "are random, so this is the accuracy for {0}s and {1}s with other known pairs. Intervals come from a "
    "bootstrap over {0}s. Probabilities come from a calibration without the pair."
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
    apart = calibration_error(truth, probability)
    told = f"{apart:.3f}" if apart >= 0.0005 else "below 0.001"
    error = element("p", f"Expected calibration error of the probabilities: {told}.")
    measures = table(f"Of {truth.size:,} hidden pairs", columns, rows)
    return section(
        "accuracy",
        "At a glance",
        words,
        gallery(*pictures),
        note(_PROTOCOL.format(model.drugs_.kind, model.targets_.kind)),
        measures,
        error,
    )


def _data_sentence(model: DrugTargetAIR) -> str:
    data = model.interactions_
    known = int((data.ratings == 1).sum())
    return (
        f"{type(model).__name__} has learned from {known:,} known interactions of {data.n_users:,} "
        f"{model.drugs_.kind}s and {data.n_items:,} {model.targets_.kind}s, "
        f"{known / (data.n_users * data.n_items):.2%} of all pairs."
    )


def _first_sentence(curve: pd.DataFrame) -> str:
    sizes, rates = curve["n_top"].to_numpy(), curve["hit_rate"].to_numpy()
    last = np.flatnonzero(sizes <= max(10, sizes[-1] // 100))[-1]
    return f"Of the first {sizes[last]:,} hidden pairs of its list {rates[last]:.0%} interact."


def _compared(name: str, held: pd.DataFrame) -> tuple[list[list[Any]], str]:
    """Return the rows of the table of measures, and the sentence on the one that counts."""
    truth = held["interaction"].to_numpy()
    resamples = UserResamples(held.iloc[:, 0].to_numpy(), _RESAMPLES)
    rows, drawn = [], {}
    for system, column in ((name, "score"), (_BASELINE, "counts")):
        score = held[column].to_numpy()
        drawn[system] = resamples.of(partial(weighted_precision, truth, score))
        measures = {"average_precision": average_precision(truth, score)}
        measures |= {"aupr": aupr(truth, score), "auroc": auroc(truth, score)}
        rows.append({"model": system} | with_interval(measures, drawn[system]))
    own, low, high = rows[0], "average_precision low", "average_precision high"
    interval = f"{own[low]:.3g} to {own[high]:.3g}"
    better = advantage_text("average_precision", advantage_of(rows, drawn, higher_is_better=True))
    precision = f"{own['average_precision']:.3g} (95 % interval {interval})"
    shown = [
        [
            row["model"],
            row["average_precision"],
            f"{row[low]:.3g} to {row[high]:.3g}",
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
