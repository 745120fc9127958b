"""The largest singular values of the completed matrix through training, which show how its rank forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from air_recsys.exceptions import DataError
from air_recsys.models import AIR
from air_recsys.report.plots.axes import figure_and_axes, finish, logarithmic
from air_recsys.storage.validation import check_integer, import_extra
from air_recsys.training import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN = 10


def product_singular_values(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the singular values of U V^T, largest first, shape (min(m, n, r),); no array is m x n.

    They are those of the product of both triangles from thin QR of the factors `left` (m, r) and `right` (n, r).

    Examples
    --------
    >>> product_singular_values(np.eye(3, 2), np.diag([4.0, 2.0])).round(6)
    array([4., 2.])
    """
    upper = [np.linalg.qr(factor.astype(np.float64)).R for factor in (left, right)]  # (min(m, r), r), (min(n, r), r)
    return np.linalg.svd(upper[0] @ upper[1].T, compute_uv=False)


class SingularValues:
    """A callback of `AIR.fit` that keeps the singular values of U V^T, in the unit of the ratings.

    Biases and mean are no part of the product. A record costs O((m + n) r^2), at full width as much as some epochs.

    Parameters
    ----------
    model : AIR
        The model that is about to be fitted.
    every : int
        Records between two that are kept; records come every `evaluate_every` epochs.

    Attributes
    ----------
    epochs : list of int
    values : list of ndarray

    Examples
    --------
    >>> model = AIR.for_completion(n_epochs=100, evaluate_every=50, device="cpu", random_state=0)
    >>> watch = SingularValues(model)
    >>> _ = model.fit(np.eye(4), callbacks=[watch])
    >>> watch.to_frame().shape  # epochs 0, 50 and 100, four singular values
    (3, 4)
    """

    def __init__(self, model: AIR, every: int = 1) -> None:
        self.model = model
        self.every = check_integer("every", every, minimum=1)
        self.epochs: list[int] = []
        self.values: list[np.ndarray] = []
        self._seen = 0

    def __call__(self, record: Record) -> None:
        """Keep the singular values of the current factors."""
        if record.epoch == 0:  # a second fit begins anew
            self.epochs, self.values, self._seen = [], [], 0
        if self._seen % self.every == 0:
            factors = self.model.current_factors()
            self.epochs.append(record.epoch)
            self.values.append(product_singular_values(factors.user_factors, factors.item_factors))
        self._seen += 1

    def to_frame(self) -> pd.DataFrame:
        """Return one row a record, indexed by epoch, and one column a singular value, 1 being the largest."""
        index = pd.Index(self.epochs, name="epoch")
        columns = range(1, len(self.values[0]) + 1) if self.values else range(0)
        return pd.DataFrame(np.array(self.values).reshape(len(index), len(columns)), index=index, columns=columns)


def plot_singular_values(
    recorded: SingularValues | pd.DataFrame, n_values: int = _SHOWN, ax: Axes | None = None
) -> Figure:
    """Draw the largest singular values over the epochs on a logarithmic axis.

    Parameters
    ----------
    recorded : SingularValues or DataFrame
        A callback that has seen a training, or its `to_frame()`.
    n_values : int
        How many of the largest to draw.
    ax : Axes, optional

    Raises
    ------
    DataError
        If nothing was recorded.

    Examples
    --------
    >>> frame = pd.DataFrame({1: [3.0, 4.0], 2: [1.0, 0.1]}, index=[0, 50])
    >>> [line.get_ydata().tolist() for line in plot_singular_values(frame).axes[0].lines]
    [[3.0, 4.0], [1.0, 0.1]]
    """
    check_integer("n_values", n_values, minimum=1)
    frame = recorded.to_frame() if isinstance(recorded, SingularValues) else recorded
    if frame.empty:
        raise DataError("expected singular values of at least one epoch, found none: was the callback given to fit?")
    shown = frame.iloc[:, :n_values]
    figure, axes = figure_and_axes(ax)
    colors = import_extra("matplotlib", "viz").colormaps["viridis"](np.linspace(0.3, 0.8, shown.shape[1]))
    for number, (color, name) in enumerate(zip(colors, shown.columns, strict=True), start=1):
        values = shown[name].where(shown[name] > 0)
        label = f"{number}" if number in (1, shown.shape[1]) else None
        axes.plot(shown.index, values, color=color, marker="o" if len(shown) == 1 else None, label=label)
    logarithmic(axes, "y")
    legend = {"title": "rank", "title_fontsize": "small"}
    finish(axes, f"Largest {shown.shape[1]} singular values", "epoch", "singular value", **legend)
    return figure
