"""The solvers of `AIR`: three small objects, each with the parameters that it reads and no others.

`Adam` minimises AIR's objective. `Variational` and `Langevin` compute a posterior of factors and biases. They follow
the conventions of scikit-learn, so ``AIR(solver=Adam())`` has the parameters ``solver__depth``, ``solver__n_epochs``,
...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from air_recsys.data.ids import close_names
from air_recsys.exceptions import ParameterError
from air_recsys.storage.estimator import Estimator
from air_recsys.storage.validation import check_integer, check_parameters, check_real, choice, flag, integer, real
from air_recsys.training.plan import SCHEDULES

AUTO = "auto"

STRENGTH_NAMES = "user_graph_strength", "item_graph_strength"
"""Parameters that say how strongly graphs that are given count."""
SWEEPS = 12
"""Those of `Variational`."""
_MOST_EPOCHS, _MOST_SWEEPS = 1_000_000_000, 1_000_000


class Solver(Estimator):
    """A method that computes the factors of `AIR`: the base of `Adam`, `Variational` and `Langevin`."""

    name: ClassVar[str]  # the shorthand, AIR(solver="adam")
    unit: ClassVar[str] = "sweep"  # what a training is counted in

    def __eq__(self, other: object) -> bool:
        """Whether the other is the same solver with the same parameters."""
        return isinstance(other, Solver) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # parameters change

    def check(self) -> None:
        """Raise `ParameterError` for a parameter out of its range."""
        check_parameters(self)

    def to_json(self) -> dict[str, Any]:
        """The shorthand and all parameters as JSON holds them."""
        return {"name": self.name} | {name: plain(value) for name, value in self.get_params(deep=False).items()}


@dataclass(kw_only=True, eq=False, repr=False)
class Descent:
    """The gradient descent of a deep factorization: shared by `Adam` and by the baselines without graphs.

    Parameters
    ----------
    depth : int
        Number of factors L >= 2.
    n_epochs : int or "auto"
        Passes over all ratings, at most 1,000,000,000. "auto" is 6,000, and fewer if a pass takes long, see
        `air_recsys.models.engines.scaling.epochs_of`.
    n_batches : int
        Optimiser steps per epoch. Each step uses a random part of the ratings, drawn once, and a range of the rows of
        sparse graphs (at most one part per rating, user and item). Not with `transforms` or `tv_reg`.
    learning_rate : float or "auto"
        Adam's step size. "auto" depends on the size of the layers, see `air_recsys.models.engines.scaling.step_size`.
    schedule : {"constant", "cooldown", "cosine", "linear"}
        How the step size decreases; "cooldown" keeps it for 60 % of the epochs.
    weight_decay, bias_decay : float
        Weights of the squared factors and biases against the sum of squared errors.
    biases : bool
        Add a trained bias per user and item.
    center : bool
        Subtract the mean rating during the training. Results are in the scale of the ratings.
    scale : bool or "deviation"
        Unit of the values in the training. True is the largest absolute rating. "deviation" is the unit in which the
        ratings have the standard deviation 1.126, that of MovieLens-100K. False is 1. Results are in the unit of the
        ratings.
    unobserved_weight : float
        Weight of the value 0 for every pair without a rating, relative to the weight of a rating; for data where only
        positive pairs are recorded. Needs ``biases=False`` and ``center=False``.
    init_mean, init_std : float
        Factors start from N(init_mean, init_std^2). An `init_std` of "auto" depends on width and depth, see
        `air_recsys.models.engines.scaling.start_width`.
    stopping_delta : float, optional
        Stopping rule of the paper: stop if n_users * n_items * objective changes by less in one epoch.
    evaluate_every : int
        Epochs between two records in `history_`.
    """

    depth: int = integer(3, minimum=2)
    n_epochs: int | str = integer(10_000, minimum=1, maximum=_MOST_EPOCHS, besides=("auto",))
    n_batches: int = integer(1, minimum=1)
    learning_rate: float | str = real(1e-3, strict=True, besides=("auto",))
    schedule: str = choice("constant", list(SCHEDULES))
    weight_decay: float = real(0.0)
    bias_decay: float = real(0.0)
    biases: bool = flag(False)
    center: bool = flag(False)
    scale: bool | str = choice(True, (True, False, "deviation"))
    unobserved_weight: float = real(0.0)
    init_mean: float = real(1e-3, minimum=-np.inf)
    init_std: float | str = real(1e-3, strict=True, besides=("auto",))
    stopping_delta: float | None = real(None, strict=True, besides=(None,))
    evaluate_every: int = integer(50, minimum=1)


@dataclass(kw_only=True, eq=False, repr=False)
class Regularization:
    """The graph and smoothness terms of AIR's objective.

    Parameters
    ----------
    user_graph_reg, item_graph_reg : float or "auto"
        Strengths of the two energies. 0 leaves the graph out. "auto" is 3 n_ratings / (n_users n_items)^2, and with
        a weight decay but no biases a sixth of that, see `air_recsys.models.engines.scaling.graph_strength`.
    graph_rate : float or "auto"
        Step size of the logits of the graphs, as a multiple of `learning_rate`. "auto" gives them the same total range
        in every training, see `air_recsys.models.engines.scaling.logits_rate`.
    graph_every : int
        Steps between two updates of the logits of graphs of all pairs; an update is as many times larger. Between them
        the graph stays, which saves a quarter of the time of a step (benchmarks/reports/step-cost.md). Not with
        `transforms`.
    transforms : sequence of tuple
        Further transformations T_i of the matrix, each with its own learned graph: tuples (transform,
        strength) or (transform, strength, n_neighbors), see `air_recsys.models.engines.transforms.parse_transforms`;
        for example ``[("blocks:8", 1e-5)]``. Needs full width.
    tv_reg : float or "auto"
        Strength of the total variation, for matrices that are pictures. Needs full width. "auto" is 0, unless the
        search of settings finds that the matrix is a picture.
    """

    user_graph_reg: float | str = real(1e-4, besides=("auto",))
    item_graph_reg: float | str = real(1e-4, besides=("auto",))
    graph_rate: float | str = real(1.0, strict=True, besides=("auto",))
    graph_every: int = integer(1, minimum=1)
    transforms: Sequence[tuple[Any, ...]] = ()
    tv_reg: float | str = real(0.0, besides=("auto",))


@dataclass(kw_only=True, eq=False, repr=False)
class Adam(Regularization, Descent, Solver):
    r"""Gradient descent by Adam on AIR's objective: factors and both graphs are trained together.

    .. math:: \frac{1}{mn}\|P_\Omega(X - Y)\|^2 + \eta_u\,\mathrm{tr}(X^\top L_u X) + \eta_i\,\mathrm{tr}(X L_i X^\top)

    with X = W0 W1 ... W(L-1), see `air_recsys.nn.objective`. The defaults are the paper's setting, for exact data.

    Parameters
    ----------
    depth, n_epochs, n_batches, learning_rate, schedule, stopping_delta, evaluate_every
        The factorization and its training, see `Descent`.
    weight_decay, bias_decay, biases, center, scale, unobserved_weight, init_mean, init_std
        Penalties, biases, unit and start, see `Descent`.
    user_graph_reg, item_graph_reg, graph_rate, graph_every, transforms, tv_reg
        The graph and smoothness terms, see `Regularization`.
    exact_epochs : int or "auto"
        The last epochs, at most `n_epochs`, that complete the matrix exactly in place of Adam's steps: each moves the
        weights of the graphs to short edges and solves for X, see `air_recsys.nn.exact`. Needs full width, learned
        graphs with adjacency="row_softmin", and no penalties, biases, batches or transforms. "auto" is 60, at most
        half of `n_epochs`, and 0 if these do not hold.
    user_graph_strength, item_graph_strength : float or "auto"
        Strength of a graph that stays, beside the learned one: of the similarities given to `fit`, and of the ten rows
        with the nearest features. In the unit of `user_graph_reg="auto"`. "auto" is the one of 0, 0.1, 0.3 and 0.7
        with the lowest error on hidden ratings.

    Examples
    --------
    >>> Adam(depth=2, n_epochs=300).get_params()["learning_rate"]
    0.001
    """

    name: ClassVar[str] = "adam"
    unit: ClassVar[str] = "epoch"

    exact_epochs: int | str = integer(0, besides=("auto",))
    user_graph_strength: float | str = real("auto", besides=("auto",))
    item_graph_strength: float | str = real("auto", besides=("auto",))

    def check(self) -> None:
        """Raise `ParameterError` for a parameter out of its range."""
        super().check()
        check_transforms(self.transforms)

    def to_json(self) -> dict[str, Any]:
        """The shorthand and all parameters; functions among the transforms by their names."""
        transforms = [(_transform_name(transform), *map(plain, rest)) for transform, *rest in self.transforms]
        return super().to_json() | {"transforms": transforms}


@dataclass(kw_only=True, eq=False, repr=False)
class Sweeping(Solver):
    """Parameters of both solvers of the posterior.

    Parameters
    ----------
    n_sweeps : int or "auto"
        Passes over all users and items, at most 1,000,000. "auto", of `Variational` alone, is 12, or where the sweeps
        of `Langevin` take less than about five seconds of one core it takes these in its place, see
        `air_recsys.models.engines.scaling.draws_are_cheap`.
    pattern_features : int, "degrees" or "auto"
        Number of singular vectors of the pattern of who rated what that the prior uses, beside the numbers of ratings.
        "degrees" uses only the latter, and 0 neither, for ratings that are missing at random. "auto" is 100,
        "degrees" if ratings are scarce, and 0 if more than half of all pairs are rated, see
        `air_recsys.models.engines.scaling`.
    user_graph_reg, item_graph_reg : {"auto", 0}
        Whether the model has a graph of the users (of the items), see `air_recsys.graphs.agreement`; 0 leaves it out.
        Scores depend on that of the items, by `graph_residuals`.
    graph_residuals : float or "auto"
        Strength of the item graph in scores: what factors and biases leave of a user's ratings is carried to the items
        near the rated ones, see `air_recsys.nn.residuals`. In the unit of the variance of the noise. "auto" is 8,
        or 0 if the residuals of near items do not agree by more than three standard errors, see
        `air_recsys.models.carried.agreement_beyond_fit`; 0 leaves it out. With it, features of items and times have
        parts of their own if these predict training ratings that are left out, see `air_recsys.models.further`, and so
        have users and items without ratings, see `air_recsys.models.unrated`. Given similarities of both sides take
        its place where they predict hidden ratings better, see `air_recsys.models.kernels`; 0 leaves these out, too.
    time : {None, "drift"}
        "drift" uses the times of the ratings: effects of users and items that change over time, with learned time
        scales and strengths, see `air_recsys.nn.drift.drift`.
    user_graph_strength, item_graph_strength : float or "auto"
        Share of the prior variance of users (of items) that follows the similarities given to `fit`, in [0, 1); 0
        ignores them. "auto" is the one of 0, 0.1, 0.3 and 0.7 with the lowest error on hidden ratings, see
        `air_recsys.models.settings.search`.
    """

    n_sweeps: int | str = integer(SWEEPS, minimum=1, maximum=_MOST_SWEEPS)
    pattern_features: int | str = integer("auto", besides=("auto", "degrees"))
    user_graph_reg: float | str = choice("auto", ("auto", 0))
    item_graph_reg: float | str = choice("auto", ("auto", 0))
    graph_residuals: float | str = real("auto", besides=("auto",))
    time: str | None = choice(None, (None, "drift"))
    user_graph_strength: float | str = real("auto", maximum=0.99, besides=("auto",))
    item_graph_strength: float | str = real("auto", maximum=0.99, besides=("auto",))

    def check(self) -> None:
        """Raise `ParameterError` for a parameter out of its range."""
        for name in ("user_graph_reg", "item_graph_reg"):
            if isinstance(getattr(self, name), float | int) and getattr(self, name) != 0:
                raise ParameterError(
                    f"{name} of {type(self).__name__} must be 'auto' or 0, found {getattr(self, name)}: "
                    "only Adam reads a strength"
                )
        super().check()


@dataclass(kw_only=True, eq=False, repr=False)
class Variational(Sweeping):
    """Gaussian approximation of the posterior of factors and biases: accurate and fast, the default for ratings.

    The posterior uses the pattern of who rated what, and estimates noise and penalties, see
    `air_recsys.nn.posterior.posterior`. Needs `n_factors`.

    Parameters
    ----------
    n_sweeps, pattern_features, user_graph_reg, item_graph_reg, graph_residuals, time
        See `Sweeping`; 12 sweeps by default.
    user_graph_strength, item_graph_strength
        See `Sweeping`.

    Examples
    --------
    >>> Variational().get_params()["n_sweeps"]
    12
    """

    name: ClassVar[str] = "variational"

    n_sweeps: int | str = integer(SWEEPS, minimum=1, maximum=_MOST_SWEEPS, besides=("auto",))

    def drawing(self) -> Langevin:
        """The solver that draws, with the same parameters but for the sweeps."""
        others = {name: value for name, value in self.get_params(deep=False).items() if name != "n_sweeps"}
        return Langevin(**others)


@dataclass(kw_only=True, eq=False, repr=False)
class Langevin(Sweeping):
    """Samples of the same posterior, and their mean: a little more accurate, and three times slower.

    Parameters
    ----------
    n_sweeps, pattern_features, user_graph_reg, item_graph_reg, graph_residuals, time
        See `Sweeping`; 80 sweeps by default. The first tenth is not kept, nor is it chosen by a validation part. The
        first five sweeps (a tenth of fewer than 50) are those of `Variational`. If the covariances of all users and
        items need more than 1 GiB, or more than `max_memory` leaves, none is: the samples then start from random
        numbers, and 200 sweeps are better.
    user_graph_strength, item_graph_strength
        See `Sweeping`.
    """

    name: ClassVar[str] = "langevin"

    n_sweeps: int | str = integer(80, minimum=1, maximum=_MOST_SWEEPS)


SOLVERS: dict[str, type[Solver]] = {kind.name: kind for kind in (Adam, Variational, Langevin)}


def as_solver(value: Any) -> Solver:
    """A solver, given as such or by its shorthand."""
    if isinstance(value, str) and value in SOLVERS:
        return SOLVERS[value]()
    if not isinstance(value, tuple(SOLVERS.values())):
        names = ", ".join(repr(name) for name in SOLVERS)
        raise ParameterError(f"solver must be {names} or an object such as Adam(), found {value!r}")
    return value


def solver_from_json(content: Any) -> Solver:
    """The solver that `Solver.to_json` described."""
    parameters = dict(content)
    kind = type(as_solver(parameters.pop("name")))
    if "transforms" in parameters:
        parameters["transforms"] = tuple(tuple(entry) for entry in parameters["transforms"])
    return kind(**parameters)


def with_overrides(solver: Solver, overrides: Mapping[str, Any]) -> Solver:
    """A copy of a solver with other values of some parameters."""
    own = parameter_names(type(solver))
    for name in overrides:
        if name not in own:
            raise ParameterError(_not_read(type(solver), name))
    return type(solver)(**solver.get_params(deep=False) | dict(overrides))


def parameter_names(kind: Any) -> list[str]:
    """The names of the parameters of a dataclass, of a solver or a model."""
    return [each.name for each in fields(kind)]


def readers_of(name: str) -> list[type[Solver]]:
    """The solvers that read a parameter."""
    return [kind for kind in SOLVERS.values() if name in parameter_names(kind)]


def check_transforms(transforms: Any) -> None:
    """Raise `ParameterError` for transforms that are of no data, see `air_recsys.models.engines.transforms`."""
    form = "(transform, strength) or (transform, strength, n_neighbors)"
    if isinstance(transforms, str) or not isinstance(transforms, Sequence):
        raise ParameterError(f"transforms must be a list of {form}, found {transforms!r}")
    for entry in transforms:
        if isinstance(entry, str) or not isinstance(entry, Sequence) or len(entry) not in (2, 3):
            raise ParameterError(f"an entry of transforms must be {form}, found {entry!r}")
        check_real("the strength of a transform", entry[1], strict=True)
        if len(entry) == 3 and entry[2] is not None:
            check_integer("the neighbours of a transform", entry[2], minimum=1)
        if not callable(entry[0]) and not isinstance(entry[0], str):
            raise ParameterError(f"a transform must be a name or a function, found {type(entry[0]).__name__}")


def plain(value: Any) -> Any:
    """A value as JSON holds it: NumPy's numbers as Python's."""
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _not_read(kind: type[Solver], name: str) -> str:
    readers = readers_of(name)
    if readers:
        names = " and ".join(reader.__name__ for reader in readers)
        verb = "does" if len(readers) == 1 else "do"
        return (
            f"{kind.__name__} does not read {name}, {names} {verb}: leave it out, or give solver={readers[0].name!r}"
        )
    names = sorted({each for solver in SOLVERS.values() for each in parameter_names(solver)})
    near = close_names(name, names, n=1, likeness=0.6)
    hint = f"; do you mean {near[0]}?" if near else f"; {kind.__name__} has {', '.join(parameter_names(kind))}"
    return f"no parameter of AIR or of its solvers is called {name!r}{hint}"


def _transform_name(transform: Any) -> str:
    """The name of a transform in a file: code is not saved, so a function has to be given again before a refit."""
    if isinstance(transform, str):
        return transform
    return f"function {getattr(transform, '__qualname__', type(transform).__name__)}"


def solver_for(settings: Mapping[str, Any], asked: Any = AUTO) -> Any:
    """The solver asked for; for "auto" that of the preset, or "adam" where a setting asks for it.

    Full width, a strength of a graph, and what `Adam` reads and `Variational` does not, ask for "adam".
    """
    if not isinstance(asked, str) or asked != AUTO:
        return asked
    unread = any(readers_of(name) and name not in parameter_names(Variational) for name in settings)
    full_width = settings.get("n_factors", "auto") is None
    strengths = any(settings.get(name, 0) not in ("auto", 0) for name in ("user_graph_reg", "item_graph_reg"))
    return "adam" if unread or full_width or strengths else Variational(n_sweeps=AUTO)
