"""partial_fit and fold_in: new ratings, users and items without training, on the scale of `fit`."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from covering import covering
from model_cases import CPU, fails
from safetensors.numpy import load_file

from air_recsys import AIR, DMF, GlobalMean, Interactions
from air_recsys.exceptions import DataError, NotFittedError, ParameterError, UnknownIdError
from air_recsys.models import GraphRanker
from air_recsys.models.portable import portable_fold_in

N_USERS, N_ITEMS = 30, 20
SMALL: dict[str, Any] = {"n_factors": 4, **CPU}
ITEMS = [f"i{item}" for item in range(N_ITEMS)]


def ratings() -> pd.DataFrame:
    """Two groups of users, two of items, a rating of 4.5 within and of 1.5 across, on a scale of 1 to 5."""
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.6)
    alike = rows % 2 == columns % 2
    values = (np.where(alike, 4.5, 1.5) + rng.normal(size=rows.size) * 0.2).clip(1, 5)
    values[[alike.argmax(), alike.argmin()]] = 5, 1  # both ends are there
    return pd.DataFrame({"user": [f"u{i}" for i in rows], "item": [f"i{j}" for j in columns], "rating": values})


def of(user: Any = "eve", items: Any = ("i0",), values: Any = (5.0,)) -> pd.DataFrame:
    return pd.DataFrame({"user": user, "item": items, "rating": values})


@pytest.fixture(scope="module")
def trained() -> AIR:
    return AIR.for_ratings(**SMALL).fit(ratings())


@pytest.fixture
def model(trained) -> Any:
    return copy.deepcopy(trained)


# -------------------------------------------------------------------- what new ratings do


def test_a_new_user_gets_the_scores_of_its_fold_in(model):
    new = of("eve", ["i0", "i2", "i1"], [5.0, 4.5, 1.0])
    folded = model.fold_in(new)
    model.partial_fit(new)
    found, expected = (each.predict("eve", model.interactions_.item_ids) for each in (model, folded))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert model.predict("eve", "i4") > 3.5 > model.predict("eve", "i5")
    shown = model.recommend("eve", n=N_ITEMS)
    assert (shown.source == "model").all()
    assert set(shown["item"]) == set(ITEMS) - {"i0", "i1", "i2"}


def test_known_users_and_items_keep_their_factors_and_edges(model, trained):
    model.recommend("u0")  # fills the caches
    model.partial_fit(of("eve", ["i0", "new item"], [5.0, 4.0]))
    np.testing.assert_array_equal(model.user_factors_[:N_USERS], trained.user_factors_)
    np.testing.assert_array_equal(model.item_factors_[:N_ITEMS], trained.item_factors_)
    assert model.interactions_.user_ids.tolist() == [*trained.interactions_.user_ids, "eve"]
    assert model.interactions_.item_ids.tolist() == [*trained.interactions_.item_ids, "new item"]
    assert (len(model.user_graph_), len(model.item_graph_)) == (N_USERS + 1, N_ITEMS + 1)
    assert model.user_adjacency_[[N_USERS]].nnz == 0
    known = model.user_adjacency_.toarray()[:N_USERS, :N_USERS]
    np.testing.assert_array_equal(known, trained.user_adjacency_.toarray())


def test_new_ratings_move_a_known_user_and_replace_those_of_the_same_pairs(model):
    before = model.predict("u1", ["i0", "i2", "i4"])
    values = [4.5 if j % 2 == 0 else 1.5 for j in range(N_ITEMS)]
    model.partial_fit(of("u1", ITEMS, values))  # u1 changes sides
    assert (model.predict("u1", ["i0", "i2", "i4"]) > before + 0.8).all()  # its old neighbours hold it back
    assert model.interactions_.n_ratings == len(ratings()) + N_ITEMS - (ratings().user == "u1").sum()
    frame = model.interactions_.to_frame().set_index(["user", "item"])["rating"]
    assert frame.loc["u1"].reindex(ITEMS).tolist() == values


def test_a_new_item_is_scored_by_taste_also_of_users_who_are_new(model):
    fans, others = ([f"u{i}" for i in range(start, 12 + start, 2)] for start in (0, 1))
    model.partial_fit(of(fans + others, "new item", [5.0] * 6 + [1.0] * 6))
    assert model.predict("u20", "new item")[0] > model.predict("u21", "new item")[0] + 1
    of_fans = [of(f"n{i}", ["i0", "i2", "i1", "another"], [5.0, 5.0, 1.0, 5.0]) for i in range(5)]
    model.partial_fit(pd.concat(of_fans))
    assert model.predict("u20", "another")[0] > 3.5


def test_one_call_is_as_good_as_many_also_of_a_saved_model(model, tmp_path):
    parts = [of(f"n{i}", ["i0", "i1", "i2"], [5.0, 1.0 + i, 4.0]) for i in range(4)]
    once = copy.deepcopy(model).partial_fit(pd.concat(parts))
    for part in parts[:3]:
        model.partial_fit(part)
    loaded = AIR.load(model.save(tmp_path / "model.safetensors")).partial_fit(parts[3])
    model.partial_fit(parts[3])
    np.testing.assert_allclose(model.user_factors_, once.user_factors_, atol=0.01)  # graph_reg="auto" counts ratings
    np.testing.assert_allclose(loaded.predict("n3", ITEMS), model.predict("n3", ITEMS), rtol=1e-6)


def test_weights_are_kept(model):
    table = of("eve", ["i0", "i1"], [5.0, 1.0]).assign(weight=[3.0, 0.5])
    model.partial_fit(Interactions.from_frame(table, weight="weight"))
    assert model.interactions_.weights[-2:].tolist() == [3.0, 0.5]
    assert set(model.interactions_.weights[:-2]) == {1.0}


@pytest.mark.parametrize(
    "bad", [of("eve", ["i0", "i0"], [1.0, 2.0]), of(values=[np.nan]), pd.DataFrame({"user": [1]}), "text"]
)
def test_bad_data_changes_nothing(model, bad):
    before = model.interactions_
    with pytest.raises(DataError):
        model.partial_fit(bad)
    assert model.interactions_ is before


# -------------------------------------------------------------------- the rules of fit, and its scale

SOLVERS: dict[str, dict[str, Any]] = {
    "variational": {"n_sweeps": 3},
    "langevin": {"solver": "langevin", "n_sweeps": 10},
    "adam": {"solver": "adam", "n_epochs": 20},
}


def table(values: tuple[float, ...] = (1, 2, 3, 4, 5)) -> pd.DataFrame:
    users, items = np.divmod(np.arange(80), 8)
    shown = np.resize(values, users.size)
    np.random.default_rng(0).shuffle(shown)
    return of([f"u{user}" for user in users], [f"i{item}" for item in items], shown)


@pytest.fixture(scope="module")
def on_a_scale() -> dict[str, AIR]:
    return {name: AIR.for_ratings(**CPU, n_factors=2, **options).fit(table()) for name, options in SOLVERS.items()}


@pytest.fixture
def scaled(on_a_scale) -> dict[str, Any]:
    return {name: copy.copy(model) for name, model in on_a_scale.items()}


def in_every_form(rating: float) -> list[Any]:
    row = sp.csr_array(([rating], ([0], [0])), shape=(1, 8))
    return [of(values=[rating]), Interactions.from_frame(of(values=[rating]), allow_negative=True), row]


@pytest.mark.parametrize(("rating", "solver"), covering([100, 5.1, 0.5, 0, -1, 1e20, 1e39], SOLVERS))
def test_a_rating_off_the_scale_is_refused_and_changes_nothing(scaled, solver, rating):
    model = scaled[solver]
    before = model.interactions_
    message = f"expected ratings in 1..5 (the scale of the training data), found {rating:g}"
    for number, new in enumerate(in_every_form(rating)):
        for act in (model.fold_in, model.partial_fit) if number < 2 else (model.fold_in,):
            with fails(DataError, message):
                act(new)
    assert model.interactions_ is before
    assert model.predict("u0", ITEMS[:8]).max() <= 5


@pytest.mark.parametrize(("rating", "solver"), covering([1, 5, 2.5, 5 * (1 + 1e-7)], SOLVERS))
def test_ratings_on_the_scale_are_taken(scaled, solver, rating):
    for new in in_every_form(rating):
        assert np.isfinite(scaled[solver].fold_in(new).user_factors_).all()
    assert scaled[solver].partial_fit(of(values=[rating])).interactions_.n_users == 11


@pytest.mark.parametrize(("rating", "solver"), covering([np.nan, np.inf, -np.inf], SOLVERS))
def test_ratings_and_weights_that_are_not_finite_are_refused(scaled, solver, rating):
    model = scaled[solver]
    table, _, row = in_every_form(5.0)
    spoilt = sp.csr_array(([rating], ([0], [0])), shape=(1, 8))
    for act, new in ((model.fold_in, table.assign(rating=rating)), (model.fold_in, spoilt)):
        with fails(DataError, "ratings must be finite"):
            act(new)
    with fails(DataError, "ratings must be finite"):
        model.partial_fit(table.assign(rating=rating))
    with fails(DataError, "weights must be finite and >= 0"):
        model.fold_in(row, weights=np.array([rating]))
    with fails(DataError, "weights must be finite and >= 0"):
        model.fold_in(row, weights=np.array([-1.0]))


@pytest.mark.parametrize("solver", SOLVERS)
def test_clipping_stays_that_of_fit_also_in_a_file(scaled, solver, tmp_path):
    """A rating of 100 once let every score rise, and new ratings once let the range shrink."""
    model = scaled[solver]
    pairs = np.repeat([f"u{user}" for user in range(10)], 8), np.tile(ITEMS[:8], 10)
    model.partial_fit(table().assign(rating=3.0))
    assert model.interactions_.ratings.max() == 3
    loaded = AIR.load(model.save(tmp_path / "model.air"))
    for each in (model, loaded):
        assert each.rating_scale_ == (1, 5)
        each.partial_fit(of(values=[5.0]))
        with fails(DataError, "expected ratings in 1..5"):
            each.partial_fit(of(values=[6.0]))
        scores = each.predict(*pairs)
        assert 1 <= scores.min() <= scores.max() <= 5


@pytest.fixture
def of_likes() -> AIR:
    return AIR.for_interactions(n_epochs=20, unobserved_weight=0.1, **CPU).fit(table((1.0,)))


def test_negative_ratings_are_refused_where_the_training_data_have_none_and_taken_where_they_do(of_likes):
    for new in in_every_form(-1.0)[:2]:
        for act in (of_likes.fold_in, of_likes.partial_fit):
            with fails(DataError, "ratings must be >= 0, as those of the training data are, found -1"):
                act(new)
    both = Interactions.from_frame(table((-2.0, 0.0, 3.0)), allow_negative=True)
    model = AIR.for_ratings(**CPU, n_factors=2, n_sweeps=3, clip=False).fit(both)  # the scale counts all the same
    assert model.partial_fit(of(values=[-2.0])).interactions_.n_users == 11
    with fails(DataError, "expected ratings in -2..3"):
        model.partial_fit(of(values=[-3.0]))


def test_ratings_that_are_all_equal_have_no_scale_but_that_of_finite_numbers(of_likes, tmp_path):
    before = of_likes.interactions_
    for act in (of_likes.fold_in, of_likes.partial_fit):
        with np.errstate(all="ignore"), fails(DataError, "near those of the training data"):
            act(of(values=[1e300]))
    assert of_likes.interactions_ is before
    assert "ratings" in load_file(of_likes.save(tmp_path / "model.air"))
    of_likes.partial_fit(of(values=[2.0])).partial_fit(of("joe", values=[0.0]))
    assert of_likes.interactions_.n_users == 12


def test_a_ranker_takes_any_values_but_negative_ones():
    model = GraphRanker(settings={}, n_factors=2).fit(table((1.0,)))
    assert len(model.fold_in(of(values=[7.0])).recommend("eve", 2)) == 2
    for rating, message in ((-1.0, "ratings must be >= 0"), (np.nan, "ratings must be finite")):
        with fails(DataError, message):
            model.fold_in(of(values=[rating]))


# -------------------------------------------------------------------- models of new rows

NEW = pd.DataFrame(
    {"user": ["eve", "eve", "eve", "fay"], "item": ["i0", "i1", "i2", "i5"], "rating": [5.0, 1.5, 4.5, 4.0]}
)


@cache
def trained_by(kind: str) -> AIR | DMF:
    settings = CPU | {"n_factors": 3}
    if kind == "objective":
        return AIR.for_ratings(**settings, solver="adam", n_epochs=30, n_batches=1).fit(ratings())
    if kind == "dmf":
        return DMF(**settings, n_epochs=30).fit(ratings())
    if kind == "features":
        return AIR.for_ratings(**settings).fit(
            ratings(), item_features=pd.DataFrame({"group": np.arange(N_ITEMS) % 2}, index=ITEMS)
        )
    return AIR.for_ratings(**settings, solver=kind).fit(ratings())


@pytest.fixture(scope="module", params=["variational", "langevin", "objective", "dmf", "features"])
def some(request):
    return trained_by(request.param)


def test_new_users_are_what_partial_fit_makes_of_them(some):
    alone, beside, one = some.fold_in(NEW), copy.copy(some).partial_fit(NEW), some.fold_in(NEW[:3])
    items = some.interactions_.item_ids
    np.testing.assert_allclose(one.predict("eve", items), alone.predict("eve", items), rtol=1e-5)
    for user in ("eve", "fay"):
        np.testing.assert_allclose(alone.predict(user, items), beside.predict(user, items), rtol=1e-4)
        lists = [each.recommend(user, n=8)["item"].tolist() for each in (alone, beside)]
        assert lists[0] == lists[1]
        found, expected = alone.explain(user, "i4"), beside.explain(user, "i4")
        assert found.parts() == pytest.approx(expected.parts(), abs=1e-3)
        assert found.items["item"].tolist() == expected.items["item"].tolist()
    if some.knows_deviations_:
        found, expected = (each.predict("eve", items, return_std=True)[1] for each in (alone, beside))
        np.testing.assert_allclose(found, expected, rtol=0.2 if some.solver.name == "langevin" else 1e-3)
    assert alone.interactions_.n_ratings == len(NEW)
    assert alone.rating_scale_ == some.rating_scale_


def test_the_model_stays_and_a_seen_item_is_left_out(some):
    before = some.predict("u0", some.interactions_.item_ids)
    lists = some.fold_in(NEW).recommend("eve", n=N_ITEMS)
    assert set(NEW["item"][:3]).isdisjoint(lists["item"])
    assert (lists["source"] == "model").all()
    assert "eve" not in some.interactions_.user_ids
    np.testing.assert_array_equal(some.predict("u0", some.interactions_.item_ids), before)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"item": "new"}, UnknownIdError, "1 item id.* 'new'; partial_fit"),
        ({"rating": 9.0}, DataError, "expected ratings in 1..5"),
    ],
)
def test_what_is_not_known_is_refused(some, change, error, message):
    new = NEW[3:].assign(**change)
    with pytest.raises(error, match=message):
        some.fold_in(new)


def test_new_items_are_solved_from_known_users_and_answer_all_questions(some):
    fans = of([f"u{i}" for i in range(10)], "new", [4.5 if i % 2 == 0 else 1.5 for i in range(10)])
    alone = some.fold_in(fans, side="item")
    users = some.interactions_.users
    places = np.zeros(10, int), users.lookup(fans["user"])
    rows = sp.csr_array((fans["rating"], places), shape=(1, len(users)))
    solved = some.row_solver("item").solve(rows)
    np.testing.assert_allclose(alone.item_factors_, solved.factors, atol=1e-6)
    np.testing.assert_allclose(alone.item_biases_, solved.biases, atol=1e-6)
    np.testing.assert_array_equal(alone.user_factors_, some.user_factors_)
    listed = alone.recommend(["u20", "nobody"])
    assert listed["source"].tolist() == ["model", "popular"]
    np.testing.assert_allclose(listed["score"][0], alone.predict("u20", "new")[0])
    assert alone.predict("u20", "i3", unknown="mean") == some.predict("u20", "i99", unknown="mean")
    found = alone.explain("u20", "new")
    assert found.total() == pytest.approx(found.score, abs=1e-4)
    own = some.explain("u20", "i0").items["item"]
    assert set(found.items["item"]) <= set(some.interactions_.item_ids)
    assert set(found.items["item"]) == {*own, "i0"}
    assert (alone.interactions_.n_users, alone.interactions_.n_items) == (len(users), 1)


def test_means_for_unknown_ids_are_those_of_the_training(some):
    alone = some.fold_in(NEW)
    for user, item in (("nobody", "i3"), ("nobody", "no item")):
        assert alone.predict(user, item, unknown="mean") == some.predict(user, item, unknown="mean")
    pd.testing.assert_frame_equal(alone.recommend("nobody", 5), some.recommend("nobody", 5))


def test_a_model_of_new_rows_is_asked_and_no_more(some, tmp_path):
    alone = some.fold_in(sp.csr_array(([5.0], ([0], [0])), shape=(1, N_ITEMS)))
    for act in (
        lambda: alone.partial_fit(NEW),
        lambda: alone.fold_in(NEW),
        lambda: alone.forget(users=0),
        lambda: alone.save(tmp_path / "model.air"),
    ):
        with fails(ParameterError, "this model holds new users alone"):
            act()


def test_a_row_that_is_tied_to_all_others_is_refused():
    model = AIR.for_completion(n_epochs=3, tv_reg=0.1, **CPU).fit(ratings())
    with pytest.raises(ParameterError, match="tie a row to all others"):
        model.fold_in(NEW)


def test_best_items_are_the_list_without_its_table(some):
    alone = some.fold_in(NEW)
    best, frame = alone.best_items("eve", 4, items=["i3", "i4", "i6", "i8", "i1"]), alone.recommend("eve", n=N_ITEMS)
    expected = frame[frame["item"].isin(["i3", "i4", "i6", "i8"])]
    assert best.items.tolist() == expected["item"].tolist()  # i1 is rated
    np.testing.assert_allclose(best.scores, expected["score"])
    assert (best.deviations is not None) == some.knows_deviations_
    if best.deviations is not None:
        np.testing.assert_allclose(best.deviations, alone.predict("eve", best.items, return_std=True)[1])
    with pytest.raises(UnknownIdError, match=r"1 user id.* 'zoe'"):
        alone.best_items("zoe")


def test_an_item_taken_in_later_is_listed():
    grown = copy.copy(trained_by("variational"))
    grown.recommend("u0")
    lists = grown.partial_fit(of(["u0", "u1"], "new", 5.0)).recommend("u0", n=N_ITEMS + 1, exclude_seen=False)
    assert "new" in lists["item"].tolist()
    assert len(lists) == N_ITEMS + 1


# -------------------------------------------------------------------- numbers for what NumPy makes of them

RATINGS = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((6, 5)))
OWN = sp.csr_array(([5.0, 2.0, 1.0], ([0, 0, 0], [0, 3, 7])), shape=(1, 10))


def test_least_squares_with_the_numbers_of_the_objective_are_fold_in():
    model = AIR.for_ratings(solver="adam", n_epochs=3, n_factors=3, **CPU).fit(RATINGS)
    found = portable_fold_in(model)
    assert (found["kind"], found["range"], found["limit"]) == ("objective", [1, 5], "range")
    inputs = np.column_stack([found["factors"][OWN.indices].astype(float), np.ones(3)])
    matrix = inputs.T @ inputs
    matrix[:-1, :-1] += found["base"]
    matrix[-1, -1] += found["bias_decay"]
    row = np.linalg.solve(matrix, inputs.T @ (OWN.data - found["offsets"][OWN.indices]))
    expected = model.fold_in(OWN)
    np.testing.assert_allclose(row[:-1], expected.user_factors_[0], atol=1e-6)
    assert row[-1] == pytest.approx(expected.user_biases_[0])


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_the_arrays_of_a_posterior_go_together(solver):
    model = AIR.for_ratings(solver=solver, n_factors=2, n_sweeps=10, **CPU)
    found = portable_fold_in(model.fit(RATINGS, user_features=np.arange(12.0)[:, None]))
    (draws, n_items, width), features_of_pattern = found["items"].shape, found["basis"].shape[1]
    assert (n_items, width) == (10, 3)
    assert found["weights"].shape == (draws, features_of_pattern + 2, width)  # without those of the users' features
    assert found["precisions"].shape == (draws, width, width)
    assert found["noise"].shape == (10,)
    sampled = solver == "langevin"
    assert (found["covariances"] is None) == sampled == (draws > 1)
    assert all((found[name] is not None) == sampled for name in ("factors", "biases", "maps", "errors"))
    assert found["shifts"] is None


def test_pushed_scores_and_many_values_are_told_and_models_that_fold_nobody_in():
    binary = AIR.for_interactions(n_epochs=3, device="cpu").fit(np.kron(np.eye(2), np.ones((4, 4))))
    assert portable_fold_in(binary)["limit"] == "pushed"
    many = AIR.for_ratings(n_sweeps=2, clip=False, device="cpu").fit(np.random.default_rng(0).random((8, 9)))
    found = portable_fold_in(many)
    assert (found["limit"], found["values"]) == ("none", None)
    with pytest.raises(NotFittedError):
        portable_fold_in(GraphRanker())
    with pytest.raises(ParameterError, match="folds new users in, found GlobalMean"):
        portable_fold_in(GlobalMean().fit(RATINGS))
