"""Rows of pictures: the truth, what the systems observed, and what each of them completed."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.report.plots.axes import new_grid
from air_recsys.report.plots.panels import Panel, bare, check_panels, in_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HIDDEN = (0.835, 0.369, 0.0)  # a colour, since white and black are grey values of pictures
_ERRORS = {"nmae": "NMAE {:.4f}", "psnr": "PSNR {:.1f} dB"}


def plot_pictures(panels: list[Panel]) -> Figure:
    r"""Draw one row a panel: the truth, what was observed of it, and what every system completed, errors below.

    Hidden pixels of the observed picture are orange. Completed pictures show observed pixels as given and the others
    cut to [0, 1]; a system that is absent in a panel leaves its cell empty, panels without pictures are left out.

    Parameters
    ----------
    panels : list of Panel
        With `truth`, and "completed" and "shown" in `arrays`.

    Raises
    ------
    DataError
        For no panels, no pictures, or pictures of another shape than the truth.

    Examples
    --------
    >>> truth = np.eye(4)
    >>> arrays = {"AIR": {"completed": truth, "shown": truth > 0}}
    >>> figure = plot_pictures([Panel("Eye", {}, arrays, {"AIR": {"nmae": 0.0, "psnr": 40.0}}, truth=truth)])
    >>> [axes.get_title() for axes in figure.axes], figure.axes[2].get_xlabel()
    (['truth', 'observed', 'AIR'], 'NMAE 0.0000\nPSNR 40.0 dB')
    """
    check_panels(panels)
    drawn = [(panel, systems) for panel in panels if panel.truth is not None and (systems := _completed(panel))]
    if not drawn:
        raise DataError("expected panels with a truth and completed pictures, found none")
    systems = in_order(names for _, names in drawn)
    figure, grid = new_grid(len(drawn), 2 + len(systems), (1.45, 1.95))
    for axes, title in zip(grid[0], ("truth", "observed", *systems), strict=True):
        axes.set_title(textwrap.fill(title, 15), fontsize="medium")
    for axes, (panel, names) in zip(grid, drawn, strict=True):
        _draw_row(axes, panel, [name if name in names else None for name in systems])
    return figure


def _completed(panel: Panel) -> list[str]:
    """Return the names of the systems with a completed picture; every picture has the shape of the truth."""
    systems = [name for name, arrays in panel.arrays.items() if "completed" in arrays]
    assert panel.truth is not None
    expected = panel.truth.shape
    for name in systems:
        for array in ("completed", "shown"):
            shape = np.shape(panel.arrays[name].get(array, ()))
            if shape != expected:
                raise DataError(f"{panel.title}, {name}: expected {array!r} of shape {expected}, found {shape}")
    return systems


def _draw_row(axes: np.ndarray, panel: Panel, systems: list[str | None]) -> None:
    assert panel.truth is not None
    truth = panel.truth
    for one in axes:
        bare(one)
        one.set_box_aspect(truth.shape[0] / truth.shape[1])
    shown = next(panel.arrays[name]["shown"] for name in systems if name is not None)
    _grey(axes[0], truth)
    axes[0].set_ylabel(textwrap.fill(panel.title, 18))
    axes[1].imshow(np.where(shown[..., None], truth[..., None].clip(0, 1), _HIDDEN))  # (m, n, 3)
    axes[1].set_xlabel(f"{100 - 100 * shown.mean():.3g} % hidden", fontsize="small")
    for one, name in zip(axes[2:], systems, strict=True):
        if name is None:
            continue
        arrays = panel.arrays[name]
        _grey(one, np.where(arrays["shown"], truth, arrays["completed"].clip(0, 1)))
        numbers = panel.numbers.get(name, {})
        errors = [text.format(numbers[key]) for key, text in _ERRORS.items() if key in numbers]
        one.set_xlabel("\n".join(errors), fontsize="small")


def _grey(axes: Axes, values: np.ndarray) -> None:
    axes.imshow(values, cmap="gray", vmin=0, vmax=1)
