"""What a user's ratings share beside the item graph: found where it is planted, left out where it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, Interactions
from air_recsys.datasets import load_movielens_fold
from air_recsys.metrics import rmse
from air_recsys.models.further import NOTHING, Further, further_parts, time_scale
from air_recsys.nn.residuals import RowProcesses
from air_recsys.nn.row_kernels import Lasting

N_USERS, N_ITEMS, DAY = 120, 60, 86_400  # seconds


def planted(*, moods: float, tastes: float, seed: int = 0) -> tuple[Interactions, pd.DataFrame]:
    """Ratings by a few factors, with moods that last an hour and tastes of each user for kinds of items."""
    rng = np.random.default_rng(seed)
    scores = 20 + 0.7 * rng.standard_normal((N_USERS, 2)) @ rng.standard_normal((2, N_ITEMS))
    kinds = rng.integers(0, 8, N_ITEMS)
    scores = scores + tastes * rng.standard_normal((N_USERS, 8))[:, kinds]
    user, item = np.nonzero(rng.random(scores.shape) < 0.5)
    session = rng.integers(0, 4, user.size)
    time = DAY * session + rng.integers(0, 1200, user.size)
    values = scores[user, item] + moods * rng.standard_normal((N_USERS, 4))[user, session]
    values = values + 0.5 * rng.standard_normal(user.size)
    frame = pd.DataFrame({"user": user, "item": item, "rating": values, "timestamp": time})
    features = pd.DataFrame({"kind": [f"k{kind}" for kind in kinds]}, index=np.arange(N_ITEMS))
    return Interactions.from_frame(frame, timestamp="timestamp"), features


def parts_of(data: Interactions, features: pd.DataFrame | None = None, **options: Any) -> Further:
    options = {"n_factors": 2, "random_state": 0, "device": "cpu", "graph_residuals": 8} | options
    return AIR.for_ratings(**options).fit(data, item_features=features)._fitted().further


def test_tastes_that_few_factors_cannot_hold_are_found() -> None:
    data, features = planted(moods=0.0, tastes=0.8)
    assert parts_of(data, features).features > 0.05
    assert parts_of(data) == NOTHING


def test_moods_are_found_beside_slower_changes() -> None:
    data, _ = planted(moods=0.6, tastes=0.0)
    found = parts_of(data, time="drift").lasting
    assert found is not None
    assert found.strength > 0.2
    assert parts_of(data) == NOTHING


def test_without_either_hardly_anything_is_added() -> None:
    data, features = planted(moods=0.0, tastes=0.0)
    found = parts_of(data, features, time="drift")
    assert found.features < 0.05
    assert found.lasting is None or found.lasting.strength < 0.05


def test_nothing_is_found_where_nothing_is_carried() -> None:
    data, features = planted(moods=0.0, tastes=0.8)
    assert parts_of(data, features, graph_residuals=0) == NOTHING


def test_scales_follow_the_unit_of_the_times() -> None:
    users, times = np.repeat([0, 1], 50), np.random.default_rng(0).integers(0, 10_000, 100).astype(float)
    assert time_scale(users, 1000 * times) == pytest.approx(1000 * time_scale(users, times))
    assert time_scale(users, np.zeros(100)) == 0


def test_data_without_times_or_features_have_none() -> None:
    data = planted(moods=0.0, tastes=0.0)[0]
    graph = RowProcesses.of_graph(pd.DataFrame(np.zeros((N_ITEMS, N_ITEMS))).to_numpy(), 8.0)
    influence = lambda user, items, places: np.zeros((items.size, items.size))  # noqa: E731
    assert further_parts(data, np.zeros(data.n_ratings), graph, influence, reads_times=False) == NOTHING


@pytest.mark.parametrize("wrong", [[1.0], [1.0, 2.0, 0.0], [-1.0, 0.0, 0.0], [float("nan"), 0.0, 0.0]])
def test_a_file_with_other_numbers_is_refused(wrong: list[float]) -> None:
    with pytest.raises(ValueError):
        Further.from_json(wrong)


@pytest.mark.parametrize("parts", [NOTHING, Further(0.3), Further(0.0, Lasting(0.5, 10.0)), Further(1, Lasting(2, 3))])
def test_numbers_are_the_same_after_a_round_trip(parts: Further) -> None:
    assert Further.from_json(parts.to_json()) == parts


def test_a_new_item_gets_what_users_think_of_its_kind(tmp_path: Any) -> None:
    data, features = planted(moods=0.0, tastes=0.8)
    options: dict[str, Any] = {"n_factors": 2, "random_state": 0, "device": "cpu", "graph_residuals": 8}
    features.loc[999] = "k3"
    fitted = AIR.for_ratings(**options).fit(data, item_features=features)
    state = fitted._fitted()
    without = replace(state, further=NOTHING, unrated=(None, None))
    users, item = np.arange(N_USERS), state.data.items.place(999)
    told = [each.scores(users, np.full(N_USERS, item), False) for each in (state, without)]
    assert np.abs(told[0] - told[1]).max() > 0.01
    fitted.save(tmp_path / "model.air")
    again = AIR.load(tmp_path / "model.air")
    assert (again.predict(users, np.full(N_USERS, 999)) == fitted.predict(users, np.full(N_USERS, 999))).all()


def test_movielens_with_dates_is_predicted_better(data_root) -> None:
    train, test = load_movielens_fold(data_root, "u1")
    fitted = AIR.for_ratings(random_state=0, device="cpu", time="drift").fit(train)
    state = fitted._fitted()
    asked = test.user_index, test.item_index, True, test.timestamps.astype(float)
    errors = [rmse(test.ratings, each.scores(*asked)) for each in (state, replace(state, further=NOTHING))]
    assert state.further.lasting is not None
    assert errors[0] < errors[1] - 0.0005


def test_errors_left_out_say_what_the_parts_are_worth() -> None:
    data, features = planted(moods=0.0, tastes=0.8)
    options: dict[str, Any] = {"n_factors": 2, "random_state": 0, "device": "cpu", "graph_residuals": 8}
    fitted = AIR.for_ratings(**options).fit(data, item_features=features)
    errors = fitted.carried_errors_
    assert errors is not None
    assert errors[1] < errors[0] - 0.02
    assert AIR.for_ratings(**options | {"graph_residuals": 0}).fit(data).carried_errors_ is None


def test_errors_left_out_are_near_those_of_hidden_ratings(data_root) -> None:
    train, test = load_movielens_fold(data_root, "u2")
    fitted = AIR.for_ratings(random_state=0, device="cpu").fit(train)
    errors, state = fitted.carried_errors_, fitted._fitted()
    assert errors is not None
    asked = test.among(state.data.users, state.data.items)
    alone = rmse(asked.ratings, state.factor_scores(asked.user_index, asked.item_index))
    assert errors == pytest.approx((alone, -fitted.score(test)), abs=0.06)
    assert 0.002 < errors[0] - errors[1] < 0.02
