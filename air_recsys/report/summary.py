"""The first section of a model's report: what data, how accurate, in three sentences and two pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from air_recsys.evaluation.held_out import Evaluation
from air_recsys.evaluation.rating_errors import errors_by, interval_reliability
from air_recsys.evaluation.resampling import Advantage
from air_recsys.metrics import concordance_index, mse
from air_recsys.models import Recommender
from air_recsys.report.charts import panel
from air_recsys.report.document import Markup, element, gallery, number_text, picture, section, table
from air_recsys.report.plots import plot_accuracy, plot_errors, plot_predictions, plot_reliability
from air_recsys.report.plots.accuracy import range_text
from air_recsys.report.sections import counts_picture, ratings_picture

_NAMES = {"rmse": "RMSE", "mae": "MAE", "average_precision": "average precision", "auroc": "AUROC"}
_STARS = 12  # distinct ratings
_HOW = (
    "To measure it, give unseen ratings (air-recsys report --test FILE, or write_report(test=...)), "
    "or let the report fit the model again on 90 % of them (--evaluate)."
)


def measure_name(measure: str) -> str:
    """Return what people call a measure.

    Examples
    --------
    >>> measure_name("rmse"), measure_name("ndcg@10")
    ('RMSE', 'NDCG@10')
    """
    return _NAMES.get(measure, measure.replace("ndcg", "NDCG"))


def summary_section(model: Recommender, evaluation: Evaluation) -> Markup:
    """Return what the model was trained on and how accurate it is beside its baselines."""
    sentences = [_data_sentence(model), _accuracy_sentence(model, evaluation), _last_sentence(evaluation)]
    lead = element("p", " ".join(sentences), class_="lead")
    notes = element("ul", *[element("li", note) for note in evaluation.notes]) if evaluation.notes else ""
    protocol = element("p", f"Measured on {evaluation.protocol}.", class_="note")
    errors = [protocol, accuracy_table(evaluation)] if evaluation.rows else []
    return section("accuracy", "At a glance", lead, gallery(*_pictures(model, evaluation)), *errors, notes)


def accuracy_table(evaluation: Evaluation) -> Markup:
    """Return the measures of the model and its baselines, that which counts with its interval."""
    main = evaluation.measure
    others = [name for name in evaluation.rows[0] if name != "model" and not name.startswith(main)]
    columns = ["model", measure_name(main)] + (["95 % interval"] if evaluation.is_unseen else [])
    rows = []
    for row in evaluation.rows:
        interval = [_range(row[f"{main} low"], row[f"{main} high"])] if evaluation.is_unseen else []
        rows.append([row["model"], row[main], *interval, *[row.get(name, float("nan")) for name in others]])
    return table(evaluation.title, columns + [measure_name(name) for name in others], rows)


def _data_sentence(model: Recommender) -> str:
    data = model.interactions_
    low, high = data.ratings.min(), data.ratings.max()
    sizes = f"{data.n_users:,} users on {data.n_items:,} items, {data.density:.2%} of all pairs"
    if low == high:
        return f"{type(model).__name__} has learned from {data.n_ratings:,} likes of {sizes}."
    spread = f"{number_text(low)} to {number_text(high)}, mean {number_text(float(data.ratings.mean()))}"
    return f"{type(model).__name__} has learned from {data.n_ratings:,} ratings ({spread}) of {sizes}."


def _accuracy_sentence(model: Recommender, evaluation: Evaluation) -> str:
    if not evaluation.is_unseen:
        return f"Its accuracy on unseen {evaluation.word} is not known: none were held out."
    if not evaluation.rows:
        return "No test pair has a user and an item of the training data, so there is no measure of its lists."
    own, main = evaluation.rows[0], evaluation.measure
    interval = _range(own[f"{main} low"], own[f"{main} high"])
    seen = f"On {len(evaluation.pairs):,} test {evaluation.word} its {measure_name(main)} is"
    figure = f"{own[main]:.3g} (95 % interval {interval})"
    return f"{seen} {figure}{advantage_text(main, evaluation.advantage)}."


def advantage_text(measure: str, advantage: Advantage | None) -> str:
    """Return the end of a sentence on a measure: how it compares with the best baseline's."""
    if advantage is None:
        return ""
    gain = advantage.gain
    low, high = sorted((abs(gain.low), abs(gain.high)))
    if gain.low <= 0 <= gain.high:
        return f", not clearly different from that of {advantage.baseline}"
    is_lower = (gain.value > 0) == (measure == "rmse")
    by = f"{abs(gain.value):.2g} ({low:.2g} to {high:.2g})"
    judgement = "" if gain.value > 0 else ", which is worse"
    return f", {by} {'lower' if is_lower else 'higher'} than that of {advantage.baseline}{judgement}"


def _last_sentence(evaluation: Evaluation) -> str:
    if not evaluation.is_unseen:
        return _HOW
    pairs = evaluation.pairs
    if evaluation.measure != "rmse":
        of = f"{pairs['user'].nunique():,} users and {pairs['item'].nunique():,} items"
        return f"The test {evaluation.word} are of {of}."
    errors = evaluation.predicted - evaluation.truth
    groups = [
        errors_by(pairs[f"{side}_ratings"].to_numpy(), errors, pairs["user"].to_numpy()).assign(side=side)
        for side in ("user", "item")
    ]
    worst = max((row for found in groups for row in found.to_dict("records")), key=lambda row: row["rmse"])
    ends = range_text(worst["lowest"], worst["highest"])
    group = f"{worst['side']}s with {ends} training ratings (RMSE {worst['rmse']:.3g})"
    if not evaluation.knows_deviations:
        return f"Its error is largest for {group}."
    deviations, users = pairs["deviation"].to_numpy(), pairs["user"].to_numpy()
    reliability = interval_reliability(evaluation.truth, evaluation.predicted, deviations, users)
    held = float(reliability.set_index("meant").loc[0.9, "held"])
    return f"Its 90 % intervals hold {held:.1%} of them, and its error is largest for {group}."


def _pictures(model: Recommender, evaluation: Evaluation) -> list[Markup]:
    data = model.interactions_
    if not evaluation.rows:
        return [counts_picture(data, side) for side in ("user", "item")]
    first = _accuracy_picture(evaluation) if evaluation.is_unseen else ratings_picture(data)
    if np.ptp(evaluation.truth) == 0:
        return [first, counts_picture(data, "item")]
    own = evaluation.rows[0]
    figures = _fit_figures(evaluation)
    scatter = picture(
        panel(plot_predictions, evaluation.truth, evaluation.predicted, limits=evaluation.limits),
        f"Predicted against true ratings of {evaluation.truth.size:,} pairs; RMSE {own['rmse']:.4g}.{figures}",
        f"{evaluation.title}: predictions of {own['model']} against the true ratings.{figures}",
    )
    return [first, scatter]


def _fit_figures(evaluation: Evaluation) -> str:
    """Return the figures by which affinities are judged, of ratings that are no stars, and what holds of limits."""
    truth, predicted, limits = evaluation.truth, evaluation.predicted, evaluation.limits
    if np.unique(truth).size <= _STARS:
        return ""
    told = f" MSE {mse(truth, predicted):.3g}, concordance index {concordance_index(truth, predicted):.3g}"
    if limits is None:
        return f"{told}."
    missed = ((limits["truth"] - limits["predicted"]) * limits["relation"]).clip(lower=0)
    both = [np.append(one, limits[name]) for one, name in ((truth, "truth"), (predicted, "predicted"))]
    error = (np.square(predicted - truth).sum() + np.square(missed).sum()) / both[0].size
    return (
        f"{told}. With limits {error:.3g} and {concordance_index(*both):.3g}: {np.mean(missed == 0):.0%} of "
        f"{len(limits):,} limits hold, of which the error is 0. Up to 1,000 are open arrows to where the truth is."
    )


def _accuracy_picture(evaluation: Evaluation) -> Markup:
    main = evaluation.measure
    name = measure_name(main)
    figures = "; ".join(f"{row['model']} {number_text(row[main])}" for row in evaluation.rows)
    better = "lower" if main == "rmse" else "higher"
    drawn = panel(plot_accuracy, evaluation.rows, main, f"{name} ({better} is better)")
    return picture(drawn, f"{name} with 95 % intervals: {figures}.", f"{evaluation.title}, with 95 % intervals.")


def _range(low: float, high: float) -> str:
    return f"{low:.3g} to {high:.3g}"


_GROUPS = {
    "user_ratings": ("ratings of the user", "By the activity of users: their training ratings."),
    "item_ratings": ("ratings of the item", "By the popularity of items: their training ratings."),
    "truth": ("true rating", "By the true rating."),
}


def calibration_section(evaluation: Evaluation) -> Markup | None:
    """Return how many ratings the model's intervals of 50 % to 95 % hold; None without intervals."""
    pairs = evaluation.pairs
    if not evaluation.is_unseen or not evaluation.knows_deviations:
        return None
    deviations, users = pairs["deviation"].to_numpy(), pairs["user"].to_numpy()
    found = interval_reliability(evaluation.truth, evaluation.predicted, deviations, users)
    lead = (
        "The model estimates the standard deviation of a new rating around its prediction: an interval of 90 % is "
        "1.645 standard deviations to both sides. Intervals are too wide above the diagonal, and too narrow below it."
    )
    shares = ", ".join(f"{row['held']:.1%} within {row['meant']:.0%}" for row in found.to_dict("records"))
    drawn = picture(panel(plot_reliability, found), f"Ratings held by intervals: {shares}.", "Intervals and truth.")
    rows = [
        [f"{row['meant']:.0%}", f"{row['held']:.1%}", f"{row['low']:.1%} to {row['high']:.1%}", row["width"]]
        for row in found.to_dict("records")
    ]
    caption = f"Of {len(pairs):,} test ratings"
    held = table(caption, ["interval", "ratings held", "95 % interval", "mean width"], rows)
    return section("calibration", "Are the intervals right?", element("p", lead), gallery(drawn, held))


def errors_section(evaluation: Evaluation) -> Markup | None:
    """Return the errors by activity of users, popularity of items and true rating; None without unseen ratings."""
    if evaluation.measure != "rmse" or not evaluation.is_unseen:
        return None
    pairs, errors = evaluation.pairs, evaluation.predicted - evaluation.truth
    users = pairs["user"].to_numpy()
    tables = {name: errors_by(pairs[name].to_numpy(), errors, users) for name in _GROUPS}
    drawn = [_picture(tables[name], *words) for name, words in _GROUPS.items()]
    lead = (
        "Groups of about equally many test ratings, with 95 % intervals. Errors of all models are larger for extreme "
        "ratings, because uncertainty shrinks predictions to the mean."
    )
    rows = [row for name, found in tables.items() for row in _rows(_GROUPS[name][0], found)]
    columns = ["group", "ratings", "RMSE", "95 % interval", "mean error"]
    figures = element("details", element("summary", "The figures"), table("Errors by group", columns, rows))
    return section("errors", "Where the errors are", element("p", lead), gallery(*drawn), figures)


def _picture(found: pd.DataFrame, quantity: str, caption: str) -> Markup:
    figures = "; ".join(
        f"{range_text(row['lowest'], row['highest'])}: {row['rmse']:.3g}" for row in found.to_dict("records")
    )
    return picture(panel(plot_errors, found, quantity), f"RMSE by {quantity}: {figures}.", caption)


def _rows(quantity: str, found: pd.DataFrame) -> list[list[Any]]:
    return [
        [
            f"{quantity} {range_text(row['lowest'], row['highest'])}",
            int(row["pairs"]),
            float(row["rmse"]),
            f"{row['low']:.3g} to {row['high']:.3g}",
            f"{row['bias']:+.3f}",
        ]
        for row in found.to_dict("records")
    ]
