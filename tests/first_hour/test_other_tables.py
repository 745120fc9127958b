"""A first hour with other tables: purchases with hours, views and carts and purchases, drugs and diseases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_cases import refuses, shell

from air_recsys import AIR
from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import DataWarning
from air_recsys.models import GraphRanker
from air_recsys.report import write_report

pytestmark = pytest.mark.filterwarnings("default::air_recsys.exceptions.DataWarning")  # which columns are read
SHORT = "--ranking --device cpu --set n_factors=3"


def alike(n_rows: int, n_columns: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of two groups: even rows take even columns, odd rows odd ones."""
    same = np.arange(n_rows)[:, None] % 2 == np.arange(n_columns) % 2
    return np.nonzero(np.random.default_rng(0).random(same.shape) < np.where(same, share, 0.04))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Purchases with the hour of each; and events: who buys has viewed before, and views more."""
    folder, rng = tmp_path_factory.mktemp("shop"), np.random.default_rng(1)
    people, things = alike(40, 14, 0.6)
    table = pd.DataFrame({"customer": [f"c{row}" for row in people], "product": [f"p{column}" for column in things]})
    hours = pd.Timestamp("2026-03-01") + pd.to_timedelta(rng.integers(0, 2000, len(table)), unit="h")
    table.assign(time=hours.strftime("%Y-%m-%d %H:%M")).to_csv(folder / "purchases.csv", index=False)
    kinds = np.where(rng.random(len(table)) < 0.4, "purchase", np.where(rng.random(len(table)) < 0.3, "cart", "view"))
    table.assign(kind=kinds).to_csv(folder / "events.csv", index=False)
    return folder


def test_purchases_with_hours(shop: Path) -> None:
    train = f"air-recsys train {shop}/purchases.csv --model {shop}/p.air"
    refuses(train, "--ranking")  # without ratings they are likes
    assert shell(f"{train} {SHORT} --timestamp-column time").status == 0
    listed = shell(f"air-recsys recommend {shop}/p.air --user c3 --n 3")
    assert listed.status == 0
    assert listed.out.count("c3") == 3
    why = shell(f"air-recsys explain {shop}/p.air --user c3 --item p1")
    assert why.status == 0
    told = shell(f"air-recsys report {shop}/p.air --out {shop}/p.html")
    assert told.status == 0
    assert "ndcg@10" in told.out
    assert shell(f"air-recsys graph {shop}/p.air --html {shop}/graph.html").status == 0
    model = GraphRanker.load(shop / "p.air")
    bought = pd.read_csv(shop / "purchases.csv")
    assert model.recommend("c3", n=2)["item"].isin(bought["product"]).all()
    assert "liked both" in model.item_graph_.why("p1", "p3").text


def test_views_carts_and_purchases(shop: Path) -> None:
    train = f"air-recsys train {shop}/events.csv {SHORT} --model {shop}/e.air"
    refused = shell(f"{train} --target sale")
    assert refused.status == 1
    told = "error: expected events of the target 'sale', found the kinds ['cart', 'purchase', 'view']"
    assert refused.err.splitlines()[-1] == told
    assert shell(f"{train} --target purchase").status == 0
    listed = shell(f"air-recsys recommend {shop}/e.air --user c4 --n 3")
    assert listed.status == 0
    assert listed.out.count("c4") == 3
    events = pd.read_csv(shop / "events.csv")
    model = AIR.for_likes(target="purchase", settings={}, device="cpu", random_state=0)
    with pytest.warns(DataWarning, match="'customer' as user, 'product' as item"):
        model.fit(events)
    bought = events[(events["customer"] == "c4") & (events["kind"] == "purchase")]["product"]
    assert not model.recommend("c4", n=5)["item"].isin(bought).any()
    page = write_report(model, shop / "e.html").read_text(encoding="utf-8")
    assert "What GraphRanker has learned" in page


def test_a_table_of_drugs_and_diseases(tmp_path: Path) -> None:
    drugs, diseases = alike(24, 12, 0.6)
    table = pd.DataFrame({"drug": [f"drug {row}" for row in drugs], "disease": [f"disease {c}" for c in diseases]})
    table.to_csv(tmp_path / "pairs.csv", index=False)
    file = tmp_path / "pairs.csv"
    trained = shell(f"air-recsys dti train {file} --model {tmp_path}/d.air --target-column disease")
    assert trained.status == 0, trained.err
    ranked = shell(f"air-recsys dti rank {tmp_path}/d.air --n 4")
    assert ranked.status == 0
    assert ranked.out.count("disease") >= 4
    assert shell(f"air-recsys dti report {tmp_path}/d.air --out {tmp_path}/d.html").status == 0
    model = DrugTargetAIR().fit(table, target="disease")
    found = model.recommend("drug 2", n=3)
    assert set(found["disease"]) <= set(table["disease"])
    assert not found["disease"].isin(table[table["drug"] == "drug 2"]["disease"]).any()
