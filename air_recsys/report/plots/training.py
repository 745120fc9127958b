"""The course of training: fit or noise, energies and validation error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from air_recsys.exceptions import DataError
from air_recsys.models import AIR, Recommender
from air_recsys.report.plots.axes import (
    BLUE,
    COLOR_OF,
    GREEN,
    figure_and_axes,
    finish,
    has_swept,
    history_of,
    logarithmic,
    mark_kept,
    positive_line,
    side_by_side,
)
from air_recsys.report.plots.theme import INKS
from air_recsys.storage.validation import check_integer, import_extra
from air_recsys.training import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Source = Recommender | pd.DataFrame
    Styles = dict[str, tuple[str, str, str]]  # column to label, colour and line style

_FIT: Styles = {"objective": ("objective F", INKS["auto"], "--"), "fit": ("fit", BLUE, "-")}
_NOISE: Styles = {"noise": ("noise", BLUE, "-")}
_ENERGIES: Styles = {
    "user_energy": ("user graph", COLOR_OF["user"], "-"),
    "item_energy": ("item graph", COLOR_OF["item"], "--"),
}
_VALIDATION: Styles = {"validation_rmse": ("validation", GREEN, "-")}


def plot_fit(source: Recommender | pd.DataFrame, ax: Axes | None = None) -> Figure:
    r"""Draw the data term :math:`|P_\Omega(X - Y)|^2 / (mn)` and the whole objective over the epochs.

    Both are in units of squared ratings after the model's scaling; the axis is logarithmic.

    Parameters
    ----------
    source : Recommender or DataFrame
        A fitted model, or its `history_`.
    ax : Axes, optional

    Raises
    ------
    NotFittedError
        For a model that is not fitted.
    DataError
        Without a course of training, and where it lacks what is drawn.
    """
    return _draw(source, ax, _FIT, "Fit to the ratings", "mean over all pairs")[0]


def plot_noise(source: Recommender | pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Draw the noise of a posterior over its sweeps: the standard deviation that users and items have in common.

    It is in the unit of the ratings: what ratings vary beside the scores. Parameters and errors are those of
    `plot_fit`; only a posterior has a noise.
    """
    return _draw(source, ax, _NOISE, "Noise", "standard deviation of a rating")[0]


def plot_energy(source: Recommender | pd.DataFrame, ax: Axes | None = None) -> Figure:
    r"""Draw the Dirichlet energies :math:`\mathrm{tr}(X^\top L X)` of both graphs over the epochs.

    Energies are drawn without their strengths in the objective; the axis is logarithmic and leaves out what is below
    half of the lowest value after the first record, since factors that start near 0 have almost no energy. A graph
    that is left out has none. Parameters and errors are those of `plot_fit`.
    """
    figure, axes = _draw(source, ax, _ENERGIES, "Energy of the learned graphs", "Dirichlet energy")
    later = [line[1][1:] for name in _ENERGIES if (line := positive_line(history_of(source), name))]
    if any(np.isfinite(values).any() for values in later):
        axes.set_ylim(bottom=0.5 * np.nanmin(np.concatenate(later)))
    return figure


def plot_validation(source: Recommender | pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Draw the error on the validation part over the epochs, in the unit of the ratings, and the lowest one.

    Parameters and errors are those of `plot_fit`.
    """
    figure, axes = _draw(source, ax, _VALIDATION, "Validation error", "RMSE (unit of the ratings)")
    history = history_of(source)
    best = history.iloc[int(history["validation_rmse"].argmin())]  # the first of equals is the one that is kept
    lowest = float(best["validation_rmse"])
    axes.plot([float(best["epoch"])], [lowest], "o", color=GREEN, label=f"lowest: {lowest:.4g}")
    axes.legend(frameon=False, fontsize="small")
    return figure


def plot_training(source: Recommender | pd.DataFrame) -> Figure:
    """Draw the whole course of training side by side: fit (noise of a posterior), energies, validation error.

    Parameters and errors are those of `plot_fit`.

    Examples
    --------
    >>> history = pd.DataFrame({"epoch": [0, 50], "fit": [0.5, 0.1], "user_energy": [3.0, 1.0]})
    >>> [axes.get_title() for axes in plot_training(history).axes]
    ['Fit to the ratings', 'Energy of the learned graphs']
    """
    history = history_of(source)
    panels = ((_FIT, plot_fit), (_NOISE, plot_noise), (_ENERGIES, plot_energy), (_VALIDATION, plot_validation))
    plots = [plot for columns, plot in panels if any(positive_line(history, name) for name in columns)]
    if not plots:
        raise DataError(f"expected a column such as fit or user_energy, found {list(history.columns)}")
    return side_by_side(source, plots)


def _draw(source: Source, ax: Axes | None, styles: Styles, title: str, quantity: str) -> tuple[Figure, Axes]:
    history = history_of(source)
    lines = {name: line for name in styles if (line := positive_line(history, name)) is not None}
    if not lines:
        raise DataError(f"expected values > 0 of {' or '.join(styles)} in the course of training, found none")
    figure, axes = figure_and_axes(ax)
    for name, line in lines.items():
        label, color, style = styles[name]
        marker = "o" if len(line[0]) == 1 else None  # a line needs two points
        axes.plot(*line, color=color, linestyle=style, marker=marker, label=label)
    logarithmic(axes, "y")
    mark_kept(axes, source)
    finish(axes, title, "sweep" if has_swept(history) else "epoch", quantity)
    return figure, axes


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
    >>> watch.epochs[0], watch.epochs[-1], watch.to_frame().shape[1]
    (0, 100, 4)
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
