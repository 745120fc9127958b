"""The sections of a model's report on unseen ratings: whether its intervals are honest, and where it errs."""

from __future__ import annotations

from typing import Any

import pandas as pd

from air_recsys.evaluation.held_out import Evaluation
from air_recsys.evaluation.rating_errors import errors_by, interval_reliability
from air_recsys.report.figures import panel
from air_recsys.report.markup import Markup, element, gallery, picture, section, table
from air_recsys.report.plots import plot_errors, plot_reliability
from air_recsys.report.plots.accuracy import range_text

_GROUPS = {
    "user_ratings": ("ratings of the user", "By the activity of users: their training ratings."),
    "item_ratings": ("ratings of the item", "By the popularity of items: their training ratings."),
    "truth": ("true rating", "By the true rating."),
}


def calibration_section(evaluation: Evaluation) -> Markup | None:
    """Return how many ratings the model's intervals hold, from those of 50 % to those of 95 %; None without intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from air_recsys import BiasModel
    >>> from air_recsys.evaluation.held_out import evaluate_model
    >>> calibration_section(evaluate_model(BiasModel().fit(np.array([[5.0, 1.0], [4.0, 2.0]])))) is None
    True
    """
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
