"""How do I recommend from a faiss index, here and where only faiss runs?

    python faiss_index.py              # ratings made here
    python faiss_index.py ml-100k/u.data

The optional file holds user, item, rating and timestamp, separated by tabs. Needs the extra "ann".
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import faiss
import numpy as np
import pandas as pd

from air_recsys import AIR

FACTORIES = ("Flat", "IVF32,Flat", "HNSW32")


def made_up_ratings(n_users: int = 500, n_films: int = 2000, n_ratings: int = 40_000) -> pd.DataFrame:
    """Ratings of users and films that agree in six respects."""
    rng = np.random.default_rng(0)
    users, films = np.divmod(rng.permutation(n_users * n_films)[:n_ratings], n_films)
    tastes, traits = rng.normal(size=(n_users, 6)), rng.normal(size=(n_films, 6))
    scores = 3.3 + 0.5 * (tastes[users] * traits[films]).sum(axis=1) + rng.normal(0, 0.3, n_ratings)
    return pd.DataFrame({"user": users, "item": films, "rating": scores.round().clip(1, 5)})


def recall(found: pd.DataFrame, exact: pd.DataFrame) -> float:
    """Share of the exact lists that was found."""
    return len(found.merge(exact, on=["user", "item"])) / len(exact)


def main(arguments: list[str] | None = None) -> None:
    given = sys.argv[1:] if arguments is None else arguments
    columns = ["user", "item", "rating", "timestamp"]
    table = pd.read_csv(given[0], sep="\t", names=columns) if given else made_up_ratings()
    model = AIR.for_ratings(n_factors=16, random_state=0, device="cpu").fit(table)
    everyone = model.interactions_.user_ids
    exact = model.recommend(everyone, n=10, rank_by="rating")

    print("How much of the exact top 10 does an index find?")
    for factory in FACTORIES:
        items = model.to_faiss(factory=factory)
        if factory.startswith("IVF"):
            items.index.nprobe = 8  # of 32 cells
        print(f"  {factory:<12} {recall(items.search(everyone, n=10), exact):.3f}")

    someone = everyone[0]
    print(f"\nThe best items of user {someone}, from an index:")
    print(model.to_faiss(factory="HNSW32").search(someone, n=3).to_string(index=False))

    print("\nThe same where only faiss runs, seen items included (the index has one norm: distances rank as scores):")
    with tempfile.TemporaryDirectory() as folder:
        exported = model.to_faiss(metric="l2")
        index = faiss.read_index(str(exported.save(Path(folder) / "items.faiss")))
    distances, positions = index.search(exported.queries(someone), 3)
    for distance, position in zip(distances[0], positions[0], strict=True):
        print(f"  item {exported.item_ids[position]}, squared distance {distance:.2f}")


if __name__ == "__main__":
    main()
