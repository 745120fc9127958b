"""What the item graph adds to scores: the same part in every answer, and what it is worth."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from air_recsys import AIR, Interactions
from air_recsys.datasets import load_movielens_fold
from air_recsys.exceptions import ParameterError
from air_recsys.metrics import rmse
from air_recsys.models.further import Further
from air_recsys.nn.row_kernels import Lasting

SMALL: dict[str, Any] = {"n_factors": 2, "random_state": 0, "device": "cpu", "graph_residuals": 8}
MODELS = ("variational", "langevin", "drift", "weights", "features")


def ratings(n_users: int = 60, n_items: int = 40, seed: int = 0) -> pd.DataFrame:
    """Ratings of pairs of items that are liked alike, beside what few factors say."""
    rng = np.random.default_rng(seed)
    pairs = np.kron(rng.standard_normal((n_users, n_items // 2)), np.ones((1, 2)))
    values = 3 + pairs + 0.2 * rng.standard_normal((n_users, n_items))
    user, item = np.nonzero(rng.random((n_users, n_items)) < 0.5)
    frame = pd.DataFrame({"user": user, "item": item, "rating": values[user, item].clip(0, 6)})
    return frame.assign(timestamp=rng.integers(0, 10**8, len(frame)), weight=rng.uniform(0.5, 2, len(frame)))


@cache
def model(kind: str, **options: Any) -> AIR:
    frame, given = ratings(), {}
    columns, read = ["user", "item", "rating"], {}
    parameters = SMALL | options
    if kind == "langevin":
        parameters |= {"solver": "langevin", "n_sweeps": 20}
    if kind == "drift":
        parameters["time"] = "drift"
        read["timestamp"] = "timestamp"
    if kind == "weights":
        read["weight"] = "weight"
    if kind == "features":
        given["item_features"] = pd.DataFrame({"kind": [f"k{item % 3}" for item in range(40)]}, index=range(40))
    data = Interactions.from_frame(frame[[*columns, *read]], **read)
    fitted = AIR.for_ratings(**parameters).fit(data, **given)
    parts = Further(0.3 * (kind == "features"), Lasting(0.5, 1e6) if kind == "drift" else None)
    return fitted.take_state(replace(fitted._fitted(), further=parts))


def every_pair(fitted: AIR) -> tuple[np.ndarray, np.ndarray]:
    users, items = fitted.interactions_.user_ids, fitted.interactions_.item_ids
    return np.repeat(users, items.size), np.tile(items, users.size)


@pytest.mark.parametrize("kind", MODELS)
def test_lists_and_explanations_have_the_score_of_predict(kind: str) -> None:
    fitted = model(kind)
    lists = fitted.recommend(range(20), n=5)
    scores = fitted.predict(lists["user"].to_numpy(), lists["item"].to_numpy())
    np.testing.assert_allclose(lists["score"], scores, atol=1e-5)
    best = fitted.predict(np.repeat(3, 40), range(40))
    seen = set(ratings().query("user == 3")["item"])
    expected = [item for item in np.argsort(-best, kind="stable") if item not in seen][:5]
    assert lists.query("user == 3")["item"].tolist() == expected
    explained = fitted.explain(3, expected[0])
    assert explained.total() == pytest.approx(explained.score, abs=1e-6)
    assert explained.near_items.count > 0
    assert explained.near_items.total == pytest.approx(
        fitted.carried_.scores(np.array([3]), np.array(expected[:1]))[0]
    )


def test_at_a_time_parts_sum_to_the_score_of_that_time() -> None:
    fitted = model("drift")
    times = fitted.interactions_.timestamps
    assert times is not None
    user, item = fitted.interactions_.user_index[0], 11
    found = fitted.explain(user, item, timestamp=times[0])
    assert found.score == pytest.approx(fitted.predict(user, item, timestamps=times[0]), abs=1e-9)
    assert found.total() == pytest.approx(found.score, abs=1e-6)
    assert found.score != pytest.approx(fitted.predict(user, item), abs=1e-4)


def test_a_rated_item_is_no_reason_for_itself() -> None:
    rated = ratings().query("user == 3")["item"].tolist()
    for item in rated[:5]:
        assert item not in model("variational").explain(3, item, n=100).near_items.rows["item"].tolist()


@pytest.mark.parametrize("kind", MODELS)
def test_hosts_that_ask_pair_by_pair_get_the_same(kind: str) -> None:
    fitted = model(kind)
    fitted.predict(*every_pair(fitted))  # so that all are kept
    users, items = np.arange(10), np.arange(10, 20)
    found = [fitted.carried_.score(user, item) for user, item in zip(users, items, strict=True)]
    np.testing.assert_allclose(found, fitted.carried_.scores(users, items), atol=1e-12)


@pytest.mark.parametrize("kind", MODELS)
def test_a_file_keeps_every_score_to_the_bit(kind: str, tmp_path: Any) -> None:
    fitted, pairs = model(kind), every_pair(model(kind))
    loaded = AIR.load(fitted.save(tmp_path / "model.air"))
    assert (loaded.predict(*pairs) == fitted.predict(*pairs)).all()


def test_without_it_scores_are_those_of_factors_alone() -> None:
    without, pairs = model("variational", graph_residuals=0), every_pair(model("variational"))
    assert without.carried_ is None
    users, items = (np.asarray(each) for each in pairs)
    expected = model("variational").factors_.scores(users, items).clip(*without.rating_scale_)
    np.testing.assert_array_equal(without.predict(*pairs), expected)
    assert not without.explain(0, 0).near_items.count


def test_no_item_graph_no_part_of_it() -> None:
    fitted = model("variational", item_graph_reg=0)
    assert fitted.item_graph_ is None
    assert fitted.carried_ is None


def test_a_folded_user_gets_what_its_own_ratings_say() -> None:
    fitted, own = model("variational"), ratings().query("user == 5")[["user", "item", "rating"]]
    folded = fitted.fold_in(own)
    items = np.arange(40)
    parts = folded.factors_, folded.carried_
    expected = parts[0].scores(np.zeros(40, int), items) + parts[1].scores(np.zeros(40, int), items)
    np.testing.assert_allclose(folded.predict(5, items), expected.clip(*fitted.rating_scale_), atol=1e-9)
    assert folded.carried_.rows(np.array([0])).any()


def test_a_new_rating_counts_at_once_and_a_forgotten_one_no_longer() -> None:
    fitted = AIR.for_ratings(**SMALL).fit(ratings()[["user", "item", "rating"]])
    before = fitted.predict(7, range(40))
    own = set(ratings().query("user == 7")["item"])
    new = next(item for item in range(40) if item not in own and item ^ 1 not in own)
    fitted.partial_fit(pd.DataFrame({"user": [7], "item": [new], "rating": [6.0]}))
    added = fitted.explain(7, new ^ 1).near_items.rows
    assert new in added["item"].tolist()
    fitted.forget(pairs=[(7, new)])
    assert new not in fitted.explain(7, new ^ 1).near_items.rows["item"].tolist()
    np.testing.assert_allclose(fitted.predict(7, range(40)), before, atol=0.2)
    items = np.arange(40)
    others = fitted.predict(8, items)
    fitted.forget(users=7)
    np.testing.assert_array_equal(fitted.predict(8, items), others)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_the_ratings_does_not_matter(unit: float) -> None:
    frame = ratings()[["user", "item", "rating"]]
    scaled = AIR.for_ratings(**SMALL).fit(frame.assign(rating=unit * frame.rating))
    pairs = every_pair(scaled)
    np.testing.assert_allclose(scaled.predict(*pairs) / unit, model("variational").predict(*pairs), rtol=1e-2)


def test_threads_do_not_change_a_bit() -> None:
    pairs = every_pair(model("variational"))
    found = []
    for threads in (1, 4):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            carried = model("variational").fit(ratings()[["user", "item", "rating"]]).carried_
        finally:
            torch.set_num_threads(before)
        found.append(carried.scores(*(np.asarray(each) for each in pairs)))
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"user": [0, 1], "item": [0, 0], "rating": [3.0, 4.0]}),
        pd.DataFrame({"user": [0] * 5, "item": range(5), "rating": [1.0, 2, 3, 4, 5]}),
        pd.DataFrame({"user": range(5), "item": range(5), "rating": [1.0, 2, 3, 4, 5]}),
    ],
    ids=["one item", "one user with every item", "no shared user"],
)
def test_data_without_a_graph_have_a_model(frame: pd.DataFrame) -> None:
    fitted = AIR.for_ratings(random_state=0, device="cpu").fit(frame)
    assert np.isfinite(fitted.predict(frame["user"], frame["item"])).all()
    assert len(fitted.recommend(0, exclude_seen=False))


def planted(left: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ratings of items on a circle, by two factors, and by what each user has for stretches of near items."""
    rng, places = np.random.default_rng(0), 2 * np.pi * np.arange(80) / 80
    far = np.abs(np.angle(np.exp(1j * (places[:, None] - places))))
    local = rng.standard_normal((300, 80)) @ np.linalg.cholesky(np.exp(-far / 0.15) + 1e-9 * np.eye(80)).T
    scores = rng.standard_normal((300, 2)) @ np.stack([np.cos(places), np.sin(places)])
    values = scores + left * local + 0.5 * rng.standard_normal((300, 80))
    user, item = np.nonzero(rng.random((300, 80)) < 0.5)
    frame = pd.DataFrame({"user": user, "item": item, "rating": 10 + values[user, item]})
    hidden = rng.random(len(frame)) < 0.1
    return frame[~hidden], frame[hidden]


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_residuals_are_carried_where_they_agree_and_nowhere_else(solver: str) -> None:
    options = {"solver": solver, "n_factors": 4, "random_state": 0, "device": "cpu"}
    options |= {"n_sweeps": 30} if solver == "langevin" else {}
    for left, expected in ((0.0, 0.0), (0.7, 8.0)):
        shown, hidden = planted(left)
        fitted = AIR.for_ratings(**options).fit(shown)
        assert fitted.settings_["graph_residuals"] == expected
        assert (fitted.carried_ is None) == (expected == 0)
        without = AIR.for_ratings(**options, graph_residuals=0).fit(shown)
        pairs = hidden["user"], hidden["item"]
        errors = [rmse(hidden["rating"], each.predict(*pairs)) for each in (fitted, without)]
        assert errors[0] <= (errors[1] if expected == 0 else 0.98 * errors[1])
    graph = fitted.item_graph_
    assert graph is not None
    nearest = np.array([graph.neighbors(item, 1)["item"].item() for item in range(80)])
    assert np.mean(np.abs((nearest - np.arange(80) + 40) % 80 - 40) <= 2) > 0.8


def test_a_negative_strength_is_refused() -> None:
    with pytest.raises(ParameterError, match="graph_residuals"):
        AIR.for_ratings(graph_residuals=-1).fit(ratings()[["user", "item", "rating"]])


def test_movielens_is_predicted_better(data_root) -> None:
    train, test = load_movielens_fold(data_root, "u1")
    fitted = AIR.for_ratings(random_state=0, device="cpu").fit(train)
    pairs = test.user_ids[test.user_index], test.item_ids[test.item_index]
    whole = rmse(test.ratings, fitted.predict(*pairs, unknown="mean"))
    state = fitted.factors_
    known = [fitted.interactions_.users.lookup(pairs[0]), fitted.interactions_.items.lookup(pairs[1])]
    both = (known[0] >= 0) & (known[1] >= 0)
    alone = fitted.predict(*pairs, unknown="mean")
    alone[both] = state.scores(known[0][both], known[1][both]).clip(1, 5)
    assert whole < rmse(test.ratings, alone) - 0.004
    low, high = fitted.predict_interval(*pairs, unknown="mean")
    assert 0.88 < np.mean((low <= test.ratings) & (test.ratings <= high)) < 0.92


def test_a_new_item_gets_what_the_ratings_of_items_near_it_say() -> None:
    frame = ratings()[["user", "item", "rating"]]
    known, new = frame.query("item != 11"), frame.query("item == 11")
    fitted = AIR.for_ratings(**SMALL).fit(known)
    folded, users = fitted.fold_in(new, side="item"), fitted.interactions_.user_ids
    added = folded.carried_.scores(np.arange(users.size), np.zeros(users.size, int))
    residuals = fitted.carried_.coefficients(np.arange(users.size)).toarray()[:, 10]
    assert np.corrcoef(added[residuals != 0], residuals[residuals != 0])[0, 1] > 0.3
    explained = folded.explain(users[3], 11)
    assert explained.near_items.total == pytest.approx(added[3])
    assert explained.total() == pytest.approx(explained.score, abs=1e-6)
    fitted.partial_fit(new)
    place = np.full(users.size, fitted.interactions_.items.place(11))
    assert np.corrcoef(fitted.carried_.scores(np.arange(users.size), place), added)[0, 1] > 0.7
    assert len(fitted.recommend(users[:5], 3, items=[11], exclude_seen=False)) == 5
