"""Titles of the paper's figures by their names on the command line."""

FIGURE_TITLES = {
    "fig-depth": "Error over training at depth 2, 3, 4",
    "fig-heatmaps": "The learned graphs through training",
    "fig-fixed-laplacian": "AIR against graphs that are taken at one step of AIR and stay",
    "fig-trajectories": "The two energies through training",
    "fig-training-nmae": "NMAE through training",
    "fig-inpainting": "The completed pictures",
    "fig-depth-width": "NMAE by depth and width",
}
