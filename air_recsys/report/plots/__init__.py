"""Figures (needs the extra ``viz``).

Every function returns a `matplotlib.figure.Figure`, works without a display, and raises `MissingExtraError` without
matplotlib. If `ax` is given it is drawn on; by default there is a new figure, in the theme of `use_theme`.
"""

from air_recsys.report.plots.accuracy import plot_accuracy, plot_enrichment, plot_errors, plot_reliability
from air_recsys.report.plots.graphs import (
    community_table,
    effective_neighbors,
    plot_adjacency,
    plot_degrees,
    plot_weights,
    self_edge_share,
)
from air_recsys.report.plots.ratings import plot_completion, plot_counts, plot_predictions, plot_ratings
from air_recsys.report.plots.snapshots import plot_effective_neighbors, plot_self_edges, plot_snapshots, plot_vanishing
from air_recsys.report.plots.theme import use_theme
from air_recsys.report.plots.training import (
    SingularValues,
    plot_energy,
    plot_fit,
    plot_noise,
    plot_singular_values,
    plot_training,
    plot_validation,
    product_singular_values,
)

__all__ = [
    "SingularValues",
    "community_table",
    "effective_neighbors",
    "plot_accuracy",
    "plot_adjacency",
    "plot_completion",
    "plot_counts",
    "plot_degrees",
    "plot_effective_neighbors",
    "plot_energy",
    "plot_enrichment",
    "plot_errors",
    "plot_fit",
    "plot_noise",
    "plot_predictions",
    "plot_ratings",
    "plot_reliability",
    "plot_self_edges",
    "plot_singular_values",
    "plot_snapshots",
    "plot_training",
    "plot_validation",
    "plot_vanishing",
    "plot_weights",
    "product_singular_values",
    "self_edge_share",
    "use_theme",
]
