"""The sections of a model's report, one function each."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.held_out import word_for
from air_recsys.evaluation.results import machine, versions
from air_recsys.exceptions import ParameterError
from air_recsys.models import Recommender
from air_recsys.models.deviations import PredictsDeviations
from air_recsys.report.charts import formation_strip, panel
from air_recsys.report.document import Markup, element, gallery, joined, number_text, picture, section, table
from air_recsys.report.plots import (
    plot_counts,
    plot_effective_neighbors,
    plot_energy,
    plot_fit,
    plot_noise,
    plot_ratings,
    plot_self_edges,
    plot_snapshots,
    plot_validation,
)
from air_recsys.report.plots.axes import has_swept, positive
from air_recsys.report.plots.snapshots import graphs_over_time, has_self_edges

if TYPE_CHECKING:
    from air_recsys.models.drug_target.model import DrugTargetAIR
    from air_recsys.report.plots.snapshots import Course

Name = Callable[[Hashable], str]
"""Turns the id of an item into what people call it."""

_N_SNAPSHOTS = 5
_N_ITEMS = 5
_COURSES = (
    (("objective", "fit"), plot_fit, "The fit to the ratings."),
    (("noise",), plot_noise, "The noise that the model finds in the ratings."),
    (("user_energy", "item_energy"), plot_energy, "The energy of the learned graphs."),
    (("validation_rmse",), plot_validation, "The error on the validation part."),
)
_REASONS = {  # of the end of a training
    "n_epochs": "all epochs were run",
    "n_sweeps": "all sweeps were run",
    "patience": "the validation error did not decrease any more",
    "stopping_delta": "the objective hardly changed",
    "callback": "a callback stopped it",
    "interrupt": "Ctrl-C or another signal ended it",
    "checkpoint": "a checkpoint could not be written",
    "divergence": "it diverged and was reset to its last finite state",
    "memory": "the device ran out of memory, and the last state was kept",
}


def data_section(model: Recommender, shown: str = "") -> Markup:
    """Return what the model was trained on: sizes, ratings, and how they are spread.

    Histograms that stand in `shown`, an earlier part of the page, are left out.
    """
    data = model.interactions_
    low, high = data.ratings.min(), data.ratings.max()
    rows: list[tuple[str, Any]] = [
        ("users", data.n_users),
        ("items", data.n_items),
        (word_for(data.ratings), data.n_ratings),
        ("share of all pairs", f"{data.density:.2%}"),
    ]
    if high > low:
        rows.append(("lowest and highest rating", f"{low:g} and {high:g}"))
        rows.append(("mean rating", float(data.ratings.mean())))
    if data.relations is not None:
        rows.append(("limits (known to be above or below)", int(np.count_nonzero(data.relations))))
    if data.weights is not None:
        rows.append(("weights of the ratings", f"{data.weights.min():g} to {data.weights.max():g}"))
    histograms = [ratings_picture(data)] if high > low else []
    histograms += [counts_picture(data, side) for side in ("user", "item")]
    sizes = table("Training data", ["measure", "value"], rows)
    return section("data", "The training data", gallery(*[each for each in histograms if each not in shown]), sizes)


def ratings_picture(data: Interactions) -> Markup:
    """Return a histogram of the ratings."""
    text = f"Histogram of the ratings from {data.ratings.min():g} to {data.ratings.max():g}."
    without = "" if data.relations is None else ", without limits"
    return picture(panel(plot_ratings, data), text, f"How often each rating was given{without}.")


def counts_picture(data: Interactions, side: Literal["user", "item"]) -> Markup:
    """Return a histogram of the ratings per user or per item."""
    index, size = (data.user_index, data.n_users) if side == "user" else (data.item_index, data.n_items)
    counts = np.bincount(index, minlength=size)
    rated = counts[counts > 0]
    without = f"; {size - rated.size:,} have none" if rated.size < size else ""
    word = word_for(data.ratings)
    text = f"Histogram of the {word} per {side}, median {np.median(rated):g}."
    return picture(panel(plot_counts, data, side), text, f"{word.capitalize()} per {side}{without}.")


def training_section(model: Recommender) -> Markup:
    """Return the course of training, and of the graphs where snapshots were kept."""
    history = model.history_
    if history.empty or "epoch" not in history:
        return section("training", "Training", note(f"{type(model).__name__} is not trained in epochs."))
    last, place = history.iloc[-1], getattr(model, "device_", None)
    unit = "sweep" if has_swept(history) else "epoch"
    device = "" if place is None else f" on {place}"
    state = f"the model holds the state of {unit} {getattr(model, 'n_iter_', int(last['epoch'])):,}"
    reason = _REASONS.get(str(getattr(model, "stopped_by_", "")))
    end = f" ({reason})." if reason else "."
    lead = element("p", f"{int(last['epoch']):,} {unit}s in {last['seconds']:.1f} s{device}; {state}{end}")
    curves = [
        picture(panel(plot, model), f"{caption[:-1]} over the {unit}s.", caption)
        for columns, plot, caption in _COURSES
        if any(np.isfinite(positive(history.get(name, ()))).any() for name in columns)
    ]
    return section("training", "Training", lead, gallery(*curves), *_snapshots(model))


def _snapshots(model: Recommender) -> list[Markup]:
    if model.user_graph_ is None and model.item_graph_ is None:
        return []
    kept = sorted(getattr(model, "snapshots_", {}))
    if not kept:
        return [note("There are no snapshots of the graphs: none were asked for (snapshot_epochs).")]
    course = graphs_over_time(model)
    epochs = sorted({epoch for graphs in course.values() for epoch in graphs})
    places = np.unique(np.linspace(0, len(epochs) - 1, min(_N_SNAPSHOTS, len(epochs))).astype(int))
    chosen = [epochs[place] for place in places]
    return [
        element("h3", "The graphs through training"),
        *_formation(model, course, chosen),
        picture(
            plot_snapshots(model, chosen),
            f"The learned graphs at the epochs {', '.join(map(str, chosen))}.",
            "Nodes in one order, by the communities of the last graph: large groups first, then finer ones.",
            wide=True,
        ),
        gallery(*_narrowing(model)),
    ]


def _formation(model: Recommender, course: Course, chosen: list[int]) -> list[Markup]:
    """Return how the communities of each graph form, over those of the chosen epochs that it has."""
    unit = "sweep" if has_swept(model.history_) else "epoch"
    some = [{epoch: graphs[epoch] for epoch in chosen if epoch in graphs} for graphs in course.values()]
    return [part for graphs in some if len(graphs) > 1 for part in formation_strip(graphs, unit)]


def _narrowing(model: Recommender) -> list[Markup]:
    neighbors = picture(
        panel(plot_effective_neighbors, model),
        "Effective number of neighbours over the epochs.",
        "How the graphs narrow: the effective number of neighbours.",
    )
    if not has_self_edges(model):
        return [neighbors]
    text = "Weight on the self-edges over the epochs."
    return [neighbors, picture(panel(plot_self_edges, model), text, "How much weight moves to the self-edges.")]


def recommendations_section(model: Recommender, name: Name) -> Markup:
    """Return the best items for the users with the most, the median and the fewest ratings."""
    data = model.interactions_
    if data.density == 1:
        return section("recommendations", "Sample recommendations", note("All users have rated all items."))
    counts = np.bincount(data.user_index, minlength=data.n_users)
    ranked = np.argsort(-counts, kind="stable")
    ranked = ranked[counts[ranked] > 0]
    chosen = dict.fromkeys(int(ranked[place]) for place in (0, ranked.size // 2, ranked.size - 1))
    lists = [_recommendations_of(model, user, name) for user in chosen]
    lead = f"For the users with the most, the median and the fewest {word_for(data.ratings)}."
    return section("recommendations", "Sample recommendations", element("p", lead), *lists)


def _recommendations_of(model: Recommender, user: int, name: Name) -> Markup:
    data = model.interactions_
    id = data.user_ids[[user]].tolist()[0]
    own = np.flatnonzero(data.user_index == user)
    best = own[np.argsort(-data.ratings[own], kind="stable")[:_N_ITEMS]]
    rated = zip(data.item_ids[data.item_index[best]].tolist(), data.ratings[best], strict=True)
    recommended = model.recommend([id], n=min(_N_ITEMS, data.n_items))
    word = word_for(data.ratings)
    head = element("h3", f"User {id}: {own.size:,} {word if own.size != 1 else word[:-1]}")
    told = [name(item) + (f" ({number_text(rating)})" if word == "ratings" else "") for item, rating in rated]
    lead = element("p", f"{'Rated highest' if word == 'ratings' else 'Likes'}: {', '.join(told)}.")
    if recommended.empty:
        return joined([head, lead, note("This user has rated every item.")])
    scores = scores_of(model, np.full(len(recommended), id, dtype=object), recommended)
    rows = [
        [int(row["rank"]), name(row["item"]), score, *reasons_of(model, id, row["item"], name)]
        for row, score in zip(recommended.to_dict("records"), scores, strict=True)
    ]
    columns = ["rank", "item", "score", "largest contributions"][: len(rows[0])]
    return joined([head, lead, table(f"Recommended to user {id}", columns, rows)])


def scores_of(model: Recommender, users: np.ndarray, recommended: pd.DataFrame) -> list[Any]:
    """Return the scores, with the deviation of a new rating where the model knows it."""
    if not (isinstance(model, PredictsDeviations) and model.knows_deviations_):
        return recommended["score"].tolist()
    items = recommended["item"].to_numpy()
    deviations = model.predict(users, items, return_std=True)[1]
    pairs = zip(recommended["score"], deviations, strict=True)
    return [element("span", f"{score:.3g} ± {d:.2g}", class_="whole") for score, d in pairs]


def reasons_of(model: Recommender, user: Hashable, item: Hashable, name: Name) -> list[str]:
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
    where = "This machine wrote the page; the model may have been trained on another one."
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
