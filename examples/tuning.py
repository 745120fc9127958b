"""Which settings suit my data? A short search on a part of the training data, then one look at the test part.

Run: python examples/tuning.py
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from air_recsys import AIR, Interactions
from air_recsys.datasets import make_syn_netflix
from air_recsys.evaluation.tuning import tune
from air_recsys.metrics import rmse
from air_recsys.splits import random_holdout


def make_ratings() -> pd.DataFrame:
    """Generate noisy ratings of 80 users and 60 items in hidden groups."""
    data, rng = make_syn_netflix(80, 60, 6, 5, random_state=0), np.random.default_rng(0)
    users, items = np.nonzero(data.train_mask | data.test_mask)
    ratings = (data.matrix[users, items] + rng.normal(0, 0.5, users.size)).round().clip(1, 5)
    return pd.DataFrame({"user": users, "item": items, "rating": ratings})


def test_error(model: AIR, train: Interactions, test: Interactions) -> float:
    """Fit on all of the training data and return the error on the test part."""
    model.fit(train)
    held_out = test.to_frame()
    return rmse(held_out["rating"], model.predict(held_out["user"], held_out["item"]))


def main(n_trials: int = 12) -> None:
    data = Interactions.from_frame(make_ratings())
    split = random_holdout(data, 0.2, random_state=0)
    train, test = data.select(split.train), data.select(split.test)  # the search never sees `test`

    # A part of `train` is held out in turn. storage="study.db" would let a later call go on.
    found = tune(train, preset="ratings", n_trials=n_trials, device="cpu")
    print(found.protocol)
    print(found.trials()[["trial", "value", "state", "n_factors", "pattern_features"]].head().round(4))
    print(f"best validation RMSE {found.best_value:.4f} with {found.best_params}")

    preset = AIR.for_ratings(random_state=0, device="cpu")
    print(f"test RMSE of the preset    {test_error(preset, train, test):.4f}")
    print(f"test RMSE of the best trial {test_error(found.model(), train, test):.4f}")


if __name__ == "__main__":
    main()
