"""The preset on ratings that are made anew and very sparse."""

import numpy as np

from air_recsys import AIR, BiasModel
from air_recsys.metrics import rmse
from benchmarks.paper.scarce import scarce_ratings

CPU = {"random_state": 0, "device": "cpu"}


def test_the_preset_is_better_than_damped_biases_where_ratings_are_very_sparse():
    gains = []
    for seed in (3, 4, 5, 6):
        shown, asked = scarce_ratings(seed)
        scores = [
            model.fit(shown).predict(asked.user_index, asked.item_index).clip(1, 100)
            for model in (AIR.for_ratings(**CPU), BiasModel())
        ]
        gains.append(1 - rmse(asked.ratings, scores[0]) / rmse(asked.ratings, scores[1]))
    assert np.mean(gains) > 0.002
