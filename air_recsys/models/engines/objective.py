"""The engine of AIR's objective: gradient descent on factors, biases and graphs together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Extent, Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.models.engines.objective_rows import ObjectiveRows
from air_recsys.models.engines.protocol import Setup, check_strengths, graph_form
from air_recsys.models.engines.scaling import (
    Scaling,
    counted_ratings,
    edges_per_node,
    epochs_of,
    exact_epochs_of,
    graph_strength,
    logits_rate,
    start_width,
    step_size,
    steps_between_choices,
    width_of,
)
from air_recsys.models.engines.transforms import parse_transforms
from air_recsys.models.given import graph_of
from air_recsys.models.learned import Factors
from air_recsys.models.solvers import AUTO, STRENGTH_NAMES, Adam, Descent, Regularization
from air_recsys.nn.build import Beside, Settings, build_objective, observations
from air_recsys.nn.devices import resolve_device
from air_recsys.nn.memory import FIRST_USE, MemoryPlan, memory_plan, smaller
from air_recsys.nn.objective import Objective, Observations, Penalties
from air_recsys.storage.lazy import torch, without_gradients
from air_recsys.storage.validation import warn_of_unread
from air_recsys.training import GradientDescent, Plan

GivenGraphs = Callable[[Interactions], tuple[sp.csr_array | None, sp.csr_array | None]]
"""Returns the graphs of users and items that are not learned."""

_STRENGTH = 0.1  # of a graph of what is known, where none is searched
_KNOWN = 2000  # bytes of a row of such a graph: at most 50 edges on average, as it is made


@dataclass
class ObjectiveEngine:
    """Minimises AIR's objective; `DMF` and its like are this engine with fewer terms."""

    setup: Setup
    descent: Descent
    terms: Regularization
    given: GivenGraphs | None = None

    def n_steps(self, data: Interactions) -> int:
        """The number of epochs."""
        return epochs_of(self.descent.n_epochs, data, self.exact_epochs(data))

    def exact_epochs(self, data: Interactions) -> int:
        """The last epochs, which complete the matrix exactly."""
        asked = getattr(self.terms, "exact_epochs", 0)
        if asked == AUTO and self._bars_exact_epochs(data):
            return 0
        return exact_epochs_of(asked, self.descent.n_epochs)

    def _bars_exact_epochs(self, data: Interactions) -> str:
        """The parameter that leaves no exact epochs, and what it would have to be; "" where there is none."""
        descent, terms = self.descent, self.terms
        needs = {
            "n_factors=None": self.is_full_width(data),
            "adjacency='row_softmin'": self.setup.adjacency == "row_softmin",
            "weight_decay=0": self.is_exact,
            "biases=False": not descent.biases,
            "n_batches=1": descent.n_batches == 1,
            "graph_every=1": terms.graph_every == 1,
            "no transforms": not terms.transforms,
        }
        return next((need for need, met in needs.items() if not met), "")

    def values(self, data: Interactions) -> dict[str, Any]:
        """The numbers behind the parameters that are "auto"."""
        settings, plan = self.settings(data), self.plan(data)
        numbers = {
            "n_factors": settings.width,
            "graph_neighbors": settings.n_neighbors,
            "n_epochs": plan.n_epochs,
            "exact_epochs": plan.exact_epochs,
            "learning_rate": plan.learning_rate,
            "init_std": settings.init[1],
            "graph_rate": plan.graph_rate / self.terms.graph_every,
            "graph_refresh": plan.graph_refresh,
            "user_graph_reg": settings.strengths[0],
            "item_graph_reg": settings.strengths[1],
            "tv_reg": settings.tv_strength,
        }
        owners = self.setup, self.descent, self.terms
        known = zip(STRENGTH_NAMES, self.known_strengths, self.knows(data), strict=True)
        numbers |= {name: strength for name, strength, is_known in known if is_known}
        return {name: value for name, value in numbers.items() if "auto" in (getattr(o, name, None) for o in owners)}

    def knows(self, data: Interactions) -> tuple[bool, bool]:
        """The sides of which something is known whose strength is a parameter: features or similarities."""
        users, items = data.n_features
        return users > 0, items > 0

    @property
    def known_strengths(self) -> tuple[float, float]:
        """The strengths of the graphs of what is known of users and of items."""
        given = (getattr(self.terms, name, 0.0) for name in STRENGTH_NAMES)
        users, items = (_STRENGTH if each == "auto" else each for each in given)
        return users, items

    @property
    def device(self) -> torch.device:
        """The device of the training."""
        return resolve_device(self.setup.device)

    @property
    def learns_from_constant(self) -> bool:
        """Whether ratings that are all equal teach anything: beside pairs that are drawn to 0."""
        return self.descent.unobserved_weight > 0

    def check(self, data: Interactions) -> None:
        """Raise `ParameterError` where parameters do not go together, or not with the data."""
        descent, terms = self.descent, self.terms
        if data.relations is not None:
            raise ParameterError(
                f"{type(terms).__name__} takes every rating as measured, found limits: see Variational"
            )
        if any(data.n_features) and not isinstance(terms, Adam):
            raise ParameterError(
                "a model without learned graphs reads no features and no similarities of users and items, found some: "
                "leave them out, or use AIR"
            )
        check_strengths(terms, self.knows(data))
        if descent.bias_decay > 0 and not descent.biases:
            warn_of_unread("bias_decay", descent.bias_decay, "biases=True")
        if descent.unobserved_weight > 0 and (descent.biases or descent.center):
            raise ParameterError(
                "unobserved_weight needs biases=False and center=False, found "
                f"biases={descent.biases}, center={descent.center}"
            )
        transforms = parse_transforms(terms.transforms, (data.n_users, data.n_items))
        of_transforms = any(entry.n_neighbors is not None for entry in transforms)
        self.setup.check(sparse=self.setup.graph_neighbors is not None or of_transforms)
        if self.setup.adjacency != "row_softmin" and of_transforms:
            raise ParameterError(
                f"neighbours of a transform need adjacency='row_softmin', found {self.setup.adjacency!r}"
            )
        if terms.graph_every > 1 and (transforms or self.settings(data).n_neighbors is not None):
            raise ParameterError(
                "graph_every needs graphs of all pairs, graph_neighbors=None, and no transforms, found "
                f"graph_every={terms.graph_every}"
            )
        self._check_full_width(data, bool(transforms))
        self._check_exact_epochs(data)

    def _check_exact_epochs(self, data: Interactions) -> None:
        exact_epochs = self.exact_epochs(data)
        if exact_epochs > 0 and (need := self._bars_exact_epochs(data)):
            raise ParameterError(f"exact_epochs needs {need}, found exact_epochs={exact_epochs}")
        if exact_epochs > (n_epochs := self.n_steps(data)):
            raise ParameterError(f"exact_epochs must be at most n_epochs, {n_epochs}, found {exact_epochs}")

    def _check_full_width(self, data: Interactions, transforms: bool) -> None:
        width, terms, full_width = self.width(data), self.terms, self.is_full_width(data)
        for name, asked in (("transforms", transforms), ("tv_reg", _number(terms.tv_reg) > 0)):
            if asked and not full_width:
                raise ParameterError(f"{name} needs full width, n_factors=None, found n_factors={width}")
            if asked and self.descent.n_batches > 1:
                raise ParameterError(f"{name} needs n_batches=1, found n_batches={self.descent.n_batches}")

    def memory_plan(self, data: Interactions) -> MemoryPlan:
        """The bytes that a training will take at its peak, beside the interactions."""
        return self._plan(data, self.settings(data))

    def smaller(self, data: Interactions) -> Iterator[tuple[str, int]]:
        """Yield changes of parameters that need less and less memory, and the bytes that they need."""
        for changes, settings in smaller(self.settings(data), self.setup.sizes(data)):
            yield changes, self._plan(data, settings).total

    def _plan(self, data: Interactions, settings: Settings) -> MemoryPlan:
        plan = memory_plan(self.setup.sizes(data), settings)
        n_known = sum(n for n, known in zip((data.n_users, data.n_items), self.knows(data), strict=True) if known)
        return plan._replace(graphs=plan.graphs + _KNOWN * n_known, work=plan.work + FIRST_USE)

    @property
    def edges_after(self) -> tuple[int, int]:
        """None: the graphs are trained."""
        return 0, 0

    def graph_form(self, data: Interactions) -> str:
        """The form of the graphs, in words."""
        settings = self.settings(data)
        return graph_form(any(settings.strengths), settings.n_neighbors)

    def settings(self, data: Interactions) -> Settings:
        """The definition of the objective on these data."""
        descent, terms, width = self.descent, self.terms, self.width(data)
        regs = terms.user_graph_reg, terms.item_graph_reg
        of_users, of_items = (graph_strength(reg, data, levels=self._levels) for reg in regs)
        settings = Settings(
            width=width,
            depth=descent.depth,
            init=(descent.init_mean, start_width(descent.init_std, data, width, descent.depth)),
            strengths=(of_users, of_items),
            adjacency=self.setup.adjacency,
            n_neighbors=self._edges(data),
            biases=descent.biases,
            penalties=Penalties(descent.weight_decay, descent.bias_decay, descent.unobserved_weight),
            transforms=parse_transforms(terms.transforms, (data.n_users, data.n_items)),
            tv_strength=_number(terms.tv_reg),
            n_batches=descent.n_batches,
            graph_every=terms.graph_every,
        )
        if self.given is None:
            return settings
        users, items = self.given(data)
        present = of_users if users is not None else 0.0, of_items if items is not None else 0.0
        return replace(settings, given=(users, items), strengths=present)

    def plan(self, data: Interactions) -> Plan:
        """The plan of the training."""
        descent, n_epochs, exact_epochs = self.descent, self.n_steps(data), self.exact_epochs(data)
        rate = step_size(descent.learning_rate, data, self.width(data), descent.depth)
        n_steps = max(1, n_epochs - exact_epochs) * descent.n_batches
        graph_rate = logits_rate(self.terms.graph_rate, rate, n_steps, exact=exact_epochs > 0)
        return Plan(
            n_epochs=n_epochs,
            learning_rate=rate,
            exact_epochs=exact_epochs,
            schedule=self.descent.schedule,
            graph_rate=graph_rate * self.terms.graph_every,
            graph_refresh=steps_between_choices(self.setup.graph_refresh, n_epochs),
            evaluate_every=self.descent.evaluate_every,
            stopping_delta=self.descent.stopping_delta,
        )

    def scaling(self, data: Interactions) -> Scaling:
        """The map from ratings to the values trained on."""
        return Scaling.of(counted_ratings(data), center=self.descent.center, scale=self.descent.scale)

    def width(self, data: Interactions) -> int | None:
        """The columns of the factors; None is full width."""
        return width_of(self.setup.n_factors, data, exact=self.is_exact)

    def _edges(self, data: Interactions) -> int | None:
        """The edges of a node; graphs that take all pairs leave "auto" no choice."""
        of_all_pairs = self.setup.adjacency != "row_softmin" or self.terms.graph_every > 1
        if of_all_pairs and self.setup.graph_neighbors == "auto":
            return None
        n_rows = max(data.n_users, data.n_items)
        return edges_per_node(self.setup.graph_neighbors, exact=self.is_exact, n_rows=n_rows)

    @property
    def _levels(self) -> bool:
        """Whether the factors carry the levels of users and items, under a weight decay."""
        return self.descent.weight_decay > 0 and not self.descent.biases

    @property
    def is_exact(self) -> bool:
        """Whether the data are taken as exact: depth and graphs alone regularize."""
        return self.descent.weight_decay == 0

    def is_full_width(self, data: Interactions) -> bool:
        """Whether the completed matrix is held as a whole."""
        width = self.width(data)
        return width is None or width >= min(data.n_users, data.n_items)

    def start(
        self, training: Interactions, held_out: Interactions | None, rng: np.random.Generator
    ) -> GradientDescent:
        """The start of a training."""
        self._scaling = scaling = self.scaling(training)
        settings = replace(self.settings(training), beside=self._beside(training))
        self._objective = build_objective(self._observations(training, scaling), settings, rng)
        validation = None if held_out is None else self._observations(held_out, scaling)
        plan = self.plan(training)
        self._is_completed = plan.exact_epochs > 0
        return GradientDescent(self._objective, plan, validation, scaling.unit)

    def _beside(self, data: Interactions) -> tuple[Beside, Beside]:
        """The graphs of what is known that are in the objective, and their strengths."""
        unit, sides = graph_strength("auto", data, levels=self._levels), (data.user_features, data.item_features)
        users, items = (
            None if known is None or strength == 0 else (graph_of(known), strength * unit)
            for known, strength in zip(sides, self.known_strengths, strict=True)
        )
        return users, items

    def _observations(self, data: Interactions, scaling: Scaling) -> Observations:
        dtype, device = getattr(torch, self.setup.dtype), self.device
        return observations(data.to_csr(), scaling.forward, dtype, device, data.weights_to_csr())

    def factors(self) -> Factors:
        """The factors of the present state, in the unit of the ratings."""
        found = factors_of(self._objective, self._scaling)
        return found.balanced() if self._is_completed else found

    def equations(self) -> ObjectiveRows:
        """The equations of a row."""
        return self._equations(self._scaling.unit)

    def equations_from(self, arrays: Mapping[str, np.ndarray], extent: Extent) -> ObjectiveRows:
        """The equations of a row, which follow from factors, parameters and the unit."""
        unit = float(arrays["unit"][0])
        if not unit > 0:
            raise ValueError(f"expected a unit above 0, found {unit}")
        return self._equations(unit)

    def _equations(self, unit: float) -> ObjectiveRows:
        descent, terms = self.descent, self.terms
        return ObjectiveRows(
            descent.depth,
            descent.weight_decay,
            descent.bias_decay if descent.biases else None,
            descent.unobserved_weight,
            unit,
            (terms.user_graph_reg, terms.item_graph_reg),
            self.known_strengths,
            bool(terms.transforms) or terms.tv_reg not in (0, "auto"),
            self.setup.clips,
        )


def _number(strength: float | str) -> float:
    """A strength; "auto" that no search has replaced is 0."""
    return 0.0 if isinstance(strength, str) else strength


@without_gradients
def factors_of(objective: Objective, scaling: Scaling) -> Factors:
    """The factors and biases of an objective, in the unit of the ratings."""
    left, right = (tensor.cpu().numpy() for tensor in objective.factorization.factors())
    if objective.biases is None:
        biases = (np.zeros(len(left), left.dtype), np.zeros(len(right), left.dtype))
    else:
        biases = tuple(tensor.cpu().numpy() for tensor in objective.biases)
    unit = scaling.unit
    return Factors(left * unit, right.copy(), biases[0] * unit, biases[1] * unit, scaling.mean)
