"""What each page takes for granted: small files in the folder and names in its code, all made here."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from doc_pages import ROOT
from PIL import Image

from air_recsys import AIR, Interactions, datasets
from air_recsys.datasets import DrugTargetData

Names = dict[str, Any]
FOUR = ["ann", "bob", "cid", "dan"]


def table(n_users: int = 30, n_items: int = 25, share: float = 0.5) -> pd.DataFrame:
    """Ratings 1..5 of two groups of users for two groups of items, with noise."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((n_users, n_items)) < share)
    ratings = np.where(users % 2 == items % 2, 4.5, 2.0) + 0.7 * rng.standard_normal(users.size)
    names = [*FOUR, *(f"user {number}" for number in range(len(FOUR), n_users))]
    return pd.DataFrame(
        {
            "user": [names[user] for user in users],
            "item": [f"item {item}" for item in items],
            "rating": ratings.round().clip(1, 5),
        }
    )


def titles() -> pd.DataFrame:
    return pd.DataFrame(
        {"item": [f"item {number}" for number in range(25)], "title": [f"film {n}" for n in range(25)]}
    )


def fitted(**settings: Any) -> AIR:
    return AIR.for_ratings(random_state=0, device="cpu", **settings).fit(Interactions.from_frame(table()))


def picture(name: str, size: int = 40) -> None:
    grid = np.sin(np.arange(size) / 3)[:, None] * np.cos(np.arange(size) / 5)
    Image.fromarray((127 * (grid + 1)).astype(np.uint8)).save(name)


def shell_files() -> Names:
    """The tables and the model that commands read."""
    table().to_csv("ratings.csv", index=False)
    titles().rename(columns={"item": "id"}).to_csv("titles.csv", index=False)
    table()[["user", "item"]].head(3).to_csv("pairs.csv", index=False)
    model = fitted()
    model.save("model.air")
    return {"model": model, "data": model.interactions_, "titles": titles()}


def distributed() -> Names:
    """A table in one file, and in parts."""
    Path("ratings").mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(table())), 2)):
        table().iloc[part].to_parquet(f"ratings/part-{number}.parquet")
    return shell_files()


def readme() -> Names:
    picture("picture.png")
    Image.fromarray(255 * (np.random.default_rng(0).random((40, 40)) < 0.7).astype(np.uint8)).save("mask.png")
    return shell_files()


def tables_of_ones_own() -> None:
    """Files without a header line, and a wide one of a scale of -10..10 with 99 for missing."""
    table().to_csv("u.data", sep="\t", header=False, index=False)
    table()[["user", "item"]].to_csv("likes.txt", sep=";", header=False, index=False)
    wide = table().assign(rating=lambda found: 5 * found["rating"] - 15).pivot(index="user", columns="item")
    wide["rating"].fillna(99).to_csv("jokes.csv")


def data_page() -> Names:
    picture("picture.png")
    table().to_csv("ratings.csv", index=False)
    tables_of_ones_own()
    return {}


def tuning() -> Names:
    import mlflow

    mlflow.set_tracking_uri((Path.cwd() / "mlruns").as_uri())
    names = shell_files()
    return names | {"train": names["data"], "mlflow": mlflow}


def explanations() -> Names:
    made = runpy.run_path(str(ROOT / "examples" / "explain.py"))["made_ratings"]()
    model = AIR.for_ratings(random_state=0, device="cpu").fit(made)
    model.save("model.air")
    labels = {item: f"film {item}" for item in range(150)}
    pd.DataFrame({"id": list(labels), "title": list(labels.values())}).to_csv("titles.csv", index=False)
    return {"model": model, "titles": labels}


def explorer() -> Names:
    names = shell_files()
    items, users = names["model"].item_graph_, names["model"].user_graph_
    return names | {"items": items, "users": users, "early": items.top(2)}


def plots() -> Names:
    unseen = table(share=0.1)
    unseen.to_csv("unseen.csv", index=False)
    return shell_files() | {"unseen": Interactions.from_frame(unseen), "titles": None}


def top_n() -> Names:
    return {"model": fitted(), "user_ids": FOUR, "positions": np.array([0, 1])}


def ranking() -> Names:
    liked = table().query("rating > 3").replace({"item 1": "x", "item 2": "z"})
    liked.to_csv("likes.csv", index=False)
    columns = {"users": liked["user"], "items": liked["item"], "times": np.arange(len(liked))}
    return {"pd": pd, "interactions": Interactions.from_frame(liked, rating=None), "user_ids": FOUR} | columns


def comparison() -> Names:
    return shell_files() | {"Interactions": Interactions, "table": table()}


def drugs() -> Names:
    rng = np.random.default_rng(0)
    known = (rng.random((12, 10)) < 0.4).astype(float)
    known[0, :2] = 1.0
    known[1:, 0] = known[1, 1:] = 1.0
    drug_ids, target_ids = ["D00283", *map(str, range(11))], ["hsa1812", "hsa1813", *map(str, range(8))]
    similarities = [np.eye(size) / 2 + 0.5 for size in known.shape]
    rows, columns = np.nonzero(known >= 0)
    found = DrugTargetData(Interactions(rows, columns, known.ravel(), drug_ids, target_ids), *similarities)
    datasets.load_yamanishi = lambda *_: found
    datasets.load_davis = lambda *_: affinities()
    return {"root": "data"}


def affinities() -> DrugTargetData:
    """Drugs and targets in two groups, with the names that the page asks for."""
    rng = np.random.default_rng(0)
    names = ["11314340", *map(str, range(11))], ["AAK1", "YES", *map(str, range(8))]
    groups = [np.arange(len(ids)) % 2 for ids in names]
    values = 6 + np.equal.outer(*groups) + 0.2 * rng.standard_normal((12, 10))
    similar = (
        pd.DataFrame(0.5 * (1 + np.equal.outer(group, group)), ids, ids)
        for group, ids in zip(groups, names, strict=True)
    )
    return DrugTargetData(Interactions.from_dense(values, *names), *similar)


def surprise() -> Names:
    from surprise import Dataset, Reader

    data = Dataset.load_from_df(table(), Reader(rating_scale=(1, 5)))
    Dataset.load_builtin = lambda *_: data
    trainset = data.build_full_trainset()
    return {"trainset": trainset, "testset": trainset.build_testset()}


def implicit() -> Names:
    likes = sp.csr_matrix((np.random.default_rng(0).random((40, 30)) < 0.3).astype(np.float32))
    return {"user_items": likes, "userids": np.arange(4)}


def sklearn() -> Names:
    from sklearn.datasets import load_breast_cancer

    frame = load_breast_cancer(as_frame=True)["data"].iloc[:150]
    return {"frame": frame.mask(np.random.default_rng(0).random(frame.shape) < 0.2)}


def cornac() -> Names:
    from cornac.data import Dataset

    from air_recsys.adapters.cornac import CornacAIR

    ratings = table(60, 80, 0.2)  # no fewer items than the index has cells
    ratings["item"] = ratings["item"].replace({"item 1": "528"})
    ratings["user"] = ratings["user"].replace({"ann": "user 1", "bob": "user 2"})
    triples = list(ratings.itertuples(index=False, name=None))
    train_set = Dataset.from_uir(triples, seed=0)
    return {"triples": triples, "train_set": train_set, "model": CornacAIR(seed=0).fit(train_set)}


def scale() -> Names:
    return {"data": Interactions.from_frame(table())}


def checkpoints() -> Names:
    return shell_files() | {"ratings": table()}


SETTINGS: dict[str, Callable[[], Names]] = {
    "docs/checkpoints.md": checkpoints,
    "docs/trust.md": shell_files,
    "README.md": readme,
    "docs/index.md": readme,
    "docs/start.md": shell_files,
    "docs/serving.md": shell_files,
    "docs/ratings.md": shell_files,
    "docs/data.md": data_page,
    "docs/explanations.md": explanations,
    "docs/ranking.md": ranking,
    "docs/top-n.md": top_n,
    "docs/compare.md": comparison,
    "docs/dti.md": drugs,
    "docs/explorer.md": explorer,
    "docs/plots.md": plots,
    "docs/gpu-and-scale.md": scale,
    "docs/distributed.md": distributed,
    "docs/tuning.md": tuning,
    "docs/adapters/surprise.md": surprise,
    "docs/adapters/implicit.md": implicit,
    "docs/adapters/sklearn.md": sklearn,
    "docs/adapters/cornac.md": cornac,
}
