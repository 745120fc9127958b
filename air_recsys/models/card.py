"""The card of a fitted model in a notebook: its data, what it learned, and its accuracy."""

from __future__ import annotations

import numpy as np

from air_recsys.models.state import FittedState
from air_recsys.storage.markup import card

_NOT_MEASURED = "not measured: see score(test), or fit with validation_fraction=0.1"


def model_card(call: str, state: FittedState, told: str) -> str:
    """Return facts of a fitted model as HTML.

    Parameters
    ----------
    call : str
        The repr of the model.
    state : FittedState
    told : str
        What a search of settings tells; may be empty.

    Examples
    --------
    >>> from air_recsys import BiasModel
    >>> model = BiasModel().fit([[5.0, 1.0], [2.0, 4.0]])
    >>> shown = model_card(repr(model), model._fitted(), "")
    >>> "2 users, 2 items, 4 ratings from 1 to 5" in shown, "not measured" in shown
    (True, True)
    """
    data, (low, high) = state.data, state.rating_scale
    width = state.factors.user_factors.shape[1]
    graphs = [
        f"of {len(graph):,} {graph.kind}s with {graph.n_edges:,} edges"
        for graph in (state.user_graph, state.item_graph)
        if graph is not None
    ]
    facts = {
        "data": f"{data.n_users:,} users, {data.n_items:,} items, {data.n_ratings:,} ratings from {low:g} to {high:g}",
        "learned": f"{width} factors" if width else "biases" if state.factors.user_biases.any() else "the mean",
        "graphs": " and ".join(graphs) or None,
        "trained": _course(state),
        "chosen": told or None,
        "accuracy": ", ".join(_measured(state)) or (None if "NDCG" in told else _NOT_MEASURED),
    }
    return card(call, facts)


def _course(state: FittedState) -> str | None:
    ending, history = state.ending, state.history
    if ending.n_iter is None:
        return None
    seconds = f" in {history['seconds'].iloc[-1]:.3g} s" if "seconds" in history and len(history) else ""
    place = f" on {ending.device}" if ending.device else ""
    return f"{ending.n_iter:,} steps{seconds}{place}, ended by {ending.stopped_by}"


def _measured(state: FittedState) -> list[str]:
    """Return the errors that the training itself has measured."""
    history, found = state.history, []
    if "validation_rmse" in history and np.isfinite(history["validation_rmse"]).any():
        found.append(f"RMSE {history['validation_rmse'].min():.4g} on the validation part")
    if "noise" in history and len(history) and np.isfinite(history["noise"].iloc[-1]):
        found.append(f"learned noise {history['noise'].iloc[-1]:.4g}, the lowest RMSE to expect")
    return found
