"""Random data for the splits, and the laws that all of them obey."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from air_recsys import Interactions

fast = settings(max_examples=60)
seeds = st.integers(0, 2**32 - 1)
fractions = st.floats(0.05, 0.95)


@st.composite
def interactions(draw, min_ratings=1, timestamps=False):
    """Up to 6 x 6 users and items, some of them without ratings, pairs in any order."""
    cells = draw(st.lists(st.integers(0, 35), unique=True, min_size=min_ratings, max_size=30))
    users, items = np.divmod(np.array(cells), 6)
    times = draw(st.lists(st.integers(0, 5), min_size=len(cells), max_size=len(cells))) if timestamps else None
    return Interactions(users, items, np.ones(len(cells)), range(6), range(6), timestamps=times)


def grid(n_users, n_items):
    """All pairs rated."""
    return Interactions.from_dense(np.ones((n_users, n_items)))


def check_parts(data, parts, cover=True):
    """Masks over the ratings, disjoint, none empty, and together everything where `cover`."""
    for part in parts:
        assert part.dtype == bool
        assert part.shape == (data.n_ratings,)
        assert part.any()
    counts = np.sum(parts, axis=0)
    assert counts.max() == 1
    assert not cover or counts.min() == 1


def counts_per_user(data, mask):
    return np.bincount(data.user_index[mask], minlength=data.n_users)
