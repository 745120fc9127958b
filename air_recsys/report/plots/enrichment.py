"""Plot of the hit rate at the top of a list of predicted interactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from air_recsys.exceptions import DataError
from air_recsys.report.plots.axes import BLUE, ORANGE, figure_and_axes
from air_recsys.report.plots.theme import ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_enrichment(curve: pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Draw the share of interactions in the top of a list, and the share of all interactions there, by its size.

    Parameters
    ----------
    curve : DataFrame
        Of `air_recsys.dti.enrichment_curve`.
    ax : Axes, optional

    Raises
    ------
    DataError
        For another table.
    MissingExtraError

    Examples
    --------
    >>> from air_recsys.dti import enrichment_curve
    >>> plot_enrichment(enrichment_curve([1, 0, 1, 0], [0.9, 0.5, 0.4, 0.1])).axes[0].get_xlabel()
    'pairs at the top of the list'
    """
    lacking = [name for name in ("n_top", "hit_rate", "found") if name not in curve]
    if lacking:
        raise DataError(f"expected a table of enrichment_curve, found one without {lacking[0]}")
    figure, axes = figure_and_axes(ax)
    for name, marker, color, label in (
        ("hit_rate", "o-", BLUE, "hit rate in the top"),
        ("found", "s-", ORANGE, "share of all found"),
    ):
        axes.plot(curve["n_top"], curve[name], marker, color=color, markersize=4, label=label)
    axes.axhline(curve["hit_rate"].iloc[-1], color=ink(), alpha=0.6, linestyle=":", label="hit rate at random")
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="pairs at the top of the list", ylabel="share")
    axes.legend(frameon=False, fontsize="small")
    return figure
