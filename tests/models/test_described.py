"""Users and items that are described by structures, sequences, numbers and tables, for every model of ratings."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR
from air_recsys.data.described.sides import Described
from air_recsys.exceptions import DataError

M, N, NEW = 36, 48, 4  # the last of the users are new
USERS, ITEMS = [f"u{number:02}" for number in range(M)], [f"i{number:02}" for number in range(N)]
SMALL: dict[str, Any] = {"n_factors": 2, "random_state": 0, "device": "cpu", "n_sweeps": 6}
FIXED = {"user_graph_strength": 0.3, "item_graph_strength": 0.3}
RNG = np.random.default_rng(0)
PLACES = pd.DataFrame(RNG.standard_normal((M, 2)), USERS)
NOISE = pd.DataFrame(RNG.standard_normal((M, 3)), USERS)
OF_ITEMS = pd.DataFrame(RNG.standard_normal((N, 2)), ITEMS)
KNOWN, LATER = USERS[:-NEW], USERS[-NEW:]


def similar(table: pd.DataFrame) -> np.ndarray:
    return Described.of("row", {"features": table}, table.index.to_numpy()).similarity()


@cache
def truth() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    roots = [np.linalg.cholesky(similar(each) ** 4 + 1e-9 * np.eye(len(each))) for each in (PLACES, OF_ITEMS)]
    values = 5 + 1.5 * roots[0] @ rng.standard_normal((M, N)) @ roots[1].T + 0.2 * rng.standard_normal((M, N))
    return pd.DataFrame(values.clip(0, 10), USERS, ITEMS)


def ratings(users: list[str] = KNOWN, share: float = 0.5) -> pd.DataFrame:
    frame = truth().loc[users].rename_axis(index="user", columns="item").stack().rename("rating").reset_index()
    return frame.sample(frac=share, random_state=1)


def given(users: list[str] = KNOWN) -> dict[str, Any]:
    square = pd.DataFrame(similar(PLACES) ** 2, USERS, USERS)
    of_users = {"features": PLACES.loc[users], "noise": NOISE.loc[users], "own": square.loc[users, KNOWN]}
    return {"user_similarity": of_users, "item_similarity": {"features": OF_ITEMS}}


@cache
def model(**options: Any) -> AIR:
    return AIR.for_ratings(**SMALL | FIXED | options).fit(ratings(), rating_scale=(0, 10), **given())


def new_of(users: list[str] = LATER) -> dict[str, Any]:
    return given(users)["user_similarity"]


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    return ratings(LATER[:-1], 0.3)  # of the last one nothing is measured


def all_of(fitted: AIR, users: list[str], **how: Any) -> Any:
    return fitted.predict(np.repeat(users, N), np.tile(ITEMS, len(users)), **how)


def test_shares_are_learned_and_what_says_nothing_has_the_least() -> None:
    shares = model().shares_["user"]
    assert list(shares) == ["features", "noise", "own"]
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["noise"] < 0.2
    assert model().described_line_.startswith(f"users: features {shares['features']:.2f}, noise ")
    assert "as kernels" in model().search_line_


def test_a_mapping_says_what_the_mean_of_its_kernels_says() -> None:
    shares = model().shares_["user"]
    tables = [similar(PLACES.loc[KNOWN]), similar(NOISE.loc[KNOWN]), new_of(KNOWN)["own"].to_numpy()]
    mean = pd.DataFrame(np.tensordot([*shares.values()], tables, 1), KNOWN, KNOWN)
    of_items = pd.DataFrame(similar(OF_ITEMS), ITEMS, ITEMS)
    by_tables = AIR.for_ratings(**SMALL | FIXED)
    by_tables.fit(ratings(), rating_scale=(0, 10), user_similarity=mean, item_similarity=of_items)
    np.testing.assert_allclose(all_of(by_tables, KNOWN), all_of(model(), KNOWN), atol=2e-3)


@pytest.mark.parametrize("solver", ["variational", "langevin"])
@pytest.mark.parametrize("residuals", ["auto", 0])
def test_new_rows_have_the_answers_of_a_model_that_took_them_in(solver: str, residuals: Any, measured: Any) -> None:
    fitted = model(solver=solver, graph_residuals=residuals)
    folded = fitted.fold_in(measured, similarity=new_of())
    grown = AIR.for_ratings(**SMALL | FIXED, solver=solver, graph_residuals=residuals)
    grown.fit(ratings(), rating_scale=(0, 10), **given())
    grown.partial_fit(measured, user_similarity=new_of())
    for found, expected in zip(
        all_of(folded, LATER, return_std=True), all_of(grown, LATER, return_std=True), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(all_of(grown, KNOWN), all_of(fitted, KNOWN), atol=1e-6)  # all else is held
    for one, other in zip(*(all_ends(each, LATER) for each in (folded, grown)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def all_ends(fitted: AIR, users: list[str]) -> tuple[np.ndarray, np.ndarray]:
    return fitted.predict_interval(np.repeat(users, N), np.tile(ITEMS, len(users)))


def test_new_rows_follow_by_profiles_likewise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, measured: pd.DataFrame
) -> None:
    monkeypatch.setattr("air_recsys.models.kernels._SURE", -np.inf)
    fitted = AIR.for_ratings(**SMALL | FIXED).fit(ratings(), rating_scale=(0, 10), **given())
    loaded = AIR.load(fitted.save(tmp_path / "model.air"))
    folded, held = fitted.fold_in(measured, similarity=new_of()), all_of(fitted, KNOWN)
    np.testing.assert_array_equal(all_of(loaded.fold_in(measured, similarity=new_of()), LATER), all_of(folded, LATER))
    by_powers = all_of(model().fold_in(measured, similarity=new_of()), LATER)
    assert not np.allclose(all_of(folded, LATER), by_powers)
    found = folded.explain(LATER[-1], ITEMS[5], n=4)
    assert found.total() == pytest.approx(found.score, abs=1e-5)
    fitted.partial_fit(measured, user_similarity=new_of())
    np.testing.assert_allclose(all_of(fitted, LATER), all_of(folded, LATER), atol=1e-6)
    np.testing.assert_allclose(all_of(fitted, KNOWN), held, atol=1e-6)


def test_new_rows_without_ratings_follow_from_what_they_are_like() -> None:
    folded = model().fold_in(similarity=new_of())
    assert folded.interactions_.user_ids.tolist() == LATER
    regression = np.abs(all_of(folded, LATER).reshape(NEW, N) - truth().loc[LATER]).to_numpy().mean()
    assert regression < 0.8 * np.abs(truth().loc[LATER] - truth().loc[KNOWN].mean()).to_numpy().mean()


def test_first_ratings_and_descriptions_are_better_together() -> None:
    own = ratings(LATER, 0.25)
    rest = truth().loc[LATER].stack().drop(pd.MultiIndex.from_arrays([own["user"], own["item"]]))
    users, items = (rest.index.get_level_values(level) for level in (0, 1))

    def error(fitted: AIR) -> float:
        return float(np.square(fitted.predict(users, items) - rest).mean())

    both, described = error(model().fold_in(own, similarity=new_of())), error(model().fold_in(similarity=new_of()))
    assert both < 0.95 * described
    assert both < error(model().fold_in(own))
    low, high = model().fold_in(own, similarity=new_of()).predict_interval(users, items)
    assert 0.75 < ((low <= rest) & (rest <= high)).mean() <= 1


def test_a_fit_with_few_ratings_of_a_row_is_as_sure_of_it_as_fold_in() -> None:
    own, others = ratings([LATER[0]], 0.04), ratings()
    both = pd.concat([others, own])
    whole = AIR.for_ratings(**SMALL | FIXED).fit(both, rating_scale=(0, 10), **given(USERS))
    folded = model().fold_in(own, similarity=new_of([LATER[0]]))
    found, expected = (np.stack(all_of(each, [LATER[0]], return_std=True)) for each in (whole, folded))
    assert np.corrcoef(found[0], expected[0])[0, 1] > 0.9
    assert found[1].mean() == pytest.approx(expected[1].mean(), rel=0.2)


def test_one_of_the_names_is_enough_and_rows_do_not_see_each_other(measured: pd.DataFrame) -> None:
    alone = [model().fold_in(similarity={"features": PLACES.loc[[user]]}) for user in LATER]
    whole = model().fold_in(similarity={"features": PLACES.loc[LATER]})
    found = np.concatenate([all_of(each, [user]) for each, user in zip(alone, LATER, strict=True)])
    np.testing.assert_allclose(all_of(whole, LATER), found, atol=1e-6)


def test_new_items_come_likewise() -> None:
    users = ["u00", "u01", "u02"]
    new = OF_ITEMS.iloc[:2].set_axis(["x", "y"])
    own = pd.DataFrame({"user": users, "item": "x", "rating": [9.0, 1.0, 5.0]})
    folded = model().fold_in(own, side="item", similarity={"features": new})
    grown = AIR.for_ratings(**SMALL | FIXED).fit(ratings(), rating_scale=(0, 10), **given())
    cold = model().fold_in(side="item", similarity={"features": new})
    assert np.corrcoef(cold.predict(KNOWN, "y"), truth().loc[KNOWN, ITEMS[1]])[0, 1] > 0.7
    assert abs(folded.predict(users, "x") - [9, 1, 5]).mean() < abs(cold.predict(users, "x") - [9, 1, 5]).mean()
    grown.partial_fit(own, item_similarity={"features": new})
    np.testing.assert_allclose(folded.predict(KNOWN, "y"), cold.predict(KNOWN, "y"), atol=1e-6)
    assert np.isfinite(grown.predict(KNOWN, "x")).all()


def test_explanations_add_up_and_name_similar_users(measured: pd.DataFrame) -> None:
    folded = model().fold_in(measured, similarity=new_of())
    for fitted, users in ((folded, LATER), (model(), KNOWN[:3])):
        for user in users:
            found = fitted.explain(user, ITEMS[5], n=4)
            assert found.total() == pytest.approx(found.score, abs=1e-5)
            assert set(found.similar_users.rows["user"]) <= set(KNOWN) - {user}
            assert len(found.similar_users.rows) == 4
    alike = similar(PLACES)[USERS.index(LATER[-1]), : M - NEW]
    named = folded.explain(LATER[-1], ITEMS[5], n=M).similar_users.rows
    assert np.corrcoef(named.set_index("user")["weight"].reindex(KNOWN).fillna(0), alike)[0, 1] > 0.5


def test_files_keep_what_later_rows_need(tmp_path: Path, measured: pd.DataFrame) -> None:
    grown = AIR.for_ratings(**SMALL | FIXED).fit(ratings(), rating_scale=(0, 10), **given())
    for fitted, users in ((model(), KNOWN), (grown.partial_fit(measured, user_similarity=new_of()), USERS)):
        loaded = AIR.load(fitted.save(tmp_path / "model.air"))
        assert loaded.shares_ == fitted.shares_
        assert loaded.described_line_ == fitted.described_line_
        np.testing.assert_array_equal(all_of(loaded, users), all_of(fitted, users))
        new = {name: each.set_axis([f"n{k}" for k in range(NEW)]) for name, each in new_of().items()}
        found, expected = (
            each.fold_in(similarity={"features": new["features"]}).predict("n1", ITEMS) for each in (loaded, fitted)
        )
        np.testing.assert_array_equal(found, expected)
    grown.forget(users=LATER[0])
    np.testing.assert_allclose(all_of(grown, LATER[1:]), all_of(loaded, LATER[1:]), atol=1e-3)


def test_the_objective_takes_the_same() -> None:
    settings: dict[str, Any] = {"n_factors": 3, "n_epochs": 20, "random_state": 0, "device": "cpu"}
    fitted = AIR.for_ratings(solver="adam", user_graph_strength=0.3, item_graph_strength=0.0, **settings)
    fitted.fit(ratings(), **given())
    assert list(fitted.shares_["user"]) == ["features", "noise", "own"]
    folded = fitted.fold_in(ratings(LATER), similarity=new_of())
    assert np.isfinite(all_of(folded, LATER)).all()


@pytest.mark.parametrize(
    ("fold", "message"),
    [
        ({"similarity": {"smiles": {"x": "C"}}}, "expected no user_similarity['smiles'], as the model was fitted"),
        ({"similarity": {"features": PLACES.loc[KNOWN[:1]]}}, "expected similarities of new users, found 'u00'"),
        ({"similarity": {}}, "expected user_similarity with a table or texts by name, found an empty mapping"),
        ({"similarity": {"features": PLACES.iloc[-1:, :1]}}, "of 2 columns, found 1"),
        ({}, "expected ratings of new rows, their features or similarities, found none"),
    ],
)
def test_what_is_not_known_is_said(fold: Any, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        model().fold_in(**fold)


def test_a_model_without_descriptions_says_how_to_fit_it() -> None:
    fitted = AIR.for_ratings(**SMALL, item_graph_strength=0.3)
    fitted.fit(ratings(), item_similarity=pd.DataFrame(similar(OF_ITEMS), ITEMS, ITEMS))
    assert fitted.shares_ == {}
    assert fitted.described_line_ == ""
    with pytest.raises(DataError, match="trained without a mapping: fit it with user_similarity="):
        fitted.fold_in(similarity={"features": PLACES.loc[LATER]})


def test_many_rows_are_compared_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    import air_recsys.models.given as module

    whole = AIR.for_ratings(**SMALL | FIXED).fit(ratings(), **given())
    monkeypatch.setattr(module, "_BLOCK", 7)
    blocks = AIR.for_ratings(**SMALL | FIXED).fit(ratings(), **given())
    np.testing.assert_allclose(all_of(blocks, KNOWN), all_of(whole, KNOWN), atol=1e-6)
