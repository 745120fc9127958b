"""`write_drug_target_report`: one HTML file about a fitted `DrugTargetAIR`."""

from __future__ import annotations

import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np

from air_recsys.dti import DrugTargetAIR
from air_recsys.report.document import check_page, page_html
from air_recsys.report.drug_target_summary import drug_target_summary
from air_recsys.report.graph_section import graph_section
from air_recsys.report.markup import Markup, element, section, table
from air_recsys.report.parameters import parameters_section
from air_recsys.report.sections import made_section, note
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
        Without matplotlib or networkx.

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
    with import_extra("matplotlib.style", "viz").context("default"):  # whatever the caller's figures look like
        body = [
            drug_target_summary(model),
            _new(model, n),
            graph_section(model.drug_graph_, "drug", str),
            graph_section(model.target_graph_, "target", str),
            _data(model),
            parameters_section(model),
            made_section(model),
        ]
    n_known = int((model.interactions_.ratings == 1).sum())
    lead = f"{n_known:,} known interactions of {len(model.drugs_):,} drugs and {len(model.targets_):,} targets"
    return page_html("Report: drug-target interactions", "Which drugs may hit which targets", lead, _CONTENTS, body)


def _data(model: DrugTargetAIR) -> Markup:
    data = model.interactions_
    known = data.ratings == 1
    n_pairs, weight = data.n_users * data.n_items, model.unobserved_weight_
    rows: list[tuple[str, Any]] = [
        ("drugs", data.n_users),
        ("targets", data.n_items),
        ("known interactions", int(known.sum())),
        ("pairs recorded as 0", int((~known).sum())),
        ("pairs that are not recorded", n_pairs - data.n_ratings),
        ("drugs without a known interaction", data.n_users - len(np.unique(data.user_index[known]))),
        ("targets without a known interaction", data.n_items - len(np.unique(data.item_index[known]))),
        ("similarities", _given(model)),
        ("share of the regression in the scores", model.regression_weight_),
        ("a pair that is not recorded counts as", f"0, with weight {weight:g}" if weight else "missing"),
    ]
    return section("data", "Data", table("Training data", ["measure", "value"], rows))


def _given(model: DrugTargetAIR) -> str:
    sides = zip(("drugs", "targets"), model.similarities_, strict=True)
    named = [name for name, similarity in sides if similarity is not None]
    return f"of {' and '.join(named)}, weight {model.similarity_weight_:g}" if named else "none"


def _new(model: DrugTargetAIR, n: int) -> Markup:
    found = model.new_interactions(n)
    if found.empty:
        return section("new", "New interactions", note("All pairs are known to interact."))
    lead = element(
        "p",
        "Pairs that are not known to interact, the most probable first. The probability is the share of interactions "
        "among recorded pairs with similar scores by models without them; a recorded 0 counts as no interaction.",
    )
    rows = []
    for row in found.to_dict("records"):
        reasons = _reasons(model, row["drug"], row["target"]) if row["rank"] <= _EXPLAINED else ""
        recorded = "0" if row["recorded_zero"] else "nothing"
        figures = f"{row['probability']:.3f} ± {row['deviation']:.3f}"
        whole = [element("span", row[name], class_="whole") for name in ("drug", "target")]
        rows.append([int(row["rank"]), *whole, element("span", figures, class_="whole"), recorded, reasons])
    columns = ["rank", "drug", "target", "probability", "recorded", "largest contributions"]
    return section("new", "New interactions", lead, table(f"The first {len(rows)}", columns, rows))


def _reasons(model: DrugTargetAIR, drug: Hashable, target: Hashable) -> str:
    shown = model.explain(drug, target, n=_REASONS).interactions.query("share > 0")
    return "; ".join(f"{row['drug']} hits {row['target']} ({row['share']:.0%})" for row in shown.to_dict("records"))
