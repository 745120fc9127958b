"""The figures of the AIR paper, drawn from panels of what was measured."""

from air_recsys.report.plots.heatmaps import plot_heatmaps
from air_recsys.report.plots.lines import plot_curves, plot_depth_width
from air_recsys.report.plots.panels import Panel
from air_recsys.report.plots.pictures import plot_pictures

__all__ = ["Panel", "plot_curves", "plot_depth_width", "plot_heatmaps", "plot_pictures"]
