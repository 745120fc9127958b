"""`FindsSettings`: the part of `AIR` that fills in what is "auto"."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import MemoryLimitError, ParameterError
from air_recsys.models.engines import PosteriorEngine
from air_recsys.models.engines.protocol import check_memory
from air_recsys.models.engines.scaling import RESIDUALS, draws_are_cheap
from air_recsys.models.kernels import chosen_kernels, takes_kernels
from air_recsys.models.learned import Selection
from air_recsys.models.presets import preset_parameters
from air_recsys.models.settings.forms import Form, kind_of, open_forms, too_small
from air_recsys.models.settings.search import Candidate, joined, search, search_strengths
from air_recsys.models.solvers import (
    AUTO,
    STRENGTH_NAMES,
    Solver,
    Variational,
    as_solver,
    parameter_names,
    solver_from_json,
    with_overrides,
)
from air_recsys.models.state import FittedState
from air_recsys.models.trained import TrainedRecommender
from air_recsys.training.checkpoint import of_this_training


class FindsSettings(TrainedRecommender):
    """A model of which parameters may be "auto": given to formulas, or to a search as well.

    Its dataclass brings `solver`, `settings` and `search_budget`.
    """

    solver: Any
    settings: str
    search_budget: float

    @property
    def chooses_solver(self) -> bool:
        """Whether the solver is "auto": chosen by the data in `fit`."""
        return _is_auto(self.solver)

    @property
    def solver_(self) -> Solver:
        """The solver that trained the model, with what the search of settings chose."""
        return as_solver(self.settled(self._fitted().chosen.values).solver)

    def settled(self, values: Mapping[str, Any]) -> Self:
        """The model with these values in place of parameters that are "auto", not fitted."""
        own = self.get_params(deep=False)
        solver = solver_from_json(values[_SOLVER]) if _SOLVER in values else own[_SOLVER]
        of_solver = {name: value for name, value in values.items() if name not in own}
        settled = with_overrides(as_solver(solver), of_solver) if of_solver else solver
        of_model = {name: value for name, value in values.items() if name in own}
        return type(self)(**own | of_model | {_SOLVER: settled, "settings": "fixed"})

    def by_default(self, data: Interactions) -> Self:
        """The model whose engine stands for that of `fit` before anything is searched."""
        values = self._forms(data)[0].values if self.chooses_solver else {}
        solver = self._drawing(values, data)
        return self.settled(values | solver) if self.chooses_solver or solver else self

    def choose(self, training: Interactions, rng: np.random.Generator, kept: Any) -> Selection:
        """The selection for parameters that are "auto"; that of a checkpoint where one was kept."""
        chosen = self._chosen_form(training, rng, kept)
        engine, still_open = self._engine_of(chosen), STRENGTH_NAMES if self.chooses_solver else self._open()
        sides = zip(STRENGTH_NAMES, engine.knows(training), strict=True)
        names = [name for name, known in sides if known and name in still_open]
        by_kernels = self._takes_kernels(chosen, engine, training)
        seed = int(rng.integers(2**63 - 1)) if names or by_kernels else 0
        if (names or by_kernels) and kept is None and not chosen.interrupted and not too_small(training):

            def engine_of(form: Form) -> Any:
                return self.settled(chosen.values | form.values).engine()

            found, judged = search_strengths(names, engine_of, training, np.random.default_rng(seed))
            chosen = joined(chosen, found)
            if by_kernels and not found.interrupted and math.isfinite(judged.rmse):
                chosen = _with_kernels(chosen, judged)
        chosen = replace(chosen, values=chosen.values | self._drawing(chosen.values, training))
        if chosen.line and (self.verbose or chosen.interrupted):
            tqdm.write(chosen.line, file=sys.stderr)
        return chosen

    def _drawing(self, values: Mapping[str, Any], data: Interactions) -> dict[str, Any]:
        """The solver that draws where one with sweeps that are "auto" takes its place: as a value, by its name."""
        model = self.settled(values)
        solver = model.solver
        if not isinstance(solver, Variational) or not _is_auto(solver.n_sweeps) or solver.time is not None:
            return {}
        drawing, width = solver.drawing(), model.engine().width(data)
        if not isinstance(drawing.n_sweeps, int) or not draws_are_cheap(data, width or 0, drawing.n_sweeps):
            return {}
        found = {_SOLVER: drawing.to_json()}
        return found if self._suits(Form("", {**values, **found}), data) else {}

    def _takes_kernels(self, chosen: Selection, engine: Any, training: Interactions) -> bool:
        """Whether given similarities of both sides may be kernels of what a posterior leaves."""
        if not isinstance(engine, PosteriorEngine) or not takes_kernels(training):
            return False
        left_out = self.settled(chosen.values).residual_strength == 0
        return not left_out and not any(getattr(engine.solver, name) == 0 for name in STRENGTH_NAMES)

    def _chosen_form(self, training: Interactions, rng: np.random.Generator, kept: Any) -> Selection:
        forms = self._forms(training)
        if self.settings == "fixed" and not self.chooses_solver:
            with of_this_training():
                return Selection() if kept is None else Selection.from_json(kept)
        seed = int(rng.integers(2**63 - 1)) if len(forms) > 1 else 0
        if kept is not None:
            with of_this_training():
                return Selection.from_json(kept)
        reason = too_small(training)
        if len(forms) > 1 and not reason:
            rng = np.random.default_rng(seed)
            chosen = search(forms, self._engine_of, training, self.search_budget, rng)
        else:
            line = f"settings: {forms[0].name}; {reason}" if len(forms) > 1 else ""
            chosen = Selection(forms[0].values, forms[0].name, line=line)
        if self.chooses_solver:
            told = (f"data: {kind_of(training).words}", chosen.line or f"settings: {chosen.form}")
            chosen = replace(chosen, line="; ".join(told))
        return chosen

    def _engine_of(self, form: Form | Selection) -> Any:
        return self.settled(form.values).engine()

    def _forms(self, data: Interactions) -> list[Form]:
        """The forms that suit what is given, the default first; at least one."""
        if self.chooses_solver:
            forms = [form for preset in kind_of(data).presets for form in self._forms_of_preset(preset, data)]
        else:
            forms = open_forms(data, self.settled({}).engine(), self._open())
        return [form for form in forms if self._suits(form, data)] or forms[:1]

    def _forms_of_preset(self, preset: str, data: Interactions) -> list[Form]:
        """The forms of a preset, each with all that the preset says of parameters that are "auto" here."""
        whole = type(self)(**preset_parameters(preset, {}, parameter_names(type(self)))).get_params(deep=False)
        solver, still_open = whole.pop(_SOLVER), self._open()
        base = {name: value for name, value in whole.items() if name in still_open} | {_SOLVER: solver.to_json()}
        inner = self.settled(base)
        forms = []
        for form in inner._forms(data):
            of_model = {name: value for name, value in form.values.items() if name in still_open}
            of_solver = {name: value for name, value in form.values.items() if name not in self.get_params(deep=False)}
            values = base | of_model | {_SOLVER: with_overrides(solver, of_solver).to_json()}
            forms.append(Form(form.name or preset, values))
        return forms

    def _open(self) -> set[str]:
        """The parameters, of the model and of its solver, that nobody has given a value."""
        parameters = self.get_params(deep=False)
        if not self.chooses_solver:
            parameters |= as_solver(self.solver).get_params(deep=False)
        return {name for name, value in parameters.items() if _is_auto(value)}

    def _suits(self, form: Form, data: Interactions) -> bool:
        """Whether a form goes with what is given, and fits into memory."""
        engine = self._engine_of(form)
        try:
            engine.check(data)
            check_memory(engine, data, self.max_memory, self.device)
        except (ParameterError, MemoryLimitError):
            return False
        return True


def _with_kernels(chosen: Selection, judged: Candidate) -> Selection:
    """A selection with kernels of given similarities where these help on the hidden ratings of a training."""
    shown, hidden, engine = judged.shown, judged.hidden, judged.engine
    factors, equations = engine.factors(), engine.equations()
    deviations = equations.deviations(hidden.user_index, hidden.item_index)
    if shown.relations is not None:
        shown = shown.measured_as(FittedState(shown, factors, equations=equations).steady_ratings)
    kernels, line = chosen_kernels(shown, hidden, factors, deviations, RESIDUALS)
    return replace(chosen, kernels=kernels, line="; ".join(each for each in (chosen.line, line) if each))


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == AUTO


_SOLVER = "solver"
