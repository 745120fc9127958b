"""`PNMC`: gaps of a picture filled from similar patches, as matrices of low rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.lib.stride_tricks import sliding_window_view
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import spsolve

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.air import AIR
from air_recsys.models.baselines import CompletedMatrix, Completion, check_patch
from air_recsys.models.ratings import TrainingStatistics
from air_recsys.models.solvers import Adam
from air_recsys.nn.terms import blocks
from air_recsys.storage.lazy import torch
from air_recsys.storage.validation import RandomState, integer, real

_SWEEPS = 3  # truncations of a group per round; more of them give what more rounds give
_BLOCK = 256  # groups completed at a time, which bounds the memory


@dataclass(eq=False, repr=False)
class PNMC(CompletedMatrix):
    r"""Patch-based nonlocal matrix completion, for pictures: rows and columns are pixels, so their order matters.

    The gaps are first filled smoothly (each missing pixel the mean of its neighbors). Then, in every round, each of
    a grid of patches that have gaps is stacked with the patches of the whole picture that look most like it,

    .. math:: G = [\operatorname{vec} p_1, \ldots, \operatorname{vec} p_k] \in \mathbb{R}^{s^2 \times k},

    the gaps of G are filled by its truncation to low rank, as in `IterativeSVD`, and a pixel becomes the mean of all
    its fillings. The next round finds better companions in the better picture. Given pixels stay as they are.

    Parameters
    ----------
    patch : int
        Side s of the square patches in pixels, at most that of the picture; they stand s // 2 pixels apart. One pixel
        leaves the first filling.
    n_similar : int
        k, the reference itself included; at most all patches of the picture.
    rank : int
        Rank of the completed stacks; below both :math:`s^2` and k, or nothing happens after the first filling.
    n_rounds : int
        Rounds of matching and completion.

    Raises
    ------
    ParameterError
        At `fit`, for a parameter out of its range or a patch larger than the picture.

    Notes
    -----
    Li, Sun, Wang, Wang (SIAM J. Imaging Sciences 15(4), 2022) compare with a PNMC of which neither program nor
    settings could be recovered. This is built from its name alone and need not reach, or stop at, what they print.

    Examples
    --------
    >>> picture = 3 + np.sin(np.arange(24.0))[:, None] * np.cos(np.arange(20.0) / 2)  # the same waves everywhere
    >>> hidden = np.random.default_rng(0).random(picture.shape) < 0.3
    >>> model = PNMC(patch=6, rank=5).fit(np.where(hidden, np.nan, picture))
    >>> bool(np.abs(model.predict(*np.nonzero(hidden)) - picture[hidden]).max() < 1e-4)
    True
    """

    patch: int = integer(8, minimum=1)
    n_similar: int = integer(40, minimum=1)
    rank: int = integer(10, minimum=1)
    n_rounds: int = integer(8, minimum=1)

    def check(self, data: Interactions) -> None:
        """Raise `ParameterError` where `fit` on these interactions would, before any work."""
        super().check(data)
        check_patch(self.patch, data)

    def complete(self, ratings: np.ndarray, statistics: TrainingStatistics) -> Completion:
        """The matrix without gaps."""
        missing = np.isnan(ratings)
        picture = fill_smoothly(ratings)  # (m, n)
        if not missing.any():
            return Completion(picture)
        references = _patches_with_gaps(missing, self.patch)
        for _ in range(self.n_rounds):
            groups = self._similar_patches(picture, references)  # (g, k, s * s)
            picture = np.where(missing, self._average(picture, missing, groups), picture)
        return Completion(picture)

    def _similar_patches(self, picture: np.ndarray, references: np.ndarray) -> np.ndarray:
        """The pixels, as flat positions, of the patches most like each reference: shape (g, k, s * s)."""
        from sklearn.neighbors import NearestNeighbors

        patches = _patches(picture, self.patch)  # (p, s * s)
        search = NearestNeighbors(n_neighbors=min(self.n_similar, len(patches)), algorithm="brute").fit(patches)
        nearest = search.kneighbors(patches[references], return_distance=False)  # (g, k)
        return _patches(np.arange(picture.size).reshape(picture.shape), self.patch)[nearest]

    def _average(self, picture: np.ndarray, missing: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Complete every group and return the mean of all fillings of each pixel, shape (m, n)."""
        totals, counts = np.zeros(picture.size), np.zeros(picture.size)
        for start in range(0, len(groups), _BLOCK):
            pixels = groups[start : start + _BLOCK]  # (b, k, s * s)
            completed = _complete_stacks(picture.ravel()[pixels], missing.ravel()[pixels], self.rank)
            totals += np.bincount(pixels.ravel(), completed.ravel(), picture.size)
            counts += np.bincount(pixels.ravel(), minlength=picture.size)
        # Among many equal patches the search may leave out the reference itself, and so a pixel of it.
        means = np.divide(totals, counts, out=picture.ravel().copy(), where=counts > 0)
        return means.reshape(picture.shape)


def fill_smoothly(ratings: np.ndarray) -> np.ndarray:
    """A picture, NaN where missing, with each missing pixel the mean of its (up to four) neighbors.

    This is the filling of least Dirichlet energy on the grid of pixels; it never leaves the range of what is given.
    """
    from sklearn.feature_extraction.image import grid_to_graph

    missing = np.isnan(ratings).ravel()
    filled = ratings.ravel().copy()
    if missing.any():
        matrix = sp.csr_array(laplacian(grid_to_graph(*ratings.shape).astype(np.float64)))[missing]
        filled[missing] = spsolve(matrix[:, missing].tocsc(), -(matrix[:, ~missing] @ filled[~missing]))
    return filled.reshape(ratings.shape)


def _patches(array: np.ndarray, side: int) -> np.ndarray:
    """Every square of an array (m, n), row by row, shape ((m - side + 1) * (n - side + 1), side * side)."""
    return sliding_window_view(array, (side, side)).reshape(-1, side * side)


def _patches_with_gaps(missing: np.ndarray, side: int) -> np.ndarray:
    """The numbers of patches that together cover all gaps: those of a grid, with the last row and column."""
    counts = [size - side + 1 for size in missing.shape]
    rows, columns = (np.union1d(np.arange(0, count, max(1, side // 2)), [count - 1]) for count in counts)
    numbers = (rows[:, None] * (missing.shape[1] - side + 1) + columns).ravel()
    return numbers[_patches(missing, side)[numbers].any(axis=1)]


def _complete_stacks(stacks: np.ndarray, missing: np.ndarray, rank: int) -> np.ndarray:
    """Fill the gaps of matrices (b, k, s * s) with those of the nearest matrices of a rank, a few times over."""
    filled = stacks
    for _ in range(_SWEEPS):
        # The leading singular vectors are those of the small Gram matrices, which are far cheaper to decompose.
        _, vectors = np.linalg.eigh(filled @ filled.swapaxes(1, 2))  # (b, k, k), ascending
        leading = vectors[:, :, -rank:]  # (b, k, rank)
        filled = np.where(missing, leading @ (leading.swapaxes(1, 2) @ filled), stacks)
    return filled


@dataclass(eq=False, repr=False)
class PatchAIR(CompletedMatrix):
    r"""Complete a picture by AIR on its overlapping patches: the block similarity of the paper, taken literally.

    The transformation T cuts a picture into overlapping patches of s x s pixels, one a row of T(X). `AIR` completes
    that matrix Z (n_patches x s^2) at factor width, its sparse row graph tying similar patches, wherever they
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
        One graph: which patches are similar, learned; patches are numbered row by row.
    history_ : DataFrame
        The records of the training on T(X).

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

    def check_parameters(self) -> None:
        """Raise `ParameterError` for a parameter that is out of its range, whatever the data and the machine."""
        super().check_parameters()
        self._air(1).check_parameters()

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

    def complete(self, ratings: np.ndarray, statistics: TrainingStatistics) -> Completion:
        """The matrix without gaps."""
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
