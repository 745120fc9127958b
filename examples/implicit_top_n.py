"""Which ten items for every user, and why?

python implicit_top_n.py              # plays of songs made here
python implicit_top_n.py plays.csv    # a CSV with the columns user, item and value (how often, how long, ...)
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from implicit.evaluation import ranking_metrics_at_k
from scipy.sparse import csr_matrix

from air_recsys.adapters.implicit import ImplicitAIR, leave_k_out_split

STYLES = ("blues", "choir", "techno")


def made_up_plays(n_users: int = 240, n_songs: int = 90) -> pd.DataFrame:
    """How often each of three groups of users played songs, mostly of one style."""
    rng = np.random.default_rng(0)
    own = np.arange(n_users)[:, None] % len(STYLES) == np.arange(n_songs) % len(STYLES)
    plays = rng.poisson(np.where(own, 0.8, 0.05))
    users, songs = np.nonzero(plays)
    names = [f"{STYLES[song % len(STYLES)]} {song // len(STYLES) + 1}" for song in range(n_songs)]
    return pd.DataFrame({"user": users, "item": [names[song] for song in songs], "value": plays[users, songs]})


def main(arguments: list[str] | None = None) -> None:
    given = sys.argv[1:] if arguments is None else arguments
    plays = pd.read_csv(given[0]) if given else made_up_plays()

    # 1. What implicit works on: one row a user, one column an item.
    users, user_ids = pd.factorize(plays["user"], sort=True)
    items, item_ids = pd.factorize(plays["item"], sort=True)
    matrix = csr_matrix((plays["value"].astype("float32"), (users, items)))
    print(f"{len(user_ids)} users, {len(item_ids)} items, {matrix.nnz} pairs")

    # 2. How good is it? Two items of every user are held out. The one changed line of a script for ALS is the model.
    train, test = leave_k_out_split(matrix, K=2, random_state=0)
    model = ImplicitAIR(random_state=0, use_gpu=False)
    model.fit(train, show_progress=False)
    found = ranking_metrics_at_k(model, train, test, K=10, show_progress=False)
    print(f"held-out items among the first ten: {found['precision']:.0%}")

    # 3. Ten items for every user.
    model.fit(matrix, show_progress=False)
    ids, scores = model.recommend(np.arange(len(user_ids)), matrix, N=10)
    print(f"\nlists for all users: {ids.shape}")
    for user in range(3):
        best = ", ".join(
            f"{item_ids[item]} ({score:.2f})" for item, score in zip(ids[user, :4], scores[user, :4], strict=True)
        )
        print(f"  {user_ids[user]}: {best}, ...")

    # 4. Why? The score of an item is a sum over what the user likes.
    user, item = 0, int(ids[0, 0])
    score, reasons, _ = model.explain(user, matrix, item, N=4)
    print(f"\nwhy {item_ids[item]} for {user_ids[user]}? {score:.2f}, of which")
    edges = model.item_graph_.to_scipy()
    for liked, part in reasons:
        print(f"  {part:+.3f} from {item_ids[liked]}, weight in the item graph {edges[item, liked]:.3f}")
    alike = model.item_graph_.neighbors(item, 4)
    print(f"most alike to it: {', '.join(item_ids[alike['item']])}")

    # 5. A user who was not there: solved for, not trained.
    newcomer = csr_matrix((np.ones(3, "float32"), (np.zeros(3, int), matrix[1].indices[:3])), shape=(1, len(item_ids)))
    chosen, _ = model.recommend(0, newcomer, N=3, recalculate_user=True)
    print(f"\na new user who likes {', '.join(item_ids[newcomer.indices])}: {', '.join(item_ids[chosen])}")


if __name__ == "__main__":
    main()
