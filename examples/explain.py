"""Why was this film recommended? What the user has rated, in parts that add up to the score.

    python examples/explain.py

The ratings are made: people with a taste for some genres, and noise.
"""

import numpy as np

from air_recsys import AIR, Interactions

GENRES = ("comedy", "crime", "drama", "horror", "musical", "western")


def made_ratings(n_users: int = 400, n_items: int = 150, share: float = 0.3) -> Interactions:
    """Noisy ratings 1..5 of eight groups of users with tastes of their own."""
    rng = np.random.default_rng(0)
    tastes = rng.uniform(1, 5, (8, len(GENRES)))
    users, items = (rng.random((n_users, n_items)) < share).nonzero()
    ratings = tastes[users % 8, items % len(GENRES)] + 0.6 * rng.standard_normal(users.size)
    return Interactions(users, items, ratings.round().clip(1, 5), range(n_users), range(n_items))


def main() -> None:
    model = AIR.for_ratings(random_state=0, device="cpu").fit(made_ratings())
    titles = {item: f"{GENRES[item % len(GENRES)]} {item // len(GENRES)}" for item in range(150)}

    best = model.recommend(9, n=1)["item"].iloc[0]
    found = model.explain(9, best, n=5, labels=titles)
    print(found)

    print(f"\nAll parts together: {found.total():.4f}; the score: {found.score:.4f}.")
    genre = found.items["label"].str.split().str[0]
    print(f"Of the five largest contributions {(genre == GENRES[best % len(GENRES)]).sum()} come from the same genre.")


if __name__ == "__main__":
    main()
