"""How does AIR compare with SVD on my Surprise dataset?

    python surprise_cross_validation.py              # ratings made here
    python surprise_cross_validation.py ml-100k/u.data

The optional file holds user, item, rating and timestamp, separated by tabs.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from surprise import SVD, Dataset, Reader
from surprise.model_selection import KFold, cross_validate

from air_recsys.adapters.surprise import SurpriseAIR

GENRES = ("comedy", "crime", "drama", "horror", "western")


def made_up_ratings(n_users: int = 300, n_films: int = 100, n_ratings: int = 9000) -> pd.DataFrame:
    """Ratings of users who each like some genres and dislike the others."""
    rng = np.random.default_rng(0)
    likes = rng.choice([-1.0, 1.0], size=(n_users, len(GENRES)))
    films = [f"{GENRES[film % len(GENRES)]} {film // len(GENRES) + 1}" for film in range(n_films)]
    users, rated = np.divmod(rng.permutation(n_users * n_films)[:n_ratings], n_films)
    score = 3.2 + likes[users, rated % len(GENRES)] + rng.normal(0, 0.5, n_ratings)
    return pd.DataFrame({"user": users, "film": [films[film] for film in rated], "rating": score.round().clip(1, 5)})


def main(arguments: list[str] | None = None) -> None:
    given = sys.argv[1:] if arguments is None else arguments
    if given:
        data = Dataset.load_from_file(given[0], Reader("ml-100k"))
    else:
        data = Dataset.load_from_df(made_up_ratings(), Reader(rating_scale=(1, 5)))

    # 1. The same folds for both.
    folds = KFold(n_splits=3, random_state=0)
    print(f"{'':12} {'RMSE':>8} {'MAE':>8} {'fit, s':>8} {'test, s':>8}")
    for algo in (SVD(random_state=0), SurpriseAIR(random_state=0, sim_options={"user_based": False})):
        found = cross_validate(algo, data, measures=["rmse", "mae"], cv=folds)
        row = (np.mean(found[name]) for name in ("test_rmse", "test_mae", "fit_time", "test_time"))
        print(f"{type(algo).__name__:12}", *(f"{value:8.4f}" for value in row))

    # 2. What the learned item graph knows.
    trainset = data.build_full_trainset()
    algo = SurpriseAIR(random_state=0, sim_options={"user_based": False}).fit(trainset)
    most_rated = max(trainset.ir, key=lambda item: len(trainset.ir[item]))
    print(f"\nmost alike to {trainset.to_raw_iid(most_rated)!r}:")
    for item in algo.get_neighbors(most_rated, k=5):
        print(f"  {trainset.to_raw_iid(item)!r}  {algo.sim[most_rated, item]:.4f}")


if __name__ == "__main__":
    main()
