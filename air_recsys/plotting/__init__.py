"""Figures (needs the extra ``viz``); every function returns a figure and works without a display."""

from air_recsys.plotting.completion import plot_completion

__all__ = ["plot_completion"]
