"""The sections of a model's report, one function each."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from air_recsys.evaluation.held_out import Evaluation
from air_recsys.exceptions import ParameterError
from air_recsys.models import Recommender
from air_recsys.plotting import (
    plot_counts,
    plot_predictions,
    plot_ratings,
    plot_snapshots,
    plot_training,
    plot_vanishing,
)
from air_recsys.plotting.axes import has_swept, side_by_side
from air_recsys.plotting.snapshots import graphs_over_time
from air_recsys.report.markup import Markup, element, joined, number_text, picture, section, table
from air_recsys.results import machine, versions

if TYPE_CHECKING:
    from air_recsys.dti import DrugTargetAIR

Name = Callable[[Hashable], str]
"""Turns the id of an item into what people call it."""

_N_SNAPSHOTS = 5
_N_ITEMS = 5
_MEASURES = {
    "rmse": "RMSE",
    "mae": "MAE",
    "average_precision": "average precision",
    "auroc": "AUROC",
}
_REASONS = {  # of the end of a training
    "n_epochs": "all epochs were run",
    "n_sweeps": "all sweeps were run",
    "patience": "the validation error fell no more",
    "stopping_delta": "the objective hardly changed",
    "callback": "a callback stopped it",
    "interrupt": "Ctrl-C or another signal ended it",
    "checkpoint": "a checkpoint could not be written",
    "divergence": "it diverged and was set back",
    "memory": "the device ran out of memory and it was set back",
}


def data_section(model: Recommender) -> Markup:
    """Return what the model was trained on: sizes, ratings, and how they are spread."""
    data = model.interactions_
    low, high = data.ratings.min(), data.ratings.max()
    rows: list[tuple[str, Any]] = [
        ("users", data.n_users),
        ("items", data.n_items),
        ("ratings", data.n_ratings),
        ("rated pairs", f"{data.density:.2%} of all"),
        ("lowest and highest rating", f"{low:g} and {high:g}"),
        ("mean rating", float(data.ratings.mean())),
    ]
    if data.weights is not None:
        rows.append(("weights of the ratings", f"{data.weights.min():g} to {data.weights.max():g}"))
    figure = side_by_side(data, (plot_ratings, plot_counts, partial(plot_counts, side="item")))
    counts = [np.bincount(index) for index in (data.user_index, data.item_index)]
    medians = [np.median(count[count > 0]) for count in counts]
    description = (
        f"Three histograms: ratings from {low:g} to {high:g}; ratings per user, median {medians[0]:g}; "
        f"ratings per item, median {medians[1]:g}."
    )
    caption = "How the ratings are spread over their values, over users and over items."
    histograms = picture(figure, description, caption)
    return section("data", "Data", table("Training data", ["measure", "value"], rows), histograms)


def parameters_section(model: Recommender | DrugTargetAIR) -> Markup:
    """Return the model's parameters: those that differ from their defaults, and the others folded away."""
    given = model.get_params(deep=False)
    defaults = type(model)().get_params(deep=False)
    changed = [name for name in given if repr(given[name]) != repr(defaults[name])]
    kept = [name for name in given if name not in changed]

    def listed(caption: str, names: list[str]) -> Markup:
        return table(caption, ["parameter", "value"], [(element("code", name), repr(given[name])) for name in names])

    kind = type(model).__name__
    found = getattr(model, "settings_", {})
    chosen = [(element("code", name), repr(value)) for name, value in found.items()]
    tables = (
        [table("What the training took for parameters that were 'auto'", ["parameter", "value"], chosen)]
        if chosen
        else []
    )
    tables += [listed(f"Parameters of {kind} that differ from their defaults", changed)] if changed else []
    if kept:
        summary = element("summary", f"{len(kept)} parameters at their defaults")
        tables.append(element("details", summary, listed(f"Parameters of {kind} at their defaults", kept)))
    return section("parameters", "Model", element("p", f"Class {kind}."), *tables)


def accuracy_section(evaluation: Evaluation) -> Markup:
    """Return the errors beside the baselines', and predicted against true ratings."""
    own = evaluation.rows[0]
    measures = [name for name in own if name != "model"]
    rows = [[row["model"], *[row.get(name, float("nan")) for name in measures]] for row in evaluation.rows]
    columns = ["model", *[_MEASURES.get(name, name) for name in measures]]
    notes = element("ul", *[element("li", note) for note in evaluation.notes]) if evaluation.notes else ""
    scatter = picture(
        plot_predictions(evaluation.truth, evaluation.predicted),
        f"Predicted against true ratings of {evaluation.truth.size:,} pairs; RMSE {own['rmse']:.4g}.",
        f"{evaluation.title}: predictions of {own['model']} against the true ratings.",
    )
    lead = element("p", f"Measured on {evaluation.protocol}.")
    return section("accuracy", "Accuracy", lead, table(evaluation.title, columns, rows), notes, scatter)


def training_section(model: Recommender) -> Markup:
    """Return the course of training, and of the graphs where snapshots were kept."""
    history = model.history_
    if history.empty:
        return section("training", "Training", note(f"{type(model).__name__} is not trained in epochs."))
    last, place = history.iloc[-1], getattr(model, "device_", None)
    unit = "sweep" if has_swept(history) else "epoch"
    device = "" if place is None else f" on {place}"
    state = f"the model holds the state of {unit} {getattr(model, 'n_iter_', int(last['epoch'])):,}"
    reason = _REASONS.get(str(getattr(model, "stopped_by_", "")))
    end = f" ({reason})." if reason else "."
    lead = element("p", f"{int(last['epoch']):,} {unit}s in {last['seconds']:.1f} s{device}; {state}{end}")
    columns = [name for name in ("fit", "noise", "user_energy", "item_energy", "validation_rmse") if name in history]
    figures = ", ".join(f"{name} {number_text(float(last[name]))}" for name in columns if np.isfinite(last[name]))
    description = f"Curves over the {unit}s; at the end {figures}."
    curves = picture(plot_training(model), description, "The course of training.")
    return section("training", "Training", lead, curves, *_snapshots(model))


def _snapshots(model: Recommender) -> list[Markup]:
    if model.user_graph_ is None and model.item_graph_ is None:
        return []
    kept = sorted(getattr(model, "snapshots_", {}))
    if not kept:
        asked = bool(len(getattr(model, "snapshot_epochs", ())))
        why = "a model file does not hold them" if asked else "none were asked for (snapshot_epochs)"
        return [note(f"There are no snapshots of the graphs: {why}.")]
    epochs = sorted({epoch for graphs in graphs_over_time(model).values() for epoch in graphs})
    places = np.unique(np.linspace(0, len(epochs) - 1, min(_N_SNAPSHOTS, len(epochs))).astype(int))
    chosen = [epochs[place] for place in places]
    return [
        element("h3", "The graphs through training"),
        picture(
            plot_snapshots(model, chosen),
            f"The learned graphs at the epochs {', '.join(map(str, chosen))}.",
            "Nodes in one order, by the communities of the last graph: large groups first, then finer ones.",
        ),
        picture(
            plot_vanishing(model),
            "Effective number of neighbours and weight on the self-edges over the epochs.",
            "How the graphs narrow: fewer neighbours count, and weight moves to the self-edges.",
        ),
    ]


def recommendations_section(model: Recommender, name: Name) -> Markup:
    """Return the best items for the users with the most, the median and the fewest ratings."""
    data = model.interactions_
    counts = np.bincount(data.user_index, minlength=data.n_users)
    ranked = np.argsort(-counts, kind="stable")
    ranked = ranked[counts[ranked] > 0]
    chosen = dict.fromkeys(int(ranked[place]) for place in (0, ranked.size // 2, ranked.size - 1))
    lists = [_recommendations_of(model, user, name) for user in chosen]
    lead = "For the users with the most, the median and the fewest ratings."
    return section("recommendations", "Sample recommendations", element("p", lead), *lists)


def _recommendations_of(model: Recommender, user: int, name: Name) -> Markup:
    data = model.interactions_
    id = data.user_ids[[user]].tolist()[0]
    own = np.flatnonzero(data.user_index == user)
    best = own[np.argsort(-data.ratings[own], kind="stable")[:_N_ITEMS]]
    rated = zip(data.item_ids[data.item_index[best]].tolist(), data.ratings[best], strict=True)
    recommended = model.recommend([id], n=min(_N_ITEMS, data.n_items))
    head = element("h3", f"User {id}: {own.size:,} ratings")
    lead = element("p", f"Rated highest: {', '.join(f'{name(item)} ({rating:g})' for item, rating in rated)}.")
    if recommended.empty:
        return joined([head, lead, note("This user has rated every item.")])
    rows = [
        [int(row["rank"]), name(row["item"]), float(row["score"]), *_reasons(model, id, row["item"], name)]
        for row in recommended.to_dict("records")
    ]
    columns = ["rank", "item", "score", "speaks most for it"][: len(rows[0])]
    return joined([head, lead, table(f"Recommended to user {id}", columns, rows)])


def _reasons(model: Recommender, user: Hashable, item: Hashable, name: Name) -> list[str]:
    """Return the rated items that raise a score most, as one text; nothing for models that cannot explain."""
    explain = getattr(model, "explain", None)
    if explain is None:
        return []
    try:
        items: pd.DataFrame = explain(user, item, n=3).items
    except ParameterError:  # transforms tie a row to all others
        return []
    raising = items[items["contribution"] > 0]
    pairs = zip(raising["item"].tolist(), raising["contribution"], strict=True)
    return [", ".join(f"{name(other)} (+{value:.2g})" for other, value in pairs)]


def made_section(model: Recommender | DrugTargetAIR) -> Markup:
    """Return when, with what and where the page was made."""
    where = "The machine is the one that wrote this page; the model may have been trained elsewhere."
    seed = ("seed of the model", repr(getattr(model, "random_state", None)))
    return section("made", "How this was made", machine_table(seed), note(where))


def machine_table(*more: tuple[str, str]) -> Markup:
    """Return a table of the time, further rows, the machine and the versions."""
    computer = machine()
    now = datetime.datetime.now(datetime.UTC)
    rows: list[tuple[str, Any]] = [
        ("report written", f"{now:%Y-%m-%d %H:%M} UTC"),
        *more,
        ("processor", f"{computer['processor']}, {computer['cores']} cores"),
        ("GPU", computer["gpu"] or "none"),
        *versions().items(),
    ]
    return table("Versions and machine", ["what", "value"], rows)


def note(text: str) -> Markup:
    """Return a paragraph that says what is absent, or what to keep in mind."""
    return element("p", text, class_="note")
