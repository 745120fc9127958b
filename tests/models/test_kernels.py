"""Given similarities of both sides as kernels of what scores leave: one part in every answer."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, SimilarityGraph
from air_recsys.exceptions import ParameterError
from air_recsys.models import kernels
from air_recsys.models.portable import portable_fold_in

M, N, NEW = 40, 60, 4  # the last of both have no ratings
USERS, ITEMS = [f"u{number:02}" for number in range(M)], [f"i{number:02}" for number in range(N)]
SMALL: dict[str, Any] = {"n_factors": 2, "random_state": 0, "device": "cpu", "n_sweeps": 6}
FIXED = {"user_graph_strength": 0.3, "item_graph_strength": 0.3}


def close(n: int, seed: int) -> np.ndarray:
    """How close n places in a plane are."""
    places = np.random.default_rng(seed).standard_normal((n, 2))
    return np.exp(-8 * np.square(places[:, None] - places).sum(-1))


S_USERS, S_ITEMS = close(M, 1), close(N, 2)


@cache
def truth() -> np.ndarray:
    rng = np.random.default_rng(3)
    roots = [np.linalg.cholesky(each + 1e-9 * np.eye(len(each))) for each in (S_USERS, S_ITEMS)]
    own = rng.standard_normal((M, 1)) + rng.standard_normal(N)
    return 5 + 0.7 * own + 1.5 * roots[0] @ rng.standard_normal((M, N)) @ roots[1].T


def ratings(seed: int = 4) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((M - NEW, N - NEW)) < 0.5)
    values = truth()[users, items] + 0.3 * rng.standard_normal(users.size)
    return pd.DataFrame({"user": np.array(USERS)[users], "item": np.array(ITEMS)[items], "rating": values.clip(0)})


def given(users: Any = S_USERS, items: Any = S_ITEMS) -> dict[str, Any]:
    return {
        "user_similarity": pd.DataFrame(users, index=USERS, columns=USERS),
        "item_similarity": pd.DataFrame(items, index=ITEMS, columns=ITEMS),
    }


def fit(solver: str = "variational", similarities: Any = None, **options: Any) -> AIR:
    model = AIR.for_ratings(solver=solver, **SMALL | FIXED | options)
    return model.fit(ratings(), **(given() if similarities is None else similarities))


@cache
def model(solver: str = "variational", **options: Any) -> AIR:
    return fit(solver, **options)


def everything(fitted: AIR) -> np.ndarray:
    return fitted.predict(np.repeat(USERS, N), np.tile(ITEMS, M)).reshape(M, N)


def error(fitted: AIR, users: Any = slice(None), items: Any = slice(None)) -> float:
    return float(np.square(everything(fitted) - truth().clip(0))[users, items].mean())


OLD, LAST = slice(0, -NEW), slice(-NEW, None)


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_pairs_and_rows_without_ratings_gain(solver: str) -> None:
    fitted, without = model(solver), model(solver, graph_residuals=0)
    assert "as kernels" in fitted.search_line_
    assert "as kernels" not in without.search_line_
    assert error(fitted, OLD, OLD) < 0.8 * error(without, OLD, OLD)
    for users, items in ((LAST, OLD), (OLD, LAST), (LAST, LAST)):
        assert error(fitted, users, items) < 1.02 * error(without, users, items)


def test_without_a_choice_of_strengths_there_is_one_training_to_judge_by() -> None:
    assert model("variational").search_.empty
    searched = fit("variational", user_graph_strength="auto", item_graph_strength="auto")
    assert len(searched.search_) == 8
    assert searched.search_line_.count("as kernels") == 1


def test_one_side_is_no_pair_of_kernels() -> None:
    of_items = {"item_similarity": given()["item_similarity"]}
    fitted = AIR.for_ratings(**SMALL, item_graph_strength=0.3).fit(ratings(), **of_items)
    assert "as kernels" not in fitted.search_line_


def test_many_pairs_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_MOST_WORK", M * N * (M + N) - 1)
    assert "as kernels" not in fit().search_line_


def test_similarities_that_say_nothing_are_not_used() -> None:
    rng = np.random.default_rng(0)
    of_users, of_items = rng.permutation(M), rng.permutation(N)
    noise = given(S_USERS[np.ix_(of_users, of_users)], S_ITEMS[np.ix_(of_items, of_items)])
    fitted = fit("variational", noise)
    assert error(fitted, OLD, OLD) < 1.1 * error(fit("variational", noise, graph_residuals=0), OLD, OLD)


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_lists_and_explanations_have_the_score_of_predict(solver: str) -> None:
    fitted = model(solver)
    lists = fitted.recommend(USERS, n=5)
    np.testing.assert_allclose(lists["score"], fitted.predict(lists["user"], lists["item"]), atol=1e-5)
    scores = fitted.predict(np.repeat(USERS[-1], N), ITEMS)
    assert lists.query("user == @USERS[-1]")["item"].iloc[0] == ITEMS[int(scores.argmax())]
    for user, item in ((0, 0), (0, 5), (-1, 0), (0, -1), (-1, -1)):
        explained = fitted.explain(USERS[user], ITEMS[item])
        assert explained.total() == pytest.approx(explained.score, abs=1e-5)
    assert fitted.explain(USERS[0], ITEMS[5]).near_items.count > 0


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_a_file_keeps_every_answer_to_the_bit(solver: str, tmp_path: Any) -> None:
    fitted = model(solver)
    loaded = AIR.load(fitted.save(tmp_path / "model.air"))
    np.testing.assert_array_equal(everything(loaded), everything(fitted))
    pairs = np.repeat(USERS, N), np.tile(ITEMS, M)
    for own, kept in zip(
        fitted.predict(*pairs, return_std=True), loaded.predict(*pairs, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(own, kept)
    assert loaded.search_line_ == fitted.search_line_


def test_a_checkpoint_resumes_with_the_same_kernels(tmp_path: Any) -> None:
    cut = AIR.for_ratings(**SMALL | FIXED)
    cut.fit(ratings(), **given(), checkpoint=tmp_path / "run", every=1, callbacks=[lambda record: record.epoch == 3])
    resumed = AIR.for_ratings(**SMALL | FIXED).fit(ratings(), **given(), resume_from=tmp_path / "run")
    np.testing.assert_array_equal(everything(resumed), everything(model()))


def test_intervals_hold_what_they_say() -> None:
    rng = np.random.default_rng(5)
    new = (truth() + 0.3 * rng.standard_normal((M, N))).clip(0)
    low, high = (each.reshape(M, N) for each in model().predict_interval(np.repeat(USERS, N), np.tile(ITEMS, M)))
    inside = (low <= new) & (new <= high)
    rated = pd.MultiIndex.from_frame(ratings().loc[:, ["user", "item"]])
    unseen = ~pd.MultiIndex.from_product([USERS, ITEMS]).isin(rated).reshape(M, N)
    assert 0.85 < inside[OLD, OLD][unseen[OLD, OLD]].mean() < 0.97
    assert 0.8 < inside[LAST].mean() <= 1


def test_a_folded_user_is_as_after_partial_fit() -> None:
    own = ratings().query("user == 'u03'").assign(user="new")
    folded, updated = model().fold_in(own), fit().partial_fit(own)
    np.testing.assert_allclose(folded.predict("new", ITEMS), updated.predict("new", ITEMS), atol=1e-3)
    others = ITEMS[:-NEW]
    np.testing.assert_allclose(updated.predict("u05", others), model().predict("u05", others), atol=1e-3)
    factors = folded.factors_.scores(np.zeros(N, int), np.arange(N))
    assert abs(folded.predict("new", ITEMS) - factors).max() > 0.05
    explained = folded.explain("new", ITEMS[5])
    assert explained.total() == pytest.approx(explained.score, abs=1e-5)


def test_a_folded_item_is_as_after_partial_fit() -> None:
    own = ratings().query("item == 'i03'").assign(item="new")
    folded = model().fold_in(own, side="item")
    found = fit().partial_fit(own).predict(USERS[:-NEW], "new")
    np.testing.assert_allclose(folded.predict(USERS[:-NEW], "new"), found, atol=0.3)  # whose users are solved again
    explained = folded.explain(USERS[0], "new")
    assert explained.total() == pytest.approx(explained.score, abs=1e-5)


def test_what_is_forgotten_says_nothing() -> None:
    fitted = fit()
    fitted.forget(users=USERS[-1])
    np.testing.assert_allclose(fitted.predict(USERS[5], ITEMS), model().predict(USERS[5], ITEMS), atol=1e-2)
    fitted.forget(items=ITEMS[3])
    assert np.isfinite(fitted.predict(USERS[-2], ITEMS[:3])).all()


def test_what_is_not_positive_semidefinite_is_told_once() -> None:
    whole = S_ITEMS > 0.5
    fitted = fit("variational", given(items=whole.astype(float)))
    assert fitted.search_line_.count("not positive semidefinite") == 1
    assert np.isfinite(everything(fitted)).all()


@pytest.mark.parametrize("of_users", [np.ones((M, M)), 100 * S_USERS, (S_USERS - np.eye(M)) * (S_USERS > 0.3)])
def test_any_unit_and_no_diagonal_will_do(of_users: np.ndarray) -> None:
    assert np.isfinite(everything(fit("variational", given(users=of_users)))).all()


def test_a_graph_and_a_part_of_the_ids_will_do() -> None:
    graph = SimilarityGraph(S_USERS[:20, :20], USERS[:20], "user")
    fitted = fit("variational", {"user_similarity": graph, "item_similarity": given()["item_similarity"]})
    assert np.isfinite(fitted.predict(USERS[: M - NEW], ITEMS[0])).all()


def test_weights_and_times_go_with_it() -> None:
    rng, frame = np.random.default_rng(0), ratings()
    frame = frame.assign(timestamp=rng.integers(0, 10**8, len(frame)), weight=rng.uniform(0.5, 2, len(frame)))
    fitted = AIR.for_ratings(time="drift", **SMALL | FIXED).fit(frame, **given())
    assert "as kernels" in fitted.search_line_
    explained = fitted.explain(USERS[0], ITEMS[5], timestamp=5 * 10**7)
    assert explained.total() == pytest.approx(explained.score, abs=1e-5)


def test_pages_and_settings_say_what_scores_are_made_of() -> None:
    fitted = model()
    assert fitted.settings_["graph_residuals"] == 0
    assert fitted.item_graph_ is not None
    with pytest.raises(ParameterError, match="without kernels of given similarities"):
        portable_fold_in(fitted)
