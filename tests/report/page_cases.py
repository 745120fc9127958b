"""One page of each kind, whose titles, attributes and names want to be more than text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from explorer_cases import HOSTILE as MARKUP

from air_recsys import AIR, Interactions, SimilarityGraph
from air_recsys.dti import DrugTargetAIR
from air_recsys.evaluation import compare
from air_recsys.models import BiasModel
from air_recsys.report import write_comparison, write_drug_target_report, write_explorer, write_report
from air_recsys.splits import random_holdout

FORMULAS = ('=HYPERLINK("//x.invalid/?"&A1,"open")', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1,9)", "\t=1+1", "＝1+1")
HOSTILE = (*MARKUP, "javascript:window.hacked=1", "</svg><svg onload=window.hacked=1>", *FORMULAS)


def write_pages(folder: Path) -> dict[str, Path]:
    """Write an explorer, a report, a report on drugs and targets, and a comparison."""
    writers = {"explorer": _explorer, "report": _report, "drugs": _drugs, "comparison": _comparison}
    return {name: write(folder / f"{name}.html") for name, write in writers.items()}


def _ratings(n_users: int = 40, n_items: int = 30) -> Interactions:
    rng = np.random.default_rng(0)
    truth = (
        3 + np.outer(rng.normal(size=n_users), rng.normal(size=n_items)) + 0.4 * rng.normal(size=(n_users, n_items))
    )
    return Interactions.from_dense(np.where(rng.random(truth.shape) < 0.6, np.round(truth.clip(1, 5)), np.nan))


def _texts(n: int) -> list[str]:
    """Return all hostile texts, then names."""
    return [*HOSTILE, *(f"Film {number}" for number in range(n))][:n]


def _explorer(path: Path) -> Path:
    """Items with steps, attributes and ratings, and users, all under hostile names."""
    rng = np.random.default_rng(1)
    group = np.arange(30) % 3
    near = np.where(np.equal.outer(group, group), rng.random((30, 30)), 0.1 * (rng.random((30, 30)) < 0.1))
    kinds = np.array(HOSTILE)[group]
    table = pd.DataFrame({"title": _texts(30), "kind": kinds, HOSTILE[1]: _texts(30), "year": 1960.0 + group})
    items = SimilarityGraph(near + near.T, range(30), kind="item", attributes=table, label="title")
    early = SimilarityGraph(np.where(near + near.T > 1, 1.0, 0.0), range(30), kind="item")
    users = SimilarityGraph(np.kron(np.eye(2), np.ones((20, 20))), range(40), kind="user")
    graphs = {HOSTILE[0]: items, HOSTILE[6]: users}
    return write_explorer(path, graphs, snapshots={HOSTILE[0]: {7: early}}, ratings=_ratings(), title=HOSTILE[1])


def _report(path: Path) -> Path:
    data = _ratings()
    split = random_holdout(data, 0.2, random_state=0)
    kinds = pd.DataFrame({"kind": [HOSTILE[0], "plain"] * 15})
    train = data.select(split.train)
    model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(train, item_features=kinds)
    titles = dict(enumerate(_texts(30)))
    return write_report(model, path, test=data.select(split.test), titles=titles)


def _drugs(path: Path) -> Path:
    values = np.kron(np.eye(3), np.ones((5, 4)))
    values[1, 2], values[5, 8] = 0, np.nan
    table = pd.DataFrame(values, _texts(15), [*HOSTILE[::-1]])
    return write_drug_target_report(DrugTargetAIR().fit(table), path)


def _comparison(path: Path) -> Path:
    models = {HOSTILE[0]: "Biases", HOSTILE[4]: BiasModel(bias_decay=50), HOSTILE[6]: "Popularity"}
    return write_comparison(compare(models, _ratings(), progress=False), path)
