"""`PatchAIR`: AIR on the matrix of all patches of a picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.air import AIR
from air_recsys.models.pictures.completed import CompletedMatrix, Completion, check_patch
from air_recsys.models.solvers import Adam
from air_recsys.models.statistics import TrainingStatistics
from air_recsys.nn.terms import blocks
from air_recsys.storage.validation import RandomState, integer, real


@dataclass(eq=False, repr=False)
class PatchAIR(CompletedMatrix):
    r"""Complete a picture by AIR on its overlapping patches: the block similarity of the paper, taken literally.

    The transformation T cuts a picture into overlapping patches of s x s pixels, one a row of T(X). `AIR` completes
    that matrix Z (n_patches x s^2) at factor width, its sparse row graph tying patches that look alike, wherever they
    stand in the picture; a pixel becomes the mean over the patches that hold it, :math:`X = (T^\top T)^{-1} T^\top Z`.
    Rows and columns are pixels, so their order matters.

    Parameters
    ----------
    patch : int
        Side s of the patches in pixels, at most that of the picture.
    stride : int
        Pixels between two patches, at most `patch`.
    graph_reg : float
        Strength of the Dirichlet energy of the patches against the sum of squared errors over the entries of T(X).
    n_factors, graph_neighbors, graph_refresh, n_epochs, learning_rate, weight_decay
        Of the `AIR` that completes T(X); its start is N(0, 0.1^2), its schedule the cosine, and it has biases.
    dtype, device, random_state, verbose
        As in `AIR`.

    Attributes
    ----------
    transform_graphs_ : list of SimilarityGraph
        One graph: which patches look alike, learned; patches are numbered row by row.
    history_ : DataFrame
        The course of training on T(X).

    Source: the transformations T_i of Li, Sun, Wang, Wang, SIAM J. Imaging Sciences 15(4), 2022.

    Examples
    --------
    >>> picture = 0.5 + np.sin(np.arange(24.0))[:, None] * np.cos(np.arange(20.0) / 2) / 2
    >>> hidden = np.random.default_rng(0).random(picture.shape) < 0.3
    >>> model = PatchAIR(patch=6, n_factors=8, random_state=0, device="cpu").fit(np.where(hidden, np.nan, picture))
    >>> bool(np.abs(model.predict(*np.nonzero(hidden)) - picture[hidden]).mean() < 0.02)
    True
    """

    patch: int = integer(8, minimum=1)
    stride: int = integer(2, minimum=1)
    graph_reg: float = real(1.0)
    n_factors: int = 30
    graph_neighbors: int = 10
    graph_refresh: int = 25
    n_epochs: int = 300
    learning_rate: float = 0.02
    weight_decay: float = 0.01
    dtype: str = "float32"
    device: str = "auto"
    random_state: RandomState = None
    verbose: bool = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._air(1)._check_parameters()

    def check(self, data: Interactions) -> None:
        """Raise `ParameterError` where `fit` on these interactions would, before any work."""
        super().check(data)
        check_patch(self.patch, data)
        if self.stride > self.patch:
            raise ParameterError(f"stride must be at most patch, {self.patch}, found {self.stride}")
        self._air(1).check(data)

    def _air(self, n_entries: int) -> AIR:
        solver = Adam(
            depth=2,
            user_graph_reg=self.graph_reg / n_entries,
            item_graph_reg=0.0,
            n_epochs=self.n_epochs,
            learning_rate=self.learning_rate,
            schedule="cosine",
            weight_decay=self.weight_decay,
            bias_decay=self.weight_decay / 10,
            biases=True,
            center=True,
            init_mean=0.0,
            init_std=0.1,
        )
        return AIR(
            n_factors=self.n_factors,
            graph_neighbors=self.graph_neighbors,
            graph_refresh=self.graph_refresh,
            solver=solver,
            dtype=self.dtype,
            device=self.device,
            random_state=self.random_state,
            verbose=self.verbose,
        )

    def _complete(self, ratings: np.ndarray, statistics: TrainingStatistics) -> Completion:
        if np.nanmin(ratings) == np.nanmax(ratings):  # patches of one brightness teach nothing
            return Completion(np.full_like(ratings, np.nanmin(ratings)))
        cut = blocks(self.patch, self.patch, self.stride)
        given = torch.as_tensor(ratings)  # (m, n)
        patches = cut(given).numpy()  # Z, (n_patches, s^2)
        air = self._air(patches.size).fit(Interactions.from_dense(patches))
        completed = air.user_factors_ @ air.item_factors_.T + air.user_biases_[:, None] + air.item_biases_
        completed = torch.as_tensor(completed + air.global_mean_, dtype=given.dtype)
        _, put_back, *_ = torch.func.vjp(cut, torch.zeros_like(given))  # T^T
        (total,), (count,) = put_back(completed), put_back(torch.ones_like(completed))
        learned = air.user_adjacency_
        graphs = () if learned is None else (SimilarityGraph(learned, air.interactions_.user_ids, "user"),)
        return Completion((total / count).numpy(), air.history_, graphs)
