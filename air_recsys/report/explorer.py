"""`write_explorer`: similarity graphs as one page to explore in a browser."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, NotFittedError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import Recommender
from air_recsys.models.partial_fit import widened
from air_recsys.report.content import N_STAGES, Measures, add_measures, graph_content, uncertainties
from air_recsys.report.document import single_page
from air_recsys.report.fold_in import fold_in_content, fold_in_scripts
from air_recsys.report.plots.snapshots import snapshots_of
from air_recsys.storage.progress import progress_bar
from air_recsys.storage.validation import check_integer
from air_recsys.storage.writing import check_folder, replace_file

Snapshots = Mapping[int, SimilarityGraph]

_SCRIPTS = (
    "force-graph.min.js",
    "explorer-graph.js",
    "explorer-looks.js",
    "explorer-lines.js",
    "explorer-painter.js",
    "explorer-places.js",
    "explorer-detail.js",
    "explorer-scenes.js",
    "explorer-view.js",
    "explorer-list.js",
    "explorer-panel.js",
    "explorer-save.js",
    "explorer-search.js",
    "explorer-path.js",
    "explorer-filters.js",
    "explorer-apart.js",
    "explorer-lasso.js",
    "explorer-selected.js",
    "explorer-questions.js",
    "explorer-minimap.js",
    "explorer-source.js",
    "explorer-edges.js",
    "explorer-theme.js",
    "explorer-state.js",
    "explorer.js",
)


def write_explorer(
    path: str | os.PathLike[str],
    graphs: SimilarityGraph | Mapping[str, SimilarityGraph],
    *,
    snapshots: Mapping[str, Snapshots] | None = None,
    ratings: Interactions | None = None,
    title: str | None = None,
    max_nodes: int = 10_000,
) -> Path:
    """Write an HTML page to explore graphs in a browser.

    The page is one file and asks no other address for anything. It shows the nodes in the colours of their
    communities, finds them by id or label, lists their neighbours and attributes, and draws as many of the
    strongest edges as wanted. Labels and attributes are those of `SimilarityGraph.with_attributes`.

    Parameters
    ----------
    path : str or Path
        The file; an older one is replaced.
    graphs : SimilarityGraph or mapping of str to SimilarityGraph
        By the names that the page switches between, such as "users" and "items"; the first is shown first.
    snapshots : mapping of str to mapping of int to SimilarityGraph, optional
        For names of `graphs`: the same nodes at earlier epochs.
    ratings : Interactions, optional
        Of all nodes of the graphs of kind "item" and "user": the page shows how many ratings nodes have and their
        mean, how many rated both ends of an edge, and how much of the communities follows from who rated what.
    title : str, optional
        Heading of the page.
    max_nodes : int
        A graph of more nodes is drawn as a graph of its communities, which show their members when one zooms in, with
        the surroundings of one node at a time.

    Raises
    ------
    DataError
        Where there is no graph, or a snapshot belongs to no graph or has other ids; where a node has no place in
        the ratings.
    ParameterError
        Where the folder does not exist.

    Notes
    -----
    At most 200,000 edges of a graph (4 a node, where that is more) and 20,000 of a snapshot go into the page: the
    largest k at every node. Communities are those of these edges. The page says how many there are in all.

    Examples
    --------
    >>> import tempfile
    >>> graph = SimilarityGraph([[0, 2, 1], [2, 0, 0], [1, 0, 0]], ["a", "b", "c"], kind="item")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_explorer(Path(folder) / "items.html", graph)
    ...     page.name, "<html" in page.read_text(encoding="utf-8")
    ('items.html', True)
    """
    return _write(path, graphs, snapshots=snapshots, ratings=ratings, title=title, max_nodes=max_nodes)


def _write(
    path: str | os.PathLike[str],
    graphs: SimilarityGraph | Mapping[str, SimilarityGraph],
    *,
    snapshots: Mapping[str, Snapshots] | None,
    ratings: Interactions | None,
    title: str | None,
    max_nodes: int = 10_000,
    measures: Mapping[str, Measures] | None = None,
    fold_in: dict[str, Any] | None = None,
) -> Path:
    """Write the page; `measures` are attributes of the nodes by which communities are not named.

    `fold_in` is what the page needs to recommend to new users, for the graph "items".
    """
    target = check_folder(path)
    check_integer("max_nodes", max_nodes, minimum=1)
    named = {f"{graphs.kind}s": graphs} if isinstance(graphs, SimilarityGraph) else dict(graphs)
    steps = dict(snapshots or {})
    _check(named, steps)
    heading = "Similarity graphs" if title is None else title
    contents = []
    with progress_bar(None, total=N_STAGES * len(named), unit="stage") as bar:

        def tell(stage: str) -> None:
            bar.set_description(stage, refresh=False)
            bar.update()

        for name, graph in named.items():
            contents.append(graph_content(name, graph, steps.get(name, {}), max_nodes, ratings, tell))
    for content in contents:
        add_measures(content["attributes"], (measures or {}).get(content["name"], {}))
    data: dict[str, Any] = {"title": heading, "max_nodes": max_nodes, "graphs": contents}
    styles, scripts = ["explorer.css", "explorer-tools.css"], [*_SCRIPTS]
    if fold_in is not None:
        data["fold_in"] = fold_in
        styles.append("explorer-pick.css")
        scripts[-1:-1] = fold_in_scripts(fold_in)
    page = single_page("explorer.html", title=heading, data=data, styles=styles, scripts=scripts)
    replace_file(target, page.encode("utf-8", "replace"))
    return target


def explorer_of(
    model: Recommender,
    path: str | os.PathLike[str],
    titles: pd.DataFrame | None = None,
    *,
    title: str | None = None,
    first: str = "items",
    recommend: bool | None = None,
) -> Path:
    """Write the explorer page of a fitted model: its graphs and, where it kept any, their snapshots.

    Of a model with a posterior nodes have the attribute "uncertainty", the one of `AIR.uncertainty`. With `recommend`
    the page takes in a new user by itself, without a server: one picks items, and it lists what the model recommends,
    see `air_recsys.models.portable`.

    Parameters
    ----------
    model : Recommender
        With a learned graph of users, of items, or of both.
    path : str or Path
    titles : DataFrame, optional
        Attributes of the items, indexed by item id or with a column "item"; the column "title", else the first one,
        names them.
    title : str, optional
        Heading of the page; else it names the model's class.
    first : {"items", "users"}
        The graph that is shown first.
    recommend : bool, optional
        Whether the page holds what fold-in needs, at most 5 MB. By default it does where that takes at most 2 MB.

    Raises
    ------
    NotFittedError
        Where the model is not fitted.
    DataError
        Where it has learned no graph.
    ParameterError
        With ``recommend=True``, where the model folds no new users in, has no graph of items, or takes more than 5 MB.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from air_recsys import AIR
    >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
    >>> model = AIR.for_completion(n_epochs=50, snapshot_epochs=[10], random_state=0, device="cpu").fit(ratings)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     explorer_of(model, Path(folder) / "model.html").stat().st_size < 400_000
    True
    """
    if not hasattr(model, "interactions_"):
        raise NotFittedError(f"this {type(model).__name__} is not fitted yet: call fit first")
    model = copy.copy(model)  # the state of this moment, whatever another thread writes
    graphs = {"items": model.item_graph_, "users": model.user_graph_}
    learned = {name: graph for name, graph in graphs.items() if graph is not None}
    if not learned:
        raise DataError(f"this {type(model).__name__} has learned no graph")
    fold_in = fold_in_content(model, recommend)
    snapshots = {name: _steps_of(model, name.removesuffix("s"), graph) for name, graph in learned.items()}
    if titles is not None and "items" in learned:
        columns = [column for column in titles.columns if column != "item"]
        label = "title" if "title" in columns else next(iter(columns), None)
        learned["items"] = learned["items"].with_attributes(titles, label=label)
    ordered = {name: learned[name] for name in sorted(learned, key=lambda name: name != first)}
    heading = f"Graphs learned by {type(model).__name__}" if title is None else title
    return _write(
        path,
        ordered,
        snapshots=snapshots,
        ratings=model.interactions_,
        title=heading,
        measures=uncertainties(model, ordered),
        fold_in=fold_in,
    )


def _steps_of(model: Recommender, kind: str, graph: SimilarityGraph) -> dict[int, SimilarityGraph]:
    """Return the snapshots of one graph as similarities, with those who came after the training as isolated nodes."""
    wide = {epoch: widened(step, graph.ids) for epoch, step in snapshots_of(model, kind).items()}
    return {epoch: model.similarities_of(step) for epoch, step in wide.items() if step is not None}


def _check(graphs: Mapping[str, SimilarityGraph], snapshots: Mapping[str, Snapshots]) -> None:
    if not graphs or any(len(graph) == 0 for graph in graphs.values()):
        raise DataError("expected at least one graph with at least one node, found none")
    for name, steps in snapshots.items():
        if name not in graphs:
            raise DataError(f"expected snapshots of {', '.join(map(repr, graphs))}, found {name!r}")
        for epoch, graph in steps.items():
            if graph.ids.tolist() != graphs[name].ids.tolist():
                raise DataError(f"expected the same ids in all graphs of {name!r}, found others at epoch {epoch}")
