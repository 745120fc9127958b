"""Regressions by scikit-learn and SciPy on similarities of both sides, behind `fit` and `predict`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.ensemble import HistGradientBoostingRegressor

from air_recsys.data.interactions import Interactions
from air_recsys.splits import random_holdout

_STRENGTHS = 2.0 ** np.arange(-6, 7, 2)
_STEPS = 200  # of conjugate gradients


class BoostedPairs:
    """scikit-learn's gradient boosting on what SimBoost begins with: how alike drug and target are to all others.

    Beside them stand the mean training affinities of the drug and of the target, those of the nearest ones where they
    have none. Source: He et al., SimBoost, J. Cheminformatics 9, 2017, whose further features are left out.
    """

    def __init__(self, drugs: pd.DataFrame, targets: pd.DataFrame, seed: int = 0) -> None:
        self._alike, self._seed = (drugs, targets), seed

    def fit(self, shown: Interactions) -> Self:
        """Train on affinities."""
        frame = shown.to_frame()
        self._means = [
            self._mean_of(frame, side, alike) for side, alike in zip(("user", "item"), self._alike, strict=True)
        ]
        options: dict[str, Any] = {"early_stopping": True}  # scikit-learn types it as text
        model = HistGradientBoostingRegressor(max_iter=1000, random_state=self._seed, **options)
        self._model = model.fit(self._features(frame["user"], frame["item"]), frame["rating"])
        return self

    def _mean_of(self, frame: pd.DataFrame, side: str, alike: pd.DataFrame) -> np.ndarray:
        sums = pd.DataFrame(frame.groupby(side)["rating"].mean())
        places, known = alike.index.get_indexer(sums.index), alike.to_numpy(np.float64)
        means = np.full(len(alike), np.nan)
        means[places] = sums["rating"].to_numpy()
        nearest = places[known[:, places].argmax(axis=1)]
        return np.where(np.isnan(means), means[nearest], means)

    def _features(self, drugs: Any, targets: Any) -> np.ndarray:
        parts = []
        for ids, alike, means in zip((drugs, targets), self._alike, self._means, strict=True):
            places = alike.index.get_indexer(pd.Index(ids))
            parts += [alike.to_numpy(np.float32)[places], means[places, None]]
        return np.concatenate(parts, axis=1)

    def predict(self, drugs: Any, targets: Any) -> np.ndarray:
        """The predicted affinities of pairs."""
        return self._model.predict(self._features(drugs, targets))


class KronRLS:
    r"""Kernel ridge regression on pairs, with the product of both similarities as kernel.

    :math:`(P (K_d \otimes K_t) P^\top + \lambda) a = y - \bar y` for the known pairs P, by conjugate gradients;
    :math:`\lambda` has the least error on a hidden tenth. Similarities become positive definite by their largest
    negative eigenvalue on the diagonal. Source: Pahikkala et al., Briefings in Bioinformatics 16, 2015.
    """

    def __init__(self, drugs: pd.DataFrame, targets: pd.DataFrame) -> None:
        self._alike = drugs, targets
        self._kernels = [_definite(each.to_numpy(np.float64)) for each in self._alike]

    def fit(self, shown: Interactions) -> Self:
        """Train on affinities."""
        split = random_holdout(shown, 0.1, random_state=0)
        part, hidden = shown.select(split.train), shown.select(split.test)
        pairs = hidden.user_ids[hidden.user_index], hidden.item_ids[hidden.item_index]
        errors = [
            float(np.square(self._solved(part, penalty).predict(*pairs) - hidden.ratings).mean())
            for penalty in _STRENGTHS
        ]
        return self._solved(shown, float(_STRENGTHS[int(np.argmin(errors))]))

    def _solved(self, shown: Interactions, penalty: float) -> Self:
        rows, columns = self._places(shown.user_ids[shown.user_index], shown.item_ids[shown.item_index])
        shape = tuple(len(kernel) for kernel in self._kernels)
        self._mean = float(shown.ratings.mean())

        def product(a: np.ndarray) -> np.ndarray:
            return self._spread(rows, columns, a.ravel(), shape)[rows, columns] + penalty * a.ravel()

        operator: Any = LinearOperator((rows.size, rows.size), matvec=product, dtype=np.float64)  # pyright: ignore
        weights, _ = cg(operator, shown.ratings - self._mean, maxiter=_STEPS, rtol=1e-4)
        self._scores = self._spread(rows, columns, weights, shape)
        return self

    def _spread(self, rows: np.ndarray, columns: np.ndarray, a: np.ndarray, shape: Any) -> np.ndarray:
        grid = np.zeros(shape)
        grid[rows, columns] = a
        return self._kernels[0] @ grid @ self._kernels[1]

    def _places(self, drugs: Any, targets: Any) -> tuple[np.ndarray, np.ndarray]:
        found = [
            alike.index.get_indexer(pd.Index(ids)) for alike, ids in zip(self._alike, (drugs, targets), strict=True)
        ]
        return found[0], found[1]

    def predict(self, drugs: Any, targets: Any) -> np.ndarray:
        """The predicted affinities of pairs."""
        return self._scores[self._places(drugs, targets)] + self._mean


def _definite(kernel: np.ndarray) -> np.ndarray:
    return kernel + max(0.0, -float(np.linalg.eigvalsh(kernel)[0])) * np.eye(len(kernel))
