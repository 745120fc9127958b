"""implicit: AIR with the interface of its matrix factorizations."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.adapters import implicit_files
from air_recsys.adapters.implicit_input import (
    as_confidences,
    check_ids,
    check_width,
    list_length,
    norms_of,
    replaced,
    shape_of,
    widened,
    with_values,
    with_zero_rows,
)
from air_recsys.adapters.implicit_lists import alike, recommended
from air_recsys.adapters.implicit_split import leave_k_out_split
from air_recsys.adapters.implicit_targets import CHOSEN, Targets, check_settings, is_auto, powers_of, settings_for
from air_recsys.exceptions import DataError, NotFittedError, ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.interactions import Interactions
from air_recsys.models import AIR
from air_recsys.models.locks import lock_of
from air_recsys.models.ranking.catalogue import unit_rows
from air_recsys.models.rows import LeastSquaresRows
from air_recsys.nn.devices import torch_threads
from air_recsys.reading import checked_sparse
from air_recsys.solvers import Adam
from air_recsys.training import Callback, Record
from air_recsys.validation import RandomState, check_choice, check_integer, check_real, needs_extra

with needs_extra("implicit"):
    from implicit.cpu.matrix_factorization_base import MatrixFactorizationBase
    from implicit.utils import check_csr

__all__ = ["ImplicitAIR", "leave_k_out_split"]


@dataclass(eq=False, repr=False)
class ImplicitAIR(MatrixFactorizationBase):
    r"""AIR for implicit feedback, a replacement of ``implicit.als.AlternatingLeastSquares``.

    The matrix holds the confidence of each like. The objective is

    .. math::
        \sum_{(u,i)} c_{ui} (x_{ui} - p_{ui})^2 + \lambda\Big(\sum_u |x_u|^2 + \sum_i |y_i|^2\Big)
            + \eta_u E(X; A_u) + \eta_i E(X^\top; A_i)

    with :math:`c_{ui} = \alpha r_{ui}, p_{ui} = t_{ui}` for a liked pair and :math:`c_{ui} = 1, p_{ui} = 0` for any
    other, and the energies of X on a user graph and an item graph that are learned with the factors. Users and items
    without any like have zero factors and no edges.

    Where `regularization` or `alpha` is given, :math:`t_{ui} = 1`: the objective of ALS plus the energies. Where
    neither is, targets fall with the numbers of likes :math:`d_u, d_i` of the user and the item,

    .. math::
        t_{ui} = s\, d_u^{-0.2} d_i^{-0.1}

    with s such that their mean square over all likes is 1, and `item_factors` are :math:`d_i^{0.1} y_i`, which takes
    the scaling back on the side of the items. A list of one user does not depend on the user's own factor.

    Parameters
    ----------
    factors : int or "auto"
        Width of the factorization. "auto" is 128, at most the number of users and of items with likes; it is 100, as
        in ALS, where `regularization` or `alpha` is given.
    regularization : float or "auto"
        lambda. "auto" is :math:`0.6\, a \sqrt{z/(mn)} (\sqrt m + \sqrt n)` for z likes of m users and n items, with
        a the mean confidence of a like, and at most :math:`a z / (2\sqrt{mn})`: few likes keep factors that are not
        0. It is 0.01, as in ALS, where `alpha` is given.
    alpha : float or "auto"
        Weight of a value of 1 against a pair without a like. "auto" gives likes a mean confidence a of a tenth of the
        mean number of likes of a user; it is 1, as in ALS, where `regularization` is given.
    dtype : dtype
        float32 or float64, of the factors.
    iterations : int
        Rounds of `steps_per_iteration` optimiser steps, each over all likes.
    calculate_training_loss : bool
        Give `fit`'s callback the objective divided by the sum of all confidences, as in ALS. With the targets
        :math:`t_{ui}` it is no number of ALS.
    num_threads : int
        Threads for training and for many ids at a time; 0 is all.
    random_state : int, RandomState, Generator or None
        Source of the start.
    use_gpu : bool, optional
        As in ALS: False is ``device="cpu"``, True ``device="cuda"``; not to be given beside `device`.
    user_graph_reg, item_graph_reg : float
        eta, in the unit of `regularization`: against the squared error of one pair of confidence 1. 0 leaves a graph
        out.
    graph_neighbors : int, optional
        Edges per node of a graph; None weighs all pairs.
    depth : int
        Number of factors of X, at least 2. Weight decay falls on each.
    learning_rate : float
        Adam's first step size, which falls to 0 along a cosine.
    steps_per_iteration : int
    device : str
        Where to train: "cpu", "cuda", ..., or "auto", the GPU where there is one.

    Attributes
    ----------
    user_factors, item_factors : ndarray, shape (n_users, factors), (n_items, factors)
        As in all of implicit; NumPy arrays also after a training on a GPU. None before `fit`.
    settings_ : dict or None
        The factors, regularization and alpha of the training, as numbers.
    user_graph_, item_graph_ : SimilarityGraph or None
        The learned graphs; ids are row and column numbers.

    Notes
    -----
    `fit` starts anew each time, where ALS continues from its factors. ``use_native`` and ``use_cg`` choose between
    solvers of ALS and are not parameters here.

    Sources: Hu, Koren, Volinsky, ICDM 2008, for the data term. Rendle, Krichene, Zhang, Koren, Revisiting the
    Performance of iALS on Item Recommendation Benchmarks, RecSys 2022, for penalties that depend on the numbers of
    likes: scaled targets are such penalties in other variables, where a pair counts :math:`t_{ui}^2`.

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
    iterations: int = 15
    calculate_training_loss: bool = False
    num_threads: int = 0
    random_state: RandomState = None
    use_gpu: bool | None = None
    user_graph_reg: float = 1.0
    item_graph_reg: float = 1.0
    graph_neighbors: int | None = 20
    depth: int = 2
    learning_rate: float = 0.1
    steps_per_iteration: int = 20
    device: str = "auto"

    def __post_init__(self) -> None:
        super().__init__(num_threads=self.num_threads)
        self.user_factors: Any = None  # again, as implicit types them as None
        self.item_factors: Any = None
        self.dtype = np.dtype(self.dtype)
        self.user_graph_: SimilarityGraph | None = None
        self.item_graph_: SimilarityGraph | None = None
        self._user_penalty: np.ndarray | None = None
        self._item_penalty: np.ndarray | None = None
        self.settings_: dict[str, Any] | None = None
        self._targets: Targets | None = None  # None: all are 1
        self._kept: dict[str, tuple[tuple[Any, ...], Any]] = {}

    # ---------------------------------------------------------------- fitting

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
        likes = as_confidences(user_items, 1.0)
        shape = shape_of(likes)
        if likes.nnz == 0:
            raise DataError(f"expected at least one value > 0, found none in a matrix of shape {shape}")
        settings = settings_for(likes, {name: getattr(self, name) for name in CHOSEN})
        targets = Targets.of_likes(likes) if is_auto(self.regularization, self.alpha) else None
        likes.data *= settings["alpha"]
        # Users and items without likes have zero factors: they are left out here, and `_keep` adds their zeros.
        users, items = np.flatnonzero(np.diff(likes.indptr)), np.unique(likes.indices)
        model = self._model(settings, users.size * items.size, show_progress)
        data = Interactions(
            np.searchsorted(users, np.repeat(np.arange(shape[0]), np.diff(likes.indptr))),
            np.searchsorted(items, likes.indices),
            _targets_of(targets, "user", likes),
            users,
            items,
            weights=likes.data,
        )
        total = float(likes.data.sum()) + shape[0] * shape[1] - likes.nnz  # of all confidences
        watch = [] if callback is None else [self._watch(callback, users.size * items.size / total)]
        with torch_threads(self.num_threads):
            model.fit(data, callbacks=watch)
        self._keep(model, shape, settings, targets)

    def _model(self, settings: dict[str, Any], size: int, show_progress: bool) -> AIR:
        solver = Adam(
            depth=self.depth,
            user_graph_reg=self.user_graph_reg / size,
            item_graph_reg=self.item_graph_reg / size,
            n_epochs=self.iterations * self.steps_per_iteration,
            learning_rate=self.learning_rate,
            schedule="cosine",
            weight_decay=settings["regularization"],
            scale=False,
            unobserved_weight=1.0,
            init_mean=0.0,
            init_std=0.1,
            evaluate_every=self.steps_per_iteration,
        )
        return AIR(
            n_factors=settings["factors"],
            graph_neighbors=self.graph_neighbors,
            solver=solver,
            dtype=self.dtype.name,
            device=self.device if self.use_gpu is None else ("cuda" if self.use_gpu else "cpu"),
            random_state=self.random_state,
            verbose=show_progress,
        )

    def _watch(self, callback: Callable[..., Any], unit: float) -> Callback:
        """Return a callback of AIR that calls that of implicit, with the objective times `unit` as loss."""
        last = 0.0

        def after(record: Record) -> None:
            nonlocal last
            if record.epoch > 0:
                loss = record.objective * unit if self.calculate_training_loss else None
                callback(record.epoch // self.steps_per_iteration - 1, record.seconds - last, loss)
            last = record.seconds

        return after

    def _keep(self, model: AIR, shape: tuple[int, int], settings: dict[str, Any], targets: Targets | None) -> None:
        users, items = model.interactions_.user_ids, model.interactions_.item_ids
        solvers = model.row_solver("user"), model.row_solver("item")
        assert isinstance(solvers[0], LeastSquaresRows)  # those of AIR's objective
        assert isinstance(solvers[1], LeastSquaresRows)
        item_factors = with_zero_rows(model.item_factors_, items, shape[1])
        learned = {
            "user_factors": with_zero_rows(model.user_factors_, users, shape[0]),
            "item_factors": item_factors if targets is None else _times(item_factors, targets.item_powers),
            "user_graph_": widened(model.user_graph_, shape[0]),
            "item_graph_": widened(model.item_graph_, shape[1]),
            "_user_penalty": solvers[0].penalty,
            "_item_penalty": solvers[1].penalty,
            "settings_": settings,
            "_targets": targets,
        }
        with lock_of(self):
            vars(self).update(learned)  # in one step: other threads read all of it or nothing
        self._check_fit_errors()

    def _once(self, name: str, sources: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return what `make` computes from the sources, kept for as long as they are the same objects."""
        kept = self._kept.get(name)
        if kept is None or any(old is not new for old, new in zip(kept[0], sources, strict=True)):
            kept = self._kept[name] = sources, make()
        return kept[1]

    @property
    def user_norms(self) -> np.ndarray:
        """Lengths of the users' factors, never 0, shape (n_users,)."""
        factors = self.user_factors
        return self._once("user norms", (factors,), lambda: norms_of(factors))

    @property
    def item_norms(self) -> np.ndarray:
        """Lengths of the items' factors, never 0, shape (n_items,)."""
        factors = self.item_factors
        return self._once("item norms", (factors,), lambda: norms_of(factors))

    # ---------------------------------------------------------------- recommendations and similarities

    def recommend(
        self,
        userid: Any,
        user_items: Any,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: Any = None,
        recalculate_user: bool = False,
        items: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Recommend as every model of implicit does; see ``implicit.als.AlternatingLeastSquares.recommend``.

        Lists have at most as many items as the model. Scores that differ by rounding alone tie, see
        `air_recsys.models.ranking.ties`; the item with the lower id comes first. With `recalculate_user` the factors
        are solved for from `user_items`, and only the number of `userid` counts.

        Raises
        ------
        IndexError
            For ids that are not in the model, negative ones included.
        ValueError
            Where `user_items` is not a csr_matrix, or has not one row for each user, or has too many columns.
        NotFittedError
            Before `fit`.
        """
        model = copy.copy(self)  # what is learned at this moment, whatever another thread writes
        n_users, n_items = model._sizes()
        n_queried = 1 if np.isscalar(userid) else len(userid)
        if not recalculate_user:
            check_ids("userid", userid, n_users)
        if filter_items is not None:
            check_ids("filter_items", filter_items, n_items)
        if sp.issparse(user_items):
            check_width(checked_sparse("user_items", user_items), n_items, "items")
        if items is not None:
            check_ids("items", items, n_items)
            _check_either(items, filter_items)
        reads = filter_already_liked_items or recalculate_user
        if reads and not isinstance(user_items, sp.csr_matrix):
            raise ValueError("user_items needs to be a CSR sparse matrix")
        if reads and shape_of(user_items)[0] != n_queried:
            raise ValueError("user_items must contain 1 row for every user in userids")
        factors = model._user_factor(userid, user_items, recalculate_user)
        ids, scores = recommended(
            np.atleast_2d(factors),
            model.item_factors,
            list_length(N, items, n_items),
            user_items if filter_already_liked_items else None,
            filter_items,
            items,
            self.num_threads,
        )
        return (ids[0], scores[0]) if np.isscalar(userid) else (ids, scores)

    def similar_users(
        self, userid: Any, N: int = 10, filter_users: Any = None, users: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the users with the most alike factors (cosine), the user itself first; ids and scores.

        `user_graph_` holds the learned neighbours.
        """
        model = copy.copy(self)
        n_users, _ = model._sizes()
        check_ids("userid", userid, n_users)
        if filter_users is not None:
            check_ids("filter_users", filter_users, n_users)
        units = model._once("unit users", (model.user_factors,), lambda: unit_rows(model.user_factors))
        return model._alike(units, userid, None, list_length(N, users, n_users), filter_users, users)

    def similar_items(
        self,
        itemid: Any,
        N: int = 10,
        recalculate_item: bool = False,
        item_users: Any = None,
        filter_items: Any = None,
        items: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the items with the most alike factors (cosine), the item itself first; ids and scores.

        `item_graph_` holds the learned neighbours. With `recalculate_item` the factors are solved for from
        `item_users`, one row for each item.
        """
        model = copy.copy(self)
        _, n_items = model._sizes()
        if not recalculate_item:
            check_ids("itemid", itemid, n_items)
        if filter_items is not None:
            check_ids("filter_items", filter_items, n_items)
        units = model._once("unit items", (model.item_factors,), lambda: unit_rows(model.item_factors))
        solved = model.recalculate_item(itemid, item_users) if recalculate_item else None
        return model._alike(units, itemid, solved, list_length(N, items, n_items), filter_items, items)

    def _alike(
        self, units: np.ndarray, ids: Any, solved: np.ndarray | None, n: int, filtered: Any, chosen: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows most alike to those of some ids, or to other factors that were solved for."""
        if chosen is not None:
            check_ids("the ids to choose from", chosen, len(units))
            _check_either(chosen, filtered)
        own = np.atleast_1d(np.asarray(ids)) if solved is None else None
        queries = units[own] if solved is None else np.atleast_2d(unit_rows(solved))
        found, scores = alike(queries, units, n, own, filtered, chosen, self.num_threads)
        scores = scores.astype(self.item_factors.dtype)
        return (found[0], scores[0]) if np.isscalar(ids) else (found, scores)

    # ---------------------------------------------------------------- new rows

    def recalculate_user(self, userid: Any, user_items: Any) -> np.ndarray:
        """Return the factors of users from their likes alone, storing nothing.

        They are the objective's minimum in those rows with all else fixed: the item graph counts, and no user has
        neighbours in the user graph.

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
        """Return the factors of items from the users that like them; see `recalculate_user`."""
        return self._recalculate("item", itemid, item_users)

    def _recalculate(self, side: str, ids: Any, rows: Any) -> np.ndarray:
        model = copy.copy(self)
        solver = model._solver(side)
        confidences = model._confidences(rows)
        n_rows, expected = shape_of(confidences)[0], 1 if np.isscalar(ids) else len(ids)
        if n_rows != expected:
            raise ValueError(f"expected one row for each {side}, {expected}, found {n_rows}")
        check_width(confidences, len(solver.others), f"{'item' if side == 'user' else 'user'}s")
        wanted = with_values(confidences, _targets_of(model._targets, side, confidences))
        factors = solver.solve(wanted, weights=confidences.data).factors
        if side == "item" and model._targets is not None:
            factors = _times(factors, powers_of(confidences))
        return factors[0] if np.isscalar(ids) else factors

    def _confidences(self, rows: Any) -> sp.csr_matrix:
        assert self.settings_ is not None  # of a fitted model
        return as_confidences(rows, self.settings_["alpha"])

    def _solver(self, side: str) -> LeastSquaresRows:
        self._sizes()
        others, penalty, targets = self.item_factors, self._user_penalty, self._targets
        if side == "item":
            others, penalty = self.user_factors, self._item_penalty
        assert penalty is not None

        def make() -> LeastSquaresRows:
            trained = others if side == "item" or targets is None else _times(others, 1 / targets.item_powers)
            return LeastSquaresRows(trained, np.zeros(len(trained)), penalty, unobserved_weight=1.0)

        return self._once(f"solver of a {side}", (others, penalty, targets), make)

    def partial_fit_users(self, userids: Any, user_items: Any) -> None:
        """Set the factors of users of the model, and of new ones, to those of `recalculate_user`.

        An id beyond the last adds all users up to it, with zero factors.
        """
        check_ids("userids", userids)
        self._partial_fit("user", userids, user_items)

    def partial_fit_items(self, itemids: Any, item_users: Any) -> None:
        """Set the factors of items to those of `recalculate_item`; see `partial_fit_users`."""
        check_ids("itemids", itemids)
        self._partial_fit("item", itemids, item_users)

    def _partial_fit(self, side: str, ids: Any, rows: Any) -> None:
        with lock_of(self):
            solved = self._recalculate(side, ids, rows)
            changed: dict[str, Any] = {f"{side}_factors": replaced(getattr(self, f"{side}_factors"), ids, solved)}
            if self._targets is not None:
                changed["_targets"] = self._targets.with_rows(side, ids, self._confidences(rows))
            vars(self).update(changed)  # in one step, as in `_keep`

    def explain(
        self, userid: int, user_items: Any, itemid: int, user_weights: np.ndarray | None = None, N: int = 10
    ) -> tuple[float, list[tuple[int, float]], np.ndarray]:
        r"""Return the contributions of a user's likes to the score of an item.

        The factors of `recalculate_user` are linear in the likes, :math:`x = M^{-1} \sum_j c_j t_j y_j` with the
        targets t and the item graph's energy in M, so the score is a sum over the likes:

        .. math:: x \cdot y_i = \sum_j c_j t_j\, y_i^\top M^{-1} y_j

        With the targets of the defaults, the score is :math:`d_i^{0.1}` times that.

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
        likes = model._confidences(user_items[[userid]])
        check_width(likes, n_items, "items")
        if user_weights is None:
            wanted = _targets_of(model._targets, "user", likes)
            user_weights = model._solver("user").contributions(likes.indices, wanted, likes.data)
        if user_weights.shape != (likes.nnz, model.item_factors.shape[1]):
            raise ValueError(f"user_weights are not of this user: {likes.nnz} likes, found shape {user_weights.shape}")
        contributions = user_weights @ model.item_factors[itemid]
        best = np.argsort(-contributions, kind="stable")[: check_integer("N", N, minimum=1)]
        top = [(int(likes.indices[like]), float(contributions[like])) for like in best]
        return float(contributions.sum()), top, user_weights

    # ---------------------------------------------------------------- files

    def save(self, file: Any) -> None:
        """Write the model in NumPy's ``.npz``, graphs included; a file of that name is replaced in one step.

        Parameters
        ----------
        file : str, Path or binary file
            ".npz" is added to a name that lacks it.
        """
        model = copy.copy(self)
        parameters = {name: getattr(model, name) for name in inspect.signature(type(self)).parameters}
        penalties, graphs = (model._user_penalty, model._item_penalty), (model.user_graph_, model.item_graph_)
        trained = model.user_factors, model.item_factors
        learned = implicit_files.Learned(*trained, *penalties, *graphs, model.settings_, model._targets)
        implicit_files.write(file, parameters, learned)

    @classmethod
    def load(cls, fileobj_or_path: Any) -> Self:
        """Read a model that `save` wrote; no code in the file is run.

        Raises
        ------
        ModelFileError
            Where the file is not such a model.
        """

        def restored(parameters: dict[str, Any], learned: implicit_files.Learned) -> Self:
            model = cls(**parameters)
            model._check_parameters()
            model.user_factors, model.item_factors = learned.user_factors, learned.item_factors
            model._user_penalty, model._item_penalty = learned.user_penalty, learned.item_penalty
            model.user_graph_, model.item_graph_ = learned.user_graph, learned.item_graph
            model.settings_, model._targets = learned.settings, learned.targets
            return model

        return implicit_files.read(fileobj_or_path, restored)

    # ---------------------------------------------------------------- checks

    def _sizes(self) -> tuple[int, int]:
        """Return the numbers of users and items, or raise `NotFittedError`."""
        if self.user_factors is None or self.item_factors is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return len(self.user_factors), len(self.item_factors)

    def _check_parameters(self) -> None:
        check_settings({name: getattr(self, name) for name in CHOSEN}, auto=True)
        for name in ("iterations", "steps_per_iteration"):
            check_integer(name, getattr(self, name), minimum=1)
        for name in ("user_graph_reg", "item_graph_reg"):
            check_real(name, getattr(self, name))
        check_integer("num_threads", self.num_threads)
        check_choice("dtype", self.dtype.name, ("float32", "float64"))
        check_choice("use_gpu", self.use_gpu, (None, False, True))
        if self.use_gpu is not None and self.device != "auto":
            raise ParameterError(f"give use_gpu or device, found use_gpu={self.use_gpu} and device={self.device!r}")


def _targets_of(targets: Targets | None, side: str, rows: sp.csr_matrix) -> np.ndarray:
    return np.ones(rows.nnz) if targets is None else targets.of(side, rows)


def _times(factors: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return (factors * scales).astype(factors.dtype)


def _check_either(chosen: Any, filtered: Any) -> None:
    if filtered is not None and len(filtered):
        raise ValueError("give the candidates or what to filter out of all, not both")
