"""A new visitor has rated three films: what to recommend, without training again?

    python examples/fold_in.py

The ratings are made: people with a taste for some genres, and noise.
"""

import time

import numpy as np
import pandas as pd

from air_recsys import AIR, Interactions

GENRES = ("comedy", "crime", "drama", "horror", "musical", "western")


def made_ratings(n_users: int = 400, n_items: int = 150, share: float = 0.3) -> Interactions:
    """Noisy ratings 1..5 of eight groups of users with tastes of their own."""
    rng = np.random.default_rng(0)
    tastes = rng.uniform(1, 5, (8, len(GENRES)))
    users, items = (rng.random((n_users, n_items)) < share).nonzero()
    ratings = tastes[users % 8, items % len(GENRES)] + 0.6 * rng.standard_normal(users.size)
    names = [f"{GENRES[item % len(GENRES)]} {item // len(GENRES)}" for item in range(n_items)]
    return Interactions(users, items, ratings.round().clip(1, 5), [f"user {user}" for user in range(n_users)], names)


def main() -> None:
    start = time.perf_counter()
    model = AIR.for_ratings(random_state=0, device="cpu").fit(made_ratings())
    print(f"Trained on {model.interactions_} in {time.perf_counter() - start:.1f} s.\n")

    visitor = pd.DataFrame(
        {"user": "visitor", "item": ["western 0", "western 1", "musical 0"], "rating": [5.0, 5.0, 1.0]}
    )
    start = time.perf_counter()
    model.partial_fit(visitor)
    print(f"A visitor who likes westerns, taken in within {1e3 * (time.perf_counter() - start):.0f} ms, gets:")
    print(model.recommend("visitor", n=5)[["item", "score"]].round(2).to_string(index=False))

    more = pd.DataFrame({"user": "visitor", "item": ["horror 0", "horror 1", "horror 2"], "rating": 5.0})
    print("\nAfter three horror films with five stars:")
    print(model.partial_fit(more).recommend("visitor", n=5)[["item", "score"]].round(2).to_string(index=False))

    fans = model.interactions_.user_ids[1:60:8]  # members of one group
    film = pd.DataFrame({"user": fans, "item": "crime 99", "rating": 5.0})
    model.partial_fit(film)
    alike, others = model.predict(["user 9", "user 17"], "crime 99"), model.predict(["user 2", "user 10"], "crime 99")
    print(f"\nA new film with fans in group 1: {alike.mean():.1f} for that group, {others.mean():.1f} for group 2.")

    # The same without a trace in the model, many visitors at once:
    others = pd.concat([visitor.assign(user=f"guest {number}") for number in range(3)])
    lists = model.fold_in(others).recommend([f"guest {number}" for number in range(3)], n=2)
    print(f"\nThe lists of {lists['user'].nunique()} guests; the model is as it was:")
    print(lists[["user", "item", "score"]].round(2).to_string(index=False))


if __name__ == "__main__":
    main()
