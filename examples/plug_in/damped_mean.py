"""A model in a package of its own: items by their mean rating, drawn to the mean of all where few rated them."""

import numpy as np

from air_recsys import Interactions
from air_recsys.models import Factors, FittedState, Recommender


class DampedMean(Recommender):
    def __init__(self, damping: float = 5.0) -> None:
        self.damping = damping

    def learn(self, data: Interactions) -> FittedState:
        mean = float(data.ratings.mean())
        sums = np.bincount(data.item_index, data.ratings - mean, data.n_items)
        biases = sums / (np.bincount(data.item_index, minlength=data.n_items) + self.damping)
        no_factors = np.zeros((data.n_users, 0)), np.zeros((data.n_items, 0))
        return FittedState(data, Factors(*no_factors, np.zeros(data.n_users), biases, mean))
