"""Models of new users: what a copy is after `partial_fit`, whoever else was trained."""

import copy

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, DMF
from air_recsys.exceptions import DataError, ParameterError, UnknownIdError

N_USERS, N_ITEMS = 30, 20


def ratings() -> pd.DataFrame:
    """Two groups of users, two of items, on a scale of 1 to 5."""
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.6)
    values = np.where(rows % 2 == columns % 2, 4.5, 1.5) + rng.normal(size=rows.size) * 0.3
    users, items = [f"u{i}" for i in rows], [f"i{j}" for j in columns]
    return pd.DataFrame({"user": users, "item": items, "rating": values.clip(1, 5)})


NEW = pd.DataFrame(
    {"user": ["eve", "eve", "eve", "fay"], "item": ["i0", "i1", "i2", "i5"], "rating": [5.0, 1.5, 4.5, 4.0]}
)


def known_groups(side: str, size: int) -> pd.DataFrame:
    return pd.DataFrame({"group": [i % 2 for i in range(size)]}, index=[f"{side}{i}" for i in range(size)])


def trained(kind: str) -> AIR | DMF:
    settings = {"device": "cpu", "random_state": 0, "n_factors": 3}
    if kind == "objective":
        return AIR.for_ratings(**settings, solver="adam", n_epochs=30, n_batches=1).fit(ratings())
    if kind == "dmf":
        return DMF(**settings, n_epochs=30).fit(ratings())
    if kind == "features":
        return AIR.for_ratings(**settings).fit(ratings(), item_features=known_groups("i", N_ITEMS))
    return AIR.for_ratings(**settings, solver=kind).fit(ratings())


@pytest.fixture(scope="module", params=["variational", "langevin", "objective", "dmf", "features"])
def model(request):
    return trained(request.param)


def test_new_users_are_what_partial_fit_makes_of_them(model):
    alone, beside = model.new_users(NEW), copy.copy(model).partial_fit(NEW)
    items = model.interactions_.item_ids
    for user in ("eve", "fay"):
        np.testing.assert_allclose(alone.predict(user, items), beside.predict(user, items), rtol=1e-4)
        lists = [each.recommend(user, n=8)["item"].tolist() for each in (alone, beside)]
        assert lists[0] == lists[1]
        found, expected = alone.explain(user, "i4"), beside.explain(user, "i4")
        assert found.parts() == pytest.approx(expected.parts(), abs=1e-3)
        assert found.items["item"].tolist() == expected.items["item"].tolist()
    if model.knows_deviations_:
        found, expected = (each.predict("eve", items, return_std=True)[1] for each in (alone, beside))
        np.testing.assert_allclose(found, expected, rtol=0.2 if model.solver.name == "langevin" else 1e-3)


def test_the_model_stays_and_a_seen_item_is_left_out(model):
    before = model.predict("u0", model.interactions_.item_ids)
    lists = model.new_users(NEW).recommend("eve", n=N_ITEMS)
    assert set(NEW["item"][:3]).isdisjoint(lists["item"])
    assert (lists["source"] == "model").all()
    assert "eve" not in model.interactions_.user_ids
    np.testing.assert_array_equal(model.predict("u0", model.interactions_.item_ids), before)


def test_a_posterior_solves_new_users_alone():
    model = trained("variational")
    assert model.new_users(NEW).interactions_.n_ratings == len(NEW)
    assert model.new_users(NEW).rating_scale_ == model.rating_scale_


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"user": "u3"}, DataError, "expected new users, found 1 that the model knows"),
        ({"item": "new"}, UnknownIdError, "1 item id.* 'new'; partial_fit"),
        ({"rating": 9.0}, DataError, "expected ratings in 1..5"),
    ],
)
def test_what_is_not_new_or_not_known_is_refused(model, change, error, message):
    new = NEW[3:].assign(**change)
    with pytest.raises(error, match=message):
        model.new_users(new)


def test_a_row_that_is_tied_to_all_others_is_refused():
    model = AIR.for_completion(n_epochs=3, tv_reg=0.1, device="cpu", random_state=0).fit(ratings())
    with pytest.raises(ParameterError, match="tie a row to all others"):
        model.new_users(NEW)


def test_a_new_user_alone_is_what_it_is_among_others(model):
    alone, together = model.new_users(NEW[:3]), model.new_users(NEW)
    items = model.interactions_.item_ids
    np.testing.assert_allclose(alone.predict("eve", items), together.predict("eve", items), rtol=1e-5)


def test_best_items_are_the_list_without_its_table(model):
    alone = model.new_users(NEW)
    best, frame = alone.best_items("eve", 4, items=["i3", "i4", "i6", "i8", "i1"]), alone.recommend("eve", n=N_ITEMS)
    expected = frame[frame["item"].isin(["i3", "i4", "i6", "i8"])]
    assert best.items.tolist() == expected["item"].tolist()  # i1 is rated
    np.testing.assert_allclose(best.scores, expected["score"])
    assert (best.deviations is not None) == model.knows_deviations_
    if best.deviations is not None:
        np.testing.assert_allclose(best.deviations, alone.predict("eve", best.items, return_std=True)[1])
    with pytest.raises(UnknownIdError, match=r"1 user id.* 'zoe'"):
        alone.best_items("zoe")


def test_an_item_taken_in_later_is_listed():
    grown = trained("variational").new_users(NEW)
    grown.recommend("eve")
    grown.partial_fit(pd.DataFrame({"user": ["eve", "fay"], "item": ["new", "new"], "rating": [5.0, 5.0]}))
    lists = grown.recommend("eve", n=N_ITEMS + 1, exclude_seen=False)
    assert "new" in lists["item"].tolist()
    assert len(lists) == N_ITEMS + 1
