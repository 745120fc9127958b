"""AIR in a Cornac experiment beside MF: which of them rates and ranks better, each tuned by Cornac's grid search?

    python examples/cornac_experiment.py
    python examples/cornac_experiment.py path/to/ml-100k

Without a path the ratings are made: groups of users with a taste for genres, and noise.
Needs the extra "cornac".
"""

import sys
import tempfile
from typing import Any

import numpy as np
from cornac import Experiment
from cornac.eval_methods import RatioSplit
from cornac.hyperopt import Discrete, GridSearch
from cornac.metrics import MAE, NDCG, RMSE, Recall
from cornac.models import MF, BaselineOnly

from air_recsys.adapters.cornac import CornacAIR
from air_recsys.datasets import load_movielens

Triple = tuple[str, str, float]
GENRES = ("comedy", "crime", "drama", "horror", "musical", "western")


def made_ratings(n_users: int = 300, n_items: int = 180, share: float = 0.25) -> list[Triple]:
    """Noisy ratings 1..5: each user belongs to one of eight groups, each group has its taste for each genre."""
    rng = np.random.default_rng(0)
    tastes = rng.uniform(1.5, 4.5, (8, len(GENRES)))
    groups = rng.integers(8, size=n_users)
    users, items = (rng.random((n_users, n_items)) < share).nonzero()
    ratings = tastes[groups[users], items % len(GENRES)] + 0.7 * rng.standard_normal(users.size)
    names = [f"{GENRES[item % len(GENRES)]} {item // len(GENRES)}" for item in range(n_items)]
    rows = zip(users.tolist(), items.tolist(), ratings.round().clip(1, 5).tolist(), strict=True)
    return [(f"user {user}", names[item], rating) for user, item, rating in rows]


def read_ratings(path: str) -> list[Triple]:
    frame = load_movielens(path).to_frame()
    return list(zip(frame["user"].astype(str), frame["item"].astype(str), frame["rating"], strict=True))


def main(path: str | None = None) -> Experiment:
    ratings = made_ratings() if path is None else read_ratings(path)
    split = RatioSplit(ratings, test_size=0.2, val_size=0.1, rating_threshold=4.0, exclude_unknowns=True, seed=0)
    mf = GridSearch(MF(k=20, max_iter=100, seed=0), [Discrete("lambda_reg", [0.02, 0.1, 0.2])], RMSE(), split)
    air = GridSearch(CornacAIR(seed=0), [Discrete("n_factors", [10, 20])], RMSE(), split)
    # Cornac writes the models and a log where it is told to: here, to a folder that goes again.
    with tempfile.TemporaryDirectory() as folder:
        metrics = [RMSE(), MAE(), NDCG(k=10), Recall(k=10)]
        models = [BaselineOnly(seed=0), mf, air]
        experiment = Experiment(split, models, metrics, user_based=False, show_validation=False, save_dir=folder)
        experiment.run()
    print(f"Chosen on the validation part: {mf.best_params} and {air.best_params}")
    best: Any = air.best_model
    item = best.item_ids[0]
    print(f"Most like {item!r} in the graph that AIR learned:")
    print(best.model_.similar_items(item, n=5).to_string(index=False))
    return experiment


if __name__ == "__main__":
    main(*sys.argv[1:2])
