"""`write_report`: one HTML file about a fitted model that needs no network."""

from __future__ import annotations

import copy
import os
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.evaluation.held_out import Evaluation, evaluate_model, word_for
from air_recsys.exceptions import DataError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import Recommender
from air_recsys.models.explain import check_labels
from air_recsys.report import sections
from air_recsys.report.document import check_page, page_html
from air_recsys.report.learned import graph_section, learned_section, parameters_section
from air_recsys.report.sections import Name
from air_recsys.report.strongest import strongest_section
from air_recsys.report.summary import calibration_section, errors_section, summary_section
from air_recsys.storage.validation import import_extra
from air_recsys.storage.writing import replace_file

Titles = Mapping[Any, str] | pd.Series | pd.DataFrame | None
_CONTENTS = {
    "accuracy": "At a glance",
    "users": "User graph",
    "items": "Item graph",
    "calibration": "Intervals",
    "errors": "Errors",
    "strongest": "Strongest predictions",
    "recommendations": "Recommendations",
    "learned": "Learned",
    "data": "Data",
    "training": "Training",
    "parameters": "Parameters",
    "made": "Versions",
}


def write_report(
    model: Recommender,
    path: str | os.PathLike[str],
    *,
    test: Any = None,
    evaluate: bool | None = None,
    titles: Titles = None,
) -> Path:
    """Write a page about a fitted model: accuracy, graphs, intervals, errors, sample recommendations, parameters.

    The page is one HTML file without scripts that loads nothing; text of the caller's is shown as text, and figures
    take the colours of the page, light or dark. It names what a model lacks (graphs, a course of training, snapshots).
    Needs the extra ``viz``.

    Parameters
    ----------
    model : Recommender
        Fitted, or loaded from a file.
    path : str or Path
        The file to write, replaced at once where it is there already.
    test : Interactions, DataFrame, sparse matrix or ndarray, optional
        Ratings that the model has not seen, for its accuracy with intervals, beside that of `BiasModel` and
        `GlobalMean`; of likes alone for lists, beside what is most popular.
    evaluate : bool, optional
        Without `test`: fit the model anew on 90 % of its ratings and measure on the others. None does so where the
        training took at most a minute. Else the page says that the accuracy is not known, and shows the error on the
        training ratings.
    titles : mapping, Series or DataFrame, optional
        From an item's id to what people call it; of a table, indexed by id or with a column "item", the column
        "title". By default the labels of the item graph, else the ids.

    Raises
    ------
    NotFittedError
        For a model that is not fitted.
    ParameterError
        If the folder does not exist, or for both `test` and `evaluate`.
    DataError
        If `test` cannot be used, and for a table of titles without the column "title".
    MissingExtraError
        Without matplotlib.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from air_recsys.models import BiasModel
    >>> model = BiasModel().fit(np.array([[5.0, 1.0, 4.0], [4.0, np.nan, 3.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(model, pathlib.Path(folder, "report.html")).read_text()
    >>> "This model has learned no graph of users." in page
    True
    """
    target, model = Path(path), copy.copy(model)  # the state of this moment, whatever another thread writes
    check_report(model, target)
    _by_id(titles)  # an error before any work
    evaluation = evaluate_model(model, test, evaluate if test is None else bool(evaluate))
    replace_file(target, report_html(model, evaluation, titles).encode("utf-8", "replace"))
    return target


def check_report(model: Recommender, target: Path) -> None:
    """Raise before any work where there is nothing to report, no place for it, or nothing to draw it with."""
    check_page(model, "global_mean_", target)


def report_html(model: Recommender, evaluation: Evaluation, titles: Titles = None) -> str:
    """Return the page of `write_report` as text, with an evaluation that was made before."""
    name, data = _item_names(model, titles), model.interactions_
    counts = [
        np.bincount(each, minlength=n)
        for each, n in ((data.user_index, data.n_users), (data.item_index, data.n_items))
    ]
    with import_extra("matplotlib.style", "viz").context("default"):  # whatever the caller's figures look like
        summary = summary_section(model, evaluation)
        body = {
            "accuracy": summary,
            "users": graph_section(model.user_graph_, "user", str, counts[0]),
            "items": graph_section(_labelled(model.item_graph_, titles), "item", name, counts[1]),
            "calibration": calibration_section(evaluation),
            "errors": errors_section(evaluation),
            "strongest": strongest_section(model, name),
            "recommendations": sections.recommendations_section(model, name),
            "learned": learned_section(model),
            "data": sections.data_section(model, summary),
            "training": sections.training_section(model),
            "parameters": parameters_section(model),
            "made": sections.made_section(model),
        }
    there = {key: part for key, part in body.items() if part is not None}
    kind = type(model).__name__
    return page_html(
        f"Report: {kind}",
        f"What {kind} has learned",
        f"{data.n_ratings:,} {word_for(data.ratings)} of {data.n_users:,} users on {data.n_items:,} items",
        {key: _CONTENTS[key] for key in there},
        list(there.values()),
    )


def _labelled(graph: SimilarityGraph | None, titles: Titles) -> SimilarityGraph | None:
    """Return a graph with all that a table of titles says of the items: it names the communities."""
    if graph is None or titles is None:
        return graph
    table = titles if isinstance(titles, pd.DataFrame) else pd.Series(titles, dtype=object).to_frame("title")
    return graph.with_attributes(table, label="title")


def _by_id(titles: Titles) -> Any:
    """Return titles by id: those of a table are in its column "title"."""
    if not isinstance(titles, pd.DataFrame):
        return titles
    if "title" not in titles:
        raise DataError(f"expected titles with the column title, found {list(titles.columns)}")
    return (titles.set_index("item") if "item" in titles else titles)["title"]


def _item_names(model: Recommender, titles: Titles) -> Name:
    names: dict[Any, Any] = {}
    graph = model.item_graph_
    if titles is not None:
        names = check_labels(_by_id(titles), model.interactions_.item_ids) or {}
    elif graph is not None and hasattr(graph, "labels"):
        names = dict(zip(graph.ids.tolist(), graph.labels, strict=True))

    def name(id: Hashable) -> str:
        title = names.get(id)
        return str(id) if title is None or pd.isna(title) else str(title)

    return name
