"""I have a CSV of ratings: read it, train, recommend, save.

Run: python examples/own_csv.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from air_recsys import AIR, Interactions
from air_recsys.datasets import read_ratings


def write_csv(path: Path) -> None:
    """Write what your file may look like: 40 readers, 30 books, columns with names of their own."""
    rng = np.random.default_rng(0)
    taste = rng.integers(0, 3, 40)  # three kinds of readers
    kind = rng.integers(0, 3, 30)  # and of books
    rows = [
        (
            f"reader {reader}",
            f"book {book}",
            int(np.clip(rng.normal(4.5 if taste[reader] == kind[book] else 2, 0.7), 1, 5)),
        )
        for reader in range(40)
        for book in range(30)
        if rng.random() < 0.4
    ]
    pd.DataFrame(rows, columns=["reader", "book", "stars"]).to_csv(path, index=False)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stars.csv")
        write_csv(path)

        # Either with pandas, where you can clean the table first ...
        table = pd.read_csv(path)
        data = Interactions.from_frame(table, user="reader", item="book", rating="stars")

        # ... or directly: a broken line is told by its number.
        same = read_ratings(path, user="reader", item="book", rating="stars")
        print(same)
        assert same.n_ratings == data.n_ratings

        model = AIR.for_ratings(random_state=0, device="cpu").fit(data)
        print(model.predict(["reader 1", "reader 2"], ["book 3", "book 4"]).round(2))
        print(model.recommend("reader 1", n=3))
        print(model.similar_items("book 3", n=3))

        saved = model.save(Path(folder, "books.air"))
        print(f"saved {saved.stat().st_size / 1024:.0f} KiB; the same on the command line:")
        print("  air-recsys train stars.csv --user-column reader --item-column book --rating-column stars")


if __name__ == "__main__":
    main()
