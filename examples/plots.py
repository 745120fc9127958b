"""What has the model learned, and how did it get there? The pictures of the library, on generated data.

    python examples/plots.py [FOLDER]

Without a folder the pictures go to a temporary one. The data are ratings of hidden groups of users and items
(like Syn-Netflix); 70 % of them are hidden.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from air_recsys import AIR, Interactions
from air_recsys.datasets import make_syn_netflix
from air_recsys.report.plots import (
    SingularValues,
    plot_adjacency,
    plot_counts,
    plot_degrees,
    plot_predictions,
    plot_ratings,
    plot_singular_values,
    plot_snapshots,
    plot_training,
    plot_vanishing,
    plot_weights,
)
from air_recsys.solvers import Adam

SNAPSHOTS = (200, 500, 1000, 1500)


def main(folder: Path) -> None:
    made = make_syn_netflix(60, 80, 6, 5, random_state=0)
    ratings = made.matrix / 5
    rng = np.random.default_rng(0)
    part = rng.random(ratings.shape)
    train = Interactions.from_dense(np.where(part < 0.3, ratings, np.nan))
    watched = Interactions.from_dense(np.where((part >= 0.3) & (part < 0.33), ratings, np.nan))

    solver = Adam(user_graph_reg=1e-5, item_graph_reg=1e-5, learning_rate=3e-3, n_epochs=2000, schedule="cooldown")
    model = AIR(solver=solver, snapshot_epochs=SNAPSHOTS, random_state=0, device="cpu")
    values = SingularValues(model, every=2)
    model.fit(train, validation=watched, callbacks=[values])
    print(f"Trained on {model.interactions_}, kept epoch {model.n_iter_}.")

    hidden = part >= 0.33
    users, items = np.nonzero(hidden)
    figures = {
        "ratings": plot_ratings(train),
        "counts": plot_counts(train, "user"),
        "training": plot_training(model),
        "vanishing": plot_vanishing(model),
        "singular_values": plot_singular_values(values),
        "snapshots": plot_snapshots(model),
        "user_graph": plot_adjacency(model.user_graph_),
        "degrees": plot_degrees(model.user_graph_),
        "weights": plot_weights(model.user_graph_),
        "predictions": plot_predictions(ratings[hidden], model.predict(users, items)),
    }
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=110)
        print(f"{name}: {', '.join(axes.get_title() for axes in figure.axes if axes.get_title())}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
