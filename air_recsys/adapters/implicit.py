"""implicit: AIR with the interface of its matrix factorizations, and `AIR.for_likes` as a recommender."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.adapters import _implicit_files
from air_recsys.adapters._implicit_input import (
    as_confidences,
    check_ids,
    check_width,
    leave_k_out_split,
    shape_of,
)
from air_recsys.adapters._implicit_lists import Asked, GivesLists, alike, recommended
from air_recsys.adapters._implicit_ranker import ImplicitRanker
from air_recsys.exceptions import DataError, ModelFileError, NotFittedError, ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.neighbors import nearest_neighbors_graph
from air_recsys.graphs.pruning import to_similarities
from air_recsys.models.like_factors import softmax, squared
from air_recsys.models.like_factors.rows import check_matrices, replaced
from air_recsys.models.like_factors.softmax import SoftmaxRows, SoftmaxSettings, temperature_for, train_softmax_rows
from air_recsys.models.like_factors.squared import SquaredError, SquaredRows, train_squared_rows
from air_recsys.models.like_factors.targets import FOUND, check_settings, is_auto, settings_for
from air_recsys.models.ranking.catalogue import unit_rows
from air_recsys.models.state import lock_of
from air_recsys.nn.devices import resolve_device
from air_recsys.storage.reading import checked_csr, checked_sparse
from air_recsys.storage.threads import torch_threads
from air_recsys.storage.validation import (
    RandomState,
    as_generator,
    check_choice,
    check_integer,
    check_real,
    needs_extra,
)
from air_recsys.training import Callback, Record

with needs_extra("implicit"):
    from implicit.cpu.matrix_factorization_base import MatrixFactorizationBase
    from implicit.utils import check_csr

__all__ = ["ImplicitAIR", "ImplicitRanker", "leave_k_out_split"]

_OF_SQUARED = ("regularization", "alpha", "user_graph_reg", "item_graph_reg", "depth")
_STEPS = {"softmax": softmax.STEPS_PER_ITERATION, "squared": squared.STEPS_PER_ITERATION}
_RATES = {"softmax": softmax.LEARNING_RATE, "squared": squared.LEARNING_RATE}
_FACTORS = ("user_factors", "item_factors")
_CSR = ("data", "indices", "indptr")


@dataclass(eq=False, repr=False)
class ImplicitAIR(GivesLists, MatrixFactorizationBase):  # pyright: ignore[reportIncompatibleMethodOverride]
    r"""AIR for implicit feedback, a replacement for ``implicit.als.AlternatingLeastSquares``.

    By default it is trained by a softmax over all items, in which each like of a user should have a large share,

    .. math::
        x_u = \sum_{j \in N(u)} p_j \Big/ |\cdot|, \qquad
        L = \sum_{(u,i)} \Big[-x_u \cdot q_i / \tau + 1.1 \log \sum_l e^{x_u \cdot q_l / \tau}\Big]

    with sources p and directions q of the items; the factors of a user follow from its items N(u). `item_factors` are
    :math:`d_i^{0.05} q_i` for an item with :math:`d_i` likes. Each like counts as 1, whatever its value.

    With ``loss="squared"``, which a parameter that only this loss reads implies, the values are confidences and the
    objective is

    .. math::
        \sum_{(u,i)} c_{ui} (x_{ui} - p_{ui})^2 + \lambda\Big(\sum_u |x_u|^2 + \sum_i |y_i|^2\Big)
            + \eta_u E(X; A_u) + \eta_i E(X^\top; A_i)

    with :math:`c_{ui} = \alpha r_{ui}, p_{ui} = t_{ui}` for a liked pair and :math:`c_{ui} = 1, p_{ui} = 0` for any
    other, and the energies of X on a user graph and an item graph that are learned with the factors. Where
    `regularization` or `alpha` is given, :math:`t_{ui} = 1`: the objective of ALS plus the energies. Where neither
    is, targets fall with the numbers of likes, :math:`t_{ui} = s\, d_u^{-0.2} d_i^{-0.1}` with s such that their mean
    square over all likes is 1, and `item_factors` are :math:`d_i^{0.1} y_i`, which takes the scaling back on the side
    of the items.

    Users and items without any like have zero factors and no edges; such items come last in lists of recommended ones.

    Parameters
    ----------
    factors : int or "auto"
        Width of the factorization. "auto" is 128, at most the number of users and of items with likes; it is 100, as
        in ALS, where `regularization` or `alpha` is given.
    regularization : float or "auto"
        lambda, of the squared error. "auto" is :math:`0.6\, a \sqrt{z/(mn)} (\sqrt m + \sqrt n)` for z likes of m
        users and n items, with a the mean confidence of a like, and at most :math:`a z / (2\sqrt{mn})`: few likes
        keep factors that are not 0. It is 0.01, as in ALS, where `alpha` is given.
    alpha : float or "auto"
        Weight of a value of 1 against a pair without a like, of the squared error. "auto" gives likes a mean
        confidence a of a tenth of the mean number of likes of a user; it is 1, as in ALS, where `regularization` is
        given.
    dtype : dtype
        float32 or float64, of the factors.
    loss : {"auto", "softmax", "squared"}
        "auto" is the softmax, unless `regularization`, `alpha`, `user_graph_reg`, `item_graph_reg` or `depth`, which
        only the squared error reads, differs from its default.
    iterations : int
        Rounds of `steps_per_iteration` optimiser steps.
    calculate_training_loss : bool
        Give `fit`'s callback the objective: the mean of the softmax loss over the likes of the round, or the squared
        one divided by the sum of all confidences, as in ALS. With the targets :math:`t_{ui}` it is no number of ALS.
    num_threads : int
        Threads for training and for many ids at a time; 0 is all.
    random_state : int, RandomState, Generator or None
        Source of the start.
    use_gpu : bool, optional
        As in ALS: False is ``device="cpu"``, True ``device="cuda"``; an error together with `device`.
    user_graph_reg, item_graph_reg : float
        eta, of the squared error, in the unit of `regularization`: against the squared error of one pair of confidence
        1. 0 leaves a graph out.
    graph_neighbors : int, optional
        Edges per node of a graph; None weighs all pairs.
    depth : int
        Number of factors of X, at least 2, of the squared error. Weight decay falls on each.
    learning_rate : float or "auto"
        Adam's first step size. "auto" is 0.01 of the softmax, which falls to 0 evenly, and 0.1 of the squared error,
        which falls to 0 along a cosine.
    steps_per_iteration : int or "auto"
        "auto" is 12 of the softmax, each on 256 users, and 20 of the squared error, each over all likes.
    device : str
        Where to train: "cpu", "cuda", ..., or "auto", the GPU where there is one.

    Attributes
    ----------
    user_factors, item_factors : ndarray, shape (n_users, factors), (n_items, factors)
        As in all of implicit; NumPy arrays also after a training on a GPU. None before `fit`.
    settings_ : dict or None
        Numbers that the training used: factors and temperature, or factors, regularization and alpha.
    user_graph_, item_graph_ : SimilarityGraph or None
        Similarity graphs; ids are row and column numbers. With the softmax the strongest cosines of the factors,
        computed on first access; with the squared error the learned graphs, None if their weight is 0.

    Notes
    -----
    `similar_users` and `similar_items` compare the factors by cosines; the graphs hold the learned neighbours.

    `fit` starts again each time, while ALS continues from its factors. ``use_native`` and ``use_cg`` choose between
    solvers of ALS and are not parameters here.

    Sources: Wu et al., BSL: Understanding and Improving Softmax Loss for Recommendation, ICDE 2024, for the softmax.
    Hu, Koren, Volinsky, ICDM 2008, for the squared error; Rendle, Krichene, Zhang, Koren, Revisiting the Performance
    of iALS on Item Recommendation Benchmarks, RecSys 2022, for penalties that depend on the numbers of likes: scaled
    targets are such penalties in other variables, where a pair counts :math:`t_{ui}^2`.

    Examples
    --------
    >>> likes = sp.csr_matrix(np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8))  # two groups, one item withheld each
    >>> model = ImplicitAIR(use_gpu=False, random_state=0)
    >>> model.fit(likes, show_progress=False)
    >>> ids, scores = model.recommend([0, 5], likes[[0, 5]], N=1)
    >>> ids.tolist()
    [[0], [5]]
    """

    factors: int | Literal["auto"] = "auto"
    regularization: float | Literal["auto"] = "auto"
    alpha: float | Literal["auto"] = "auto"
    dtype: Any = np.float32
    _: KW_ONLY
    loss: str = "auto"
    iterations: int = 15
    calculate_training_loss: bool = False
    num_threads: int = 0
    random_state: RandomState = None
    use_gpu: bool | None = None
    user_graph_reg: float = 1.0
    item_graph_reg: float = 1.0
    graph_neighbors: int | None = 20
    depth: int = 2
    learning_rate: float | Literal["auto"] = "auto"
    steps_per_iteration: int | Literal["auto"] = "auto"
    device: str = "auto"

    def __post_init__(self) -> None:
        super().__init__(num_threads=self.num_threads)
        self.user_factors: Any = None  # again, as implicit types them as None
        self.item_factors: Any = None
        self.dtype = np.dtype(self.dtype)
        self._graphs: dict[str, SimilarityGraph] = {}  # learned with the factors
        self.settings_: dict[str, Any] | None = None
        self._rows: SoftmaxRows | SquaredRows | None = None
        self._kept: dict[str, tuple[tuple[Any, ...], Any]] = {}

    def fit(
        self,
        user_items: Any,
        show_progress: bool = True,
        callback: Callable[[int, float, float | None], Any] | None = None,
    ) -> None:
        """Train on a matrix of likes.

        Parameters
        ----------
        user_items : csr_matrix, shape (n_users, n_items)
            Confidences > 0; a stored zero is no like. Other sparse formats are converted, with implicit's
            `ParameterWarning`.
        show_progress : bool
            Show a progress bar of the optimiser steps.
        callback : callable, optional
            Called after each iteration with its number, its seconds and the loss (None unless
            `calculate_training_loss`).

        Raises
        ------
        DataError
            For NaN, infinite or negative values, with the first place, and for a matrix without likes.
        ParameterError
            For a parameter out of range.
        """
        self._check_parameters()
        if callback is not None and not callable(callback):
            raise ParameterError(f"callback must be a function or None, found {callback!r}")
        likes = as_confidences(user_items)
        shape = shape_of(likes)
        if likes.nnz == 0:
            raise DataError(f"expected at least one value > 0, found none in a matrix of shape {shape}")
        with torch_threads(self.num_threads):
            if self._loss() == "softmax":
                self._fit_softmax(likes, show_progress, callback)
            else:
                self._fit_squared(likes, show_progress, callback)
        self._check_fit_errors()

    def _loss(self) -> str:
        """What is minimised: "softmax" or "squared"."""
        return self.loss if self.loss != "auto" else ("squared" if self._given_to_squared() else "softmax")

    def _given_to_squared(self) -> list[str]:
        """The parameters that only the squared error reads and that differ from their defaults."""
        defaults = {each.name: each.default for each in fields(self)}
        return [name for name in _OF_SQUARED if getattr(self, name) != defaults[name]]

    @property
    def _steps(self) -> int:
        """Optimiser steps of an iteration."""
        steps = self.steps_per_iteration
        return _STEPS[self._loss()] if isinstance(steps, str) else steps

    @property
    def _rate(self) -> float:
        rate = self.learning_rate
        return _RATES[self._loss()] if isinstance(rate, str) else rate

    @property
    def _device(self) -> str:
        return self.device if self.use_gpu is None else ("cuda" if self.use_gpu else "cpu")

    def _fit_softmax(self, likes: sp.csr_matrix, show_progress: bool, callback: Callable[..., Any] | None) -> None:
        n_users, n_items = int(np.count_nonzero(np.diff(likes.indptr))), np.unique(likes.indices).size
        width = min(softmax.WIDTH, n_users, n_items) if self.factors == "auto" else int(self.factors)
        settings = SoftmaxSettings(
            width, temperature_for(n_items), self.iterations * self._steps, self._rate, evaluate_every=self._steps
        )
        seed = int(as_generator(self.random_state).integers(2**31))
        callbacks = () if callback is None else (self._watch(callback),)
        learned = train_softmax_rows(
            likes, settings, seed, resolve_device(self._device), callbacks, progress=show_progress
        )
        users, items = (factors.astype(self.dtype) for factors in learned[:2])
        told = {"factors": settings.factors, "temperature": settings.temperature}
        self._keep(user_factors=users, item_factors=items, settings_=told, _rows=learned[2], _graphs={})

    def _fit_squared(self, likes: sp.csr_matrix, show_progress: bool, callback: Callable[..., Any] | None) -> None:
        settings = settings_for(likes, {name: getattr(self, name) for name in FOUND})
        of_model = {name: getattr(self, name) for name in ("graph_neighbors", "random_state")}
        of_model |= {"dtype": self.dtype.name, "device": self._device, "verbose": show_progress}
        error = SquaredError(
            settings,
            self.user_graph_reg,
            self.item_graph_reg,
            self.depth,
            self.iterations * self._steps,
            self._rate,
            self._steps,
            of_model,
        )
        callbacks = [] if callback is None else [self._watch(callback)]
        scaled = is_auto(self.regularization, self.alpha)
        users, items, rows, graphs = train_squared_rows(likes, error, scaled=scaled, callbacks=callbacks)
        self._keep(user_factors=users, item_factors=items, settings_=settings, _rows=rows, _graphs=graphs)

    def _watch(self, callback: Callable[..., Any]) -> Callback:
        """A callback of a training that calls that of implicit at each iteration, with the objective as loss."""
        last = 0.0

        def after(record: Record) -> None:
            nonlocal last
            if record.epoch > 0:
                loss = record.objective if self.calculate_training_loss else None
                callback(record.epoch // self._steps - 1, record.seconds - last, loss)
            last = record.seconds

        return after

    def _keep(self, **learned: Any) -> None:
        with lock_of(self):
            vars(self).update(learned)  # in one step: other threads read all of it or nothing

    @property
    def user_graph_(self) -> SimilarityGraph | None:
        """Similarities of users in 0..1, see `AIR.item_graph_`; None before `fit`."""
        return self._graph("user", self.user_factors)

    @property
    def item_graph_(self) -> SimilarityGraph | None:
        """Similarities of items in 0..1, see `AIR.item_graph_`; None before `fit`."""
        return self._graph("item", self.item_factors)

    def _graph(self, kind: str, factors: np.ndarray | None) -> SimilarityGraph | None:
        if factors is None or not isinstance(self._rows, SoftmaxRows):
            learned = self._graphs.get(kind)
            return None if learned is None else self._once(f"{kind} graph", (learned,), lambda: _shown(learned))
        n = len(factors)

        def make() -> SimilarityGraph:
            points = np.asarray(factors, dtype=np.float32)
            return SimilarityGraph(
                nearest_neighbors_graph(points, self.graph_neighbors or max(1, n - 1), "cosine"), range(n), kind
            )

        return self._once(f"{kind} graph", (factors, self.graph_neighbors), make)

    def _once(self, name: str, sources: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What `make` computes from the sources, kept for as long as they are the same objects."""
        kept = self._kept.get(name)
        if kept is None or any(old is not new for old, new in zip(kept[0], sources, strict=True)):
            kept = self._kept[name] = sources, make()
        return kept[1]

    @property
    def user_norms(self) -> np.ndarray:
        """Lengths of the users' factors, never 0, shape (n_users,)."""
        return self._norms("user")

    @property
    def item_norms(self) -> np.ndarray:
        """Lengths of the items' factors, never 0, shape (n_items,)."""
        return self._norms("item")

    def _norms(self, side: str) -> np.ndarray:
        """The length of each row, 1e-10 in place of 0 as in all of implicit."""
        factors = getattr(self, f"{side}_factors")

        def make() -> np.ndarray:
            norms = np.linalg.norm(factors, axis=-1)
            norms[norms == 0] = 1e-10
            return norms

        return self._once(f"{side} norms", (factors,), make)

    def _recommended(self, asked: Asked, liked: Any, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        factors = self._user_factor(asked.ids, rows, rows is not None)
        empty = self._once("empty items", (self.item_factors,), lambda: np.flatnonzero(~self.item_factors.any(axis=1)))
        if empty.size:
            left_out = empty if asked.filtered is None else np.r_[empty, asked.filtered].astype(np.int64)
            asked = asked._replace(filtered=left_out)
        return recommended(np.atleast_2d(factors), self.item_factors, asked, liked, self.num_threads)

    def _similar(self, side: str, asked: Asked, solved: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The largest cosines of factors."""
        factors = getattr(self, f"{side}_factors")
        units = self._once(f"unit {side}s", (factors,), lambda: unit_rows(factors))
        own = np.atleast_1d(np.asarray(asked.ids)) if solved is None else None
        queries = units[own] if solved is None else np.atleast_2d(unit_rows(solved))
        found, scores = alike(queries, units, asked, own, self.num_threads)
        return asked.answer(found, scores.astype(self.item_factors.dtype))

    def recalculate_user(self, userid: Any, user_items: Any) -> np.ndarray:
        """The factors of users from their likes alone, storing nothing.

        With the softmax they are what the likes make them: those of a trained user with its own likes. With the
        squared error they are the objective's minimum in those rows with all else fixed: the item graph counts, and no
        user has neighbours in the user graph.

        Parameters
        ----------
        userid : int or array_like of int
            Only their number matters.
        user_items : csr_matrix, shape (len(userid), n_items)

        Returns
        -------
        ndarray, shape (len(userid), factors), or (factors,) for an int
        """
        return self._recalculate("user", userid, user_items)

    def recalculate_item(self, itemid: Any, item_users: Any) -> np.ndarray:
        """The factors of items from the users that like them; see `recalculate_user`.

        With the softmax they follow from the direction of the sum of the users' factors, by the linear map that fits
        the trained items best.
        """
        return self._recalculate("item", itemid, item_users)

    def _recalculate(self, side: str, ids: Any, rows: Any) -> np.ndarray:
        model = copy.copy(self)
        model._sizes()
        solver, likes = model._solver(side), as_confidences(rows)
        n_rows, expected = shape_of(likes)[0], 1 if np.isscalar(ids) else len(ids)
        if n_rows != expected:
            raise ValueError(f"expected one row for each {side}, {expected}, found {n_rows}")
        check_width(likes, len(model._others(side)), f"{'item' if side == 'user' else 'user'}s")
        factors = solver.solve(likes).astype(model.item_factors.dtype)
        return factors[0] if np.isscalar(ids) else factors

    def _others(self, side: str) -> np.ndarray:
        return self.item_factors if side == "user" else self.user_factors

    def _solver(self, side: str) -> softmax.SoftmaxSolver | squared.SquaredSolver:
        rows, others = self._rows, self._others(side)
        assert rows is not None  # of a fitted model
        return self._once(f"solver of a {side}", (others, rows), lambda: rows.solver(side, others))

    def partial_fit_users(self, userids: Any, user_items: Any) -> None:
        """Set the factors of users of the model, and of new ones, to those of `recalculate_user`.

        An id beyond the last adds all users up to it, with zero factors.
        """
        self._partial_fit("user", userids, user_items)

    def partial_fit_items(self, itemids: Any, item_users: Any) -> None:
        """Set the factors of items to those of `recalculate_item`; see `partial_fit_users`."""
        self._partial_fit("item", itemids, item_users)

    def _partial_fit(self, side: str, ids: Any, rows: Any) -> None:
        check_ids(f"{side}ids", ids, 2**31 - 1)  # the ids of lists have 32 bits
        if np.unique(ids).size < np.size(ids):
            raise DataError(f"expected each of the {side}ids once, found one twice")
        with lock_of(self):
            solved = self._recalculate(side, ids, rows)
            assert self._rows is not None
            changed = self._rows.with_rows(side, ids, as_confidences(rows), self._others(side))
            factors = replaced(getattr(self, f"{side}_factors"), ids, solved)
            self._keep(**{f"{side}_factors": factors, "_rows": changed})

    def explain(
        self, userid: int, user_items: Any, itemid: int, user_weights: np.ndarray | None = None, N: int = 10
    ) -> tuple[float, list[tuple[int, float]], np.ndarray]:
        r"""The contributions of a user's likes to the score of an item.

        With the softmax a user's factors are a sum over its likes, and so is the score:

        .. math:: x \cdot y_i = \sum_j p_j \cdot y_i \Big/ \Big|\sum_j p_j\Big|

        With the squared error the factors of `recalculate_user` are linear in the likes,
        :math:`x = M^{-1} \sum_j c_j t_j y_j` with the targets t and the item graph's energy in M:

        .. math:: x \cdot y_i = \sum_j c_j t_j\, y_i^\top M^{-1} y_j

        With scaled targets, the score is :math:`d_i^{0.1}` times that.

        Parameters
        ----------
        userid : int
            Row of `user_items`.
        user_items : csr_matrix, shape (n_users, n_items)
        itemid : int
        user_weights : ndarray, optional
            That of an earlier call for the same user; saves the solve.
        N : int
            Number of likes to return.

        Returns
        -------
        total_score : float
            The score of the item after `recalculate_user`; the sum over all likes.
        top_contributions : list of (int, float)
            The N largest contributions, as (itemid, contribution).
        user_weights : ndarray, shape (n_likes, factors)
            The contribution of each like to the user's factors, which are their sum.
        """
        model = copy.copy(self)
        _, n_items = model._sizes()
        checked_sparse("user_items", user_items)
        user_items = check_csr(user_items)
        check_ids("userid", userid, user_items.shape[0])
        check_ids("itemid", itemid, n_items)
        likes = as_confidences(user_items[[userid]])
        check_width(likes, n_items, "items")
        if user_weights is None:
            user_weights = model._solver("user").contributions(likes)
        if user_weights.shape != (likes.nnz, model.item_factors.shape[1]):
            raise ValueError(
                f"expected user_weights of the {likes.nnz} likes of this user, found shape {user_weights.shape}"
            )
        contributions = user_weights @ model.item_factors[itemid]
        best = np.argsort(-contributions, kind="stable")[: check_integer("N", N, minimum=1)]
        top = [(int(likes.indices[like]), float(contributions[like])) for like in best]
        return float(contributions.sum()), top, user_weights

    def save(self, file: Any) -> None:
        """Write the model in NumPy's ``.npz``, graphs included; a file of that name is replaced in one step.

        Parameters
        ----------
        file : str, Path or binary file
            ".npz" is added to a name that lacks it.

        Raises
        ------
        ModelFileError
            For factors that are not finite numbers, and where a file cannot be written.
        """
        model = copy.copy(self)
        parameters = {name: getattr(model, name) for name in inspect.signature(type(self)).parameters}
        arrays, learned = {}, {"settings": model.settings_, "unit": None}
        if model._rows is not None:
            try:
                model._check_learned()
            except ValueError as error:
                raise ModelFileError(f"cannot save the model, it would not load: {error}") from None
            arrays = {name: getattr(model, name) for name in _FACTORS} | model._rows.to_arrays()
            if isinstance(model._rows, SquaredRows) and model._rows.targets is not None:
                learned["unit"] = model._rows.targets.unit
        for kind, graph in model._graphs.items():
            arrays |= {f"{kind}_graph_{name}": getattr(graph.to_scipy(), name) for name in _CSR}
        values = parameters | {"dtype": parameters["dtype"].name}
        _implicit_files.write(file, type(self).__name__, values, arrays, learned)

    @classmethod
    def _restored(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        model = cls(**header["parameters"])
        model._check_parameters()
        if header["settings"] is not None:
            model._take(header, arrays)
        return model

    def _take(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take what a file says was learned, or raise `ValueError`."""
        self.settings_ = settings = header["settings"]
        if "temperature" in settings:
            check_integer("factors", settings["factors"], minimum=1)
            check_real("temperature", settings["temperature"], strict=True)
            self._rows = SoftmaxRows.from_arrays(arrays)
        else:
            check_settings(settings, auto=False)
            self._rows = SquaredRows.from_arrays(arrays, settings["alpha"], header["unit"])
        self.user_factors, self.item_factors = (arrays[name] for name in _FACTORS)
        self._graphs = {kind: _graph(arrays, kind) for kind in ("user", "item") if f"{kind}_graph_data" in arrays}
        self._check_learned()

    def _check_learned(self) -> None:
        """Raise `ValueError` where factors, and what solves for others, are not finite numbers that fit each other."""
        assert self._rows is not None
        (n_users, width), n_items = np.shape(self.user_factors), len(self.item_factors)
        check_matrices({name: getattr(self, name) for name in _FACTORS}, dict.fromkeys(_FACTORS, (None, width)))
        self._rows.check(n_users, n_items, width)
        for kind, size in (("user", n_users), ("item", n_items)):
            if kind in self._graphs and len(self._graphs[kind]) != size:
                raise ValueError(f"expected {kind}_graph_ of {size} nodes, found {len(self._graphs[kind])}")

    def _sizes(self) -> tuple[int, int]:
        """The numbers of users and items, or raise `NotFittedError`."""
        if self.user_factors is None or self.item_factors is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return len(self.user_factors), len(self.item_factors)

    def _check_parameters(self) -> None:
        check_settings({name: getattr(self, name) for name in FOUND}, auto=True)
        check_choice("loss", self.loss, ("auto", *_STEPS))
        if self.loss == "softmax" and (unread := self._given_to_squared()):
            raise ParameterError(f"loss='softmax' does not read {', '.join(unread)}: leave them out, or the loss")
        check_integer("iterations", self.iterations, minimum=1)
        if self.steps_per_iteration != "auto":
            check_integer("steps_per_iteration", self.steps_per_iteration, minimum=1)
        if self.learning_rate != "auto":
            check_real("learning_rate", self.learning_rate, strict=True)
        if self.graph_neighbors is not None:
            check_integer("graph_neighbors", self.graph_neighbors, minimum=1)
        for name in ("user_graph_reg", "item_graph_reg"):
            check_real(name, getattr(self, name))
        check_integer("num_threads", self.num_threads)
        check_choice("dtype", self.dtype.name, ("float32", "float64"))
        check_choice("use_gpu", self.use_gpu, (None, False, True))
        if self.use_gpu is not None and self.device != "auto":
            raise ParameterError(f"give use_gpu or device, found use_gpu={self.use_gpu} and device={self.device!r}")


def _graph(arrays: dict[str, np.ndarray], kind: str) -> SimilarityGraph:
    data, indices, indptr = (arrays[f"{kind}_graph_{name}"] for name in _CSR)
    size = len(indptr) - 1
    return SimilarityGraph(checked_csr(data, indices, indptr, (size, size)), range(size), kind)


def _shown(learned: SimilarityGraph) -> SimilarityGraph:
    return SimilarityGraph(to_similarities(learned.to_scipy()), learned.ids, learned.kind)
