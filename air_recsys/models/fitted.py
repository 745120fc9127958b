"""`FittedModel`: an estimator with one fitted state, and the attributes that read from it."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import NotFittedError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.carried import CarriedResiduals
from air_recsys.models.kernels import KernelResiduals
from air_recsys.models.learned import Factors
from air_recsys.models.state import FittedState
from air_recsys.storage.markup import card
from air_recsys.storage.pickled import Pickled
from air_recsys.storage.validation import check_integer, check_parameters


class FittedModel(Pickled):
    """An estimator that holds what it has learned as one value; the attributes read from that."""

    _state: FittedState | None = None
    _not_copied: ClassVar[tuple[str, ...]] = ("_lock",)

    def check_parameters(self) -> None:
        """Raise `ParameterError` for a parameter that is out of its range, whatever the data and the machine."""
        if is_dataclass(self):
            check_parameters(self)
        state = getattr(self, "random_state", None)
        if not isinstance(state, np.random.Generator | np.random.RandomState | None):
            check_integer("random_state", state)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name not in self._not_copied}

    def _fitted(self) -> FittedState:
        """The state of this moment; a method asks once, since the next one may be another."""
        state = self._state
        if state is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return state

    def take_state(self, state: FittedState) -> Self:
        """Hold a fitted state, and return the model."""
        self._state = state
        return self

    def check_fitted(self) -> None:
        """Raise `NotFittedError` before `fit`."""
        self._fitted()

    def __sklearn_is_fitted__(self) -> bool:
        return self._state is not None

    @property
    def interactions_(self) -> Interactions:
        """The training data."""
        return self._fitted().data

    @property
    def rating_scale_(self) -> tuple[float, float]:
        """Lowest and highest rating: the stated scale, else the range of the ratings in `fit`."""
        return self._fitted().rating_scale

    @property
    def factors_(self) -> Factors:
        """Factors and biases of both sides, and the mean."""
        return self._fitted().factors

    @property
    def user_factors_(self) -> np.ndarray:
        """Factors p of the users, (n_users, r): a score is mean + b_u + c_i + p_u . q_i and what `carried_` adds."""
        return self._fitted().factors.user_factors

    @property
    def item_factors_(self) -> np.ndarray:
        """Factors q of the items, (n_items, r)."""
        return self._fitted().factors.item_factors

    @property
    def user_biases_(self) -> np.ndarray:
        """Biases b of the users, (n_users,)."""
        return self._fitted().factors.user_biases

    @property
    def item_biases_(self) -> np.ndarray:
        """Biases c of the items, (n_items,)."""
        return self._fitted().factors.item_biases

    @property
    def global_mean_(self) -> float:
        """The mean that is part of every score."""
        return self._fitted().factors.mean

    @property
    def carried_(self) -> CarriedResiduals | KernelResiduals | None:
        """What the item graph, or kernels of similarities, add to factors and biases in scores; None without such."""
        return self._fitted().carried

    @property
    def carried_errors_(self) -> tuple[float, float] | None:
        """The RMSE of training ratings of 200 users, each left out in closed form, without and with `carried_`."""
        return self._fitted().carried_errors

    @property
    def transform_graphs_(self) -> list[SimilarityGraph]:
        """Graphs over other rows than users and items; mostly empty."""
        return self._fitted().transform_graphs

    @property
    def history_(self) -> pd.DataFrame:
        """The records of the training, one a row; empty for models without an iterative training."""
        return self._fitted().history

    @property
    def n_iter_(self) -> int:
        """Number of training steps of the kept state; only for models that are trained in steps."""
        return self._of_ending("n_iter")

    @property
    def stopped_by_(self) -> str:
        """The reason why the training ended; only for models that are trained in steps."""
        return self._of_ending("stopped_by")

    def _of_ending(self, name: str) -> Any:
        value = getattr(self._fitted().ending, name)
        if value is None:
            raise AttributeError(f"this {type(self).__name__} has no {name}_")
        return value

    def _repr_html_inner(self) -> str:  # what scikit-learn's `_repr_html_` hands on
        """HTML for notebooks: of a fitted model what was read and learned, else scikit-learn's diagram."""
        state = self._state
        if state is None:
            from sklearn.utils import estimator_html_repr

            return estimator_html_repr(self)
        return model_card(repr(self), state, getattr(self, "search_line_", ""))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Text, and HTML unless scikit-learn is set to ``display="text"``; notebooks look here first."""
        from sklearn import get_config

        shown = {"text/plain": repr(self)}
        return shown | ({"text/html": self._repr_html_inner()} if get_config()["display"] == "diagram" else {})


_NOT_MEASURED = "not measured: see score(test), or fit with validation_fraction=0.1"


def model_card(call: str, state: FittedState, told: str) -> str:
    """Facts of a fitted model as HTML."""
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
        "trained": _training_line(state),
        "chosen": told or None,
        "accuracy": ", ".join(_measured(state)) or (None if "NDCG" in told else _NOT_MEASURED),
    }
    return card(call, facts)


def _training_line(state: FittedState) -> str | None:
    ending, history = state.ending, state.history
    if ending.n_iter is None:
        return None
    seconds = f" in {history['seconds'].iloc[-1]:.3g} s" if "seconds" in history and len(history) else ""
    place = f" on {ending.device}" if ending.device else ""
    return f"{ending.n_iter:,} steps{seconds}{place}, ended by {ending.stopped_by}"


def _measured(state: FittedState) -> list[str]:
    """The errors that the training itself has measured."""
    history, found = state.history, []
    if "validation_rmse" in history and np.isfinite(history["validation_rmse"]).any():
        found.append(f"RMSE {history['validation_rmse'].min():.4g} on the validation part")
    if "noise" in history and len(history) and np.isfinite(history["noise"].iloc[-1]):
        found.append(f"learned noise {history['noise'].iloc[-1]:.4g}, the lowest RMSE to expect")
    return found
