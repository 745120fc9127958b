"""`ImplicitAIR` under implicit's contract, with the objective of ALS and graphs, and input at the edges.

What it does untouched, with the softmax, is in `test_implicit_softmax.py`.
"""

import copy
import io
import json
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from covering import covering
from host_cases import COLUMNS, ITEMS, LIKES, N_ITEMS, N_USERS, USERS, assert_same, fails, planted
from implicit.cpu.als import AlternatingLeastSquares, calculate_loss
from implicit.cpu.matrix_factorization_base import MatrixFactorizationBase
from implicit.utils import ParameterWarning

from air_recsys.adapters._implicit_files import digests_of
from air_recsys.adapters.implicit import ImplicitAIR, leave_k_out_split
from air_recsys.exceptions import DataError, DataWarning, DeviceError, ModelFileError, NotFittedError
from air_recsys.exceptions import ParameterError as OurParameterError
from air_recsys.storage.tensor_files import to_sealed_json

SMALL = {"factors": 6, "regularization": 1.0, "alpha": 2.0, "iterations": 10, "use_gpu": False, "num_threads": 1}
NO_GRAPHS = {"user_graph_reg": 0.0, "item_graph_reg": 0.0}
AUTO = {"factors": "auto", "regularization": "auto", "alpha": "auto", "loss": "squared"}
SOFTMAX = AUTO | {"loss": "softmax"}
both_losses = pytest.mark.parametrize("loss", [{}, SOFTMAX], ids=["squared", "softmax"])


def small(**parameters) -> ImplicitAIR:
    return ImplicitAIR(**SMALL | {"random_state": 0} | parameters)


def fitted(likes=LIKES, **parameters) -> ImplicitAIR:
    model = small(**parameters)
    model.fit(likes, show_progress=False)
    return model


@pytest.fixture(scope="module")
def model() -> ImplicitAIR:
    return fitted()


def als_with(model: ImplicitAIR) -> AlternatingLeastSquares:
    """ALS with the parameters and the factors of another model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # OpenBLAS has threads
        als = AlternatingLeastSquares(model.factors, model.regularization, model.alpha, num_threads=1, random_state=0)
    als.user_factors, als.item_factors = model.user_factors, model.item_factors
    return als


def trained_als(model: ImplicitAIR, likes: sp.csr_matrix) -> AlternatingLeastSquares:
    als = als_with(model)
    als.user_factors = als.item_factors = None
    als.fit(likes, show_progress=False)
    return als


def test_without_graphs_the_loss_is_that_of_als_and_comes_as_low():
    losses = []
    model = small(calculate_training_loss=True, iterations=15, **NO_GRAPHS)
    model.fit(LIKES, show_progress=False, callback=lambda *call: losses.append(call))
    loss, of_als = (
        calculate_loss(2.0 * LIKES, each.user_factors, each.item_factors, 1.0, num_threads=1)
        for each in (model, trained_als(model, LIKES))
    )
    numbers, seconds, values = zip(*losses, strict=True)
    assert numbers == tuple(range(15))
    assert min(seconds) > 0
    assert values[-1] == pytest.approx(loss, rel=1e-5)
    assert values[-1] < values[0]
    assert loss < 1.002 * of_als


def test_alpha_multiplies_the_values():
    assert_same(fitted(alpha=2.0), fitted(2.0 * LIKES, alpha=1.0))
    assert not np.allclose(fitted(alpha=2.0).user_factors, fitted(alpha=1.0).user_factors)


def test_a_seed_decides_and_a_second_fit_is_a_fresh_one(model):
    again = small(random_state=np.int64(0))
    again.fit(planted(1), show_progress=False)
    again.fit(LIKES, show_progress=False)
    assert_same(model, again)
    assert not np.array_equal(fitted(random_state=1).user_factors, model.user_factors)


def test_depth_and_precision_are_those_asked_for_and_threads_leave_no_trace():
    before = torch.get_num_threads()
    deep = fitted(depth=3, dtype=np.float64, num_threads=2, iterations=1, steps_per_iteration=2)
    deep.recommend(USERS, LIKES)
    assert torch.get_num_threads() == before
    assert deep.user_factors.dtype == deep.item_factors.dtype == np.float64
    assert deep.recalculate_user(0, LIKES[0]).dtype == np.float64


def test_the_defaults_follow_the_likes():
    wide = sp.csr_matrix(np.pad(LIKES.toarray(), ((0, 5), (2, 0))))
    model = fitted(wide, **AUTO)
    confidence = LIKES.nnz / N_USERS / 10
    edge = np.sqrt(LIKES.nnz / (N_USERS * N_ITEMS)) * (np.sqrt(N_USERS) + np.sqrt(N_ITEMS))
    assert model.settings_ == {
        "factors": N_ITEMS,
        "regularization": pytest.approx(0.6 * confidence * edge),
        "alpha": pytest.approx(confidence / LIKES.data.mean()),
    }
    assert model.item_factors.shape == (N_ITEMS + 2, N_ITEMS)
    assert (model.factors, model.regularization, model.alpha) == ("auto", "auto", "auto")
    assert fitted(**AUTO | {"factors": 5}).settings_ == model.settings_ | {"factors": 5}
    assert ImplicitAIR().settings_ is None
    assert_same(fitted(**AUTO), fitted(4 * LIKES, **AUTO))  # the unit of the values is no matter


def test_one_like_a_user_is_remembered():
    model = ImplicitAIR(use_gpu=False, random_state=1, loss="squared")
    model.fit(sp.identity(10, format="csr"), show_progress=False)
    scores = model.user_factors @ model.item_factors.T
    assert scores.diagonal().min() > 0.3
    assert np.abs(scores - np.diag(scores.diagonal())).max() < 0.01
    model = fitted(sp.identity(10, format="csr"), random_state=1, iterations=15, **SOFTMAX)
    assert (model.user_factors @ model.item_factors.T).argmax(axis=1).tolist() == list(range(10))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"alpha": "auto"}, {"factors": 6, "regularization": 1.0, "alpha": 1.0}),
        ({"regularization": "auto"}, {"factors": 6, "regularization": 0.01, "alpha": 2.0}),
        ({"factors": "auto"}, {"factors": 100, "regularization": 1.0, "alpha": 2.0}),
    ],
)
def test_the_objective_is_that_of_als_where_a_part_of_it_is_given(given, found):
    model = fitted(**given)
    assert model.settings_ == found
    assert_same(model, fitted(**found))


def targets_by_hand() -> tuple[np.ndarray, float]:
    """The target of every pair, 0 without a like, and the unit that they are counted in."""
    liked = LIKES.toarray() > 0
    raw = liked * (liked.sum(1)[:, None] ** -0.2) * (liked.sum(0) ** -0.1)
    unit = 1 / np.sqrt((raw[liked] ** 2).mean())
    return unit * raw, unit


def test_with_scaled_targets_the_loss_is_that_of_the_scaled_targets():
    losses = []
    model = small(**AUTO | NO_GRAPHS, calculate_training_loss=True, dtype=np.float64)
    model.fit(LIKES, show_progress=False, callback=lambda *call: losses.append(call[2]))
    likes = LIKES.toarray()
    trained = model.item_factors * ((likes > 0).sum(0)[:, None] ** -0.1)
    weights = np.where(likes > 0, model.settings_["alpha"] * likes, 1)
    errors = weights * (model.user_factors @ trained.T - targets_by_hand()[0]) ** 2
    penalty = model.settings_["regularization"] * ((model.user_factors**2).sum() + (trained**2).sum())
    assert losses[-1] == pytest.approx((errors.sum() + penalty) / weights.sum(), rel=1e-5)


def test_with_scaled_targets_a_new_row_is_the_minimum_of_the_scaled_objective_after_partial_fits():
    model = fitted(**AUTO | NO_GRAPHS, dtype=np.float64)
    unit, user = targets_by_hand()[1], model.recalculate_user(7, LIKES[7])
    model.partial_fit_users([N_USERS + 1], LIKES[7])
    np.testing.assert_array_equal(model.user_factors[N_USERS + 1], user)
    copied = model.recalculate_item(2, COLUMNS[2])
    model.partial_fit_items([N_ITEMS, 3], COLUMNS[[2, 5]])
    np.testing.assert_array_equal(model.item_factors[N_ITEMS], copied)
    liked, counts = [0, 3, N_ITEMS], np.r_[np.diff(COLUMNS.indptr), 0]
    counts[[N_ITEMS, 3]] = counts[[2, 5]]
    row = sp.csr_matrix((np.ones(3), ([0] * 3, liked)), shape=(1, N_ITEMS + 1))
    trained = model.item_factors * counts[:, None] ** -0.1
    weights, targets = np.ones(N_ITEMS + 1), np.zeros(N_ITEMS + 1)
    weights[liked] = model.settings_["alpha"]
    targets[liked] = unit * 3**-0.2 * counts[liked] ** -0.1
    penalty = model.settings_["regularization"] * np.eye(model.settings_["factors"])
    expected = np.linalg.solve((trained.T * weights) @ trained + penalty, (trained.T * weights) @ targets)
    np.testing.assert_allclose(model.recalculate_user(0, row), expected, rtol=1e-6, atol=1e-9)


# -------------------------------------------------------------------- what fit takes


def test_stored_zeros_are_no_likes_and_duplicates_add_up(model):
    coo = LIKES.tocoo()
    users, items = (
        np.r_[coo.row, coo.row[0], 0],
        np.r_[coo.col, coo.col[0], np.flatnonzero(LIKES[0].toarray() == 0)[0]],
    )
    split = np.r_[coo.data, coo.data[0] / 2, 0.0]
    split[0] /= 2
    order = np.argsort(users, kind="stable")
    starts = np.searchsorted(users[order], np.arange(N_USERS + 1))
    raw = sp.csr_matrix((split[order], items[order], starts), shape=LIKES.shape)
    assert raw.nnz == LIKES.nnz + 2
    before = raw.copy()
    assert_same(model, fitted(raw))
    np.testing.assert_array_equal(raw.data, before.data)


@both_losses
def test_empty_users_and_items_have_zeros_and_change_nothing(loss):
    wide = sp.csr_matrix(np.pad(LIKES.toarray(), ((2, 1), (1, 1))))
    model, padded = fitted(**loss), fitted(wide, **loss)
    np.testing.assert_allclose(padded.user_factors[2:-1], model.user_factors, atol=1e-5)
    np.testing.assert_allclose(padded.item_factors[1:-1], model.item_factors, atol=1e-5)
    assert not padded.user_factors[[0, 1, -1]].any()
    assert not padded.item_factors[[0, -1]].any()
    assert padded.item_graph_.neighbors(0).empty
    moved = padded.item_graph_.to_scipy()[1:-1, 1:-1]
    np.testing.assert_allclose(moved.toarray(), model.item_graph_.to_scipy().toarray(), atol=1e-5)
    _, scores = padded.recommend(2, wide[2], N=N_ITEMS + 2, filter_already_liked_items=False)
    assert np.count_nonzero(scores == np.finfo(scores.dtype).min) == 2  # nobody has them: last
    assert 0 not in padded.similar_items(1, N=10)[0]


@pytest.mark.parametrize(("shape", "loss"), covering([(1, 5), (5, 1), (1, 1), (3, 3)], [{}, SOFTMAX]))
def test_small_matrices(shape, loss):
    tiny = fitted(sp.csr_matrix(np.ones(shape)), **loss)
    ids, scores = tiny.recommend(0, sp.csr_matrix(np.zeros((1, shape[1]))), N=3)
    assert len(ids) == min(3, shape[1])
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(("value", "shown"), [(-1.0, "-1"), (np.nan, "nan"), (np.inf, "inf")])
def test_values_that_are_no_confidence_are_refused(model, value, shown):
    broken = sp.csr_matrix(([1.0, value, 2.0], ([0, 1, 2], [0, 3, 1])), shape=(3, 4))
    message = f"confidences must be finite and >= 0, found 1 that are not, the first in row 1, column 3: {shown}"
    for refuse in (small().fit, lambda rows: model.partial_fit_users([0, 1, 2], rows)):
        with fails(DataError, message):
            refuse(broken)


def test_a_fit_needs_likes_in_a_sparse_matrix():
    with fails(DataError, "expected at least one value > 0, found none in a matrix of shape (3, 4)"):
        small().fit(sp.csr_matrix(([0.0], ([1], [1])), shape=(3, 4)))
    for other in (LIKES.toarray(), None, sp.coo_array(np.ones(3))):
        with fails(DataError, f"expected the matrix as a 2-D SciPy sparse matrix, found {type(other).__name__}"):
            small().fit(other)
    with fails(DataError, "Interactions.from_frame(frame, rating=None).to_csr() is one"):
        small().fit(pd.DataFrame({"user": [1], "item": [2]}))
    with fails(OurParameterError, "callback must be a function or None, found 3"):
        small().fit(LIKES, callback=3)  # type: ignore


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"steps_per_iteration": 1.5}, "steps_per_iteration must be an integer >= 1, found 1.5"),
        ({"factors": "many"}, "factors must be \"auto\" or an integer >= 1, found 'many'"),
        ({"alpha": None}, "alpha must be a number > 0, found None"),
        ({"user_graph_reg": "auto"}, "user_graph_reg must be a number >= 0, found 'auto'"),
        ({"dtype": np.float16}, "dtype must be one of 'float32', 'float64', found 'float16'"),
        ({"learning_rate": 0}, "learning_rate must be a number > 0, found 0"),
        ({"graph_neighbors": 0}, "graph_neighbors must be an integer >= 1, found 0"),
        ({"use_gpu": "yes"}, "use_gpu must be one of None, False, True, found 'yes'"),
        ({"use_gpu": False, "device": "cpu"}, "give use_gpu or device, found use_gpu=False and device='cpu'"),
        ({"loss": "hinge"}, "loss must be one of 'auto', 'softmax', 'squared', found 'hinge'"),
        ({"loss": "softmax", "depth": 3}, "loss='softmax' does not read regularization, alpha, depth: leave them out"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    with fails(OurParameterError, message):
        fitted(**parameters)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_not_replaced():
    with pytest.raises(DeviceError):
        fitted(use_gpu=True)


# -------------------------------------------------------------------- recommendations


@pytest.mark.order
@pytest.mark.parametrize(
    ("threads", "more"),
    [(0, {"N": 3}), (1, {"filter_already_liked_items": False}), (2, {"filter_items": [3, 4, 5]})],
)
def test_many_users_get_what_implicit_finds(model, threads, more):
    users = np.random.default_rng(0).permutation(N_USERS)
    model.num_threads = threads
    ids, scores = model.recommend(users, LIKES[users], **more)
    expected = MatrixFactorizationBase.recommend(model, users, LIKES[users], **more)
    assert ids.dtype == expected[0].dtype
    assert scores.dtype == expected[1].dtype
    np.testing.assert_array_equal(ids, expected[0])
    np.testing.assert_allclose(scores, expected[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrong", [N_USERS, -1])
def test_ids_out_of_range_are_index_errors(model, wrong):
    for queried in (wrong, [0, wrong], [0.5], "0"):
        rows = sp.csr_matrix((1 if np.isscalar(queried) else len(queried), N_ITEMS))
        for ask, kind in (
            (lambda ids, rows=rows: model.recommend(ids, rows), "userid"),
            (model.similar_users, "userid"),
            (model.similar_items, "itemid"),
        ):
            with fails(IndexError, f"{kind} must"):
                ask(queried)
    for name, chosen in (("filter_items", [1, wrong]), ("items", [wrong])):
        for ask in (model.similar_items, lambda item, **more: model.recommend(item, LIKES[0], **more)):
            with fails(IndexError, f"{name} must lie in 0..{N_ITEMS - 1}, found {wrong}"):
                ask(0, **{name: chosen})


@pytest.mark.order
def test_lists_are_no_longer_than_there_are_items_or_users(model):
    for users in (np.array([0]), np.arange(70)):
        ids, scores = model.recommend(users, LIKES[users], N=1000)
        assert ids.shape == scores.shape == (users.size, 1000)  # implicit's evaluation reads them all
        assert (ids[:, N_ITEMS:] == -1).all()
        ids, scores = ids[:, :N_ITEMS], scores[:, :N_ITEMS]
        for row, user in enumerate(users):
            liked = set(LIKES[user].indices)
            assert set(ids[row, N_ITEMS - len(liked) :]) == liked  # last, as implicit has it
    ids, scores = model.similar_users([3, 4], N=1000)
    assert ids.shape == (2, N_USERS)
    assert ids[:, 0].tolist() == [3, 4]
    np.testing.assert_allclose(scores[:, 0], 1, rtol=1e-5)
    for kind in ("similar_users", "similar_items"):
        (_, scores), (_, expected) = (
            getattr(model, kind)([3, 4]),
            getattr(MatrixFactorizationBase, kind)(model, [3, 4]),
        )
        np.testing.assert_allclose(scores, expected, rtol=1e-5)
    assert len(model.similar_items(0, N=1000)[0]) == N_ITEMS
    assert len(model.similar_items(0, N=9, items=[1, 5])[0]) == 2
    with fails(OurParameterError, "N must be an integer >= 1, found 0"):
        model.similar_items(0, N=0)


def test_rows_have_to_fit_users_and_items(model):
    assert len(model.recommend(0, None, filter_already_liked_items=False)[0]) == 10
    wide = sp.csr_matrix((1, N_ITEMS + 1))
    for ask, message in (
        (lambda: model.recommend(0, LIKES[[0]].tocsc()), "user_items needs to be a CSR sparse matrix"),
        (lambda: model.recommend(0, LIKES[0], items=[]), "expected items to choose from, found none"),
        (lambda: model.recommend(USERS, LIKES[:-1]), "user_items must contain 1 row for every user in userids"),
        (lambda: model.recommend(0, LIKES[0], filter_items=[1], items=[2]), "found both"),
        (lambda: model.recommend(0, wide), "expected at most 40 columns, one for each of the items, found 41"),
        (lambda: model.recalculate_user([0], wide), "expected at most 40 columns"),
    ):
        with fails(ValueError, message):
            ask()


def test_an_unfitted_model_says_so():
    model = small()
    assert (model.user_graph_, model.item_graph_) == (None, None)
    for name, arguments in {
        "recommend": (0, LIKES[0]),
        "similar_users": (0,),
        "similar_items": (0,),
        "recalculate_user": (0, LIKES[0]),
        "recalculate_item": (0, COLUMNS[0]),
        "partial_fit_users": ([0], LIKES[0]),
        "partial_fit_items": ([0], COLUMNS[0]),
        "explain": (0, LIKES, 1),
    }.items():
        with fails(NotFittedError, "this ImplicitAIR is not fitted yet: call fit first"):
            getattr(model, name)(*arguments)


def copied(n_kinds: int) -> ImplicitAIR:
    """A model whose users and items are copies of a few, so that most scores tie."""
    model, rng = fitted(), np.random.default_rng(0)
    model.user_factors = model.user_factors[rng.integers(n_kinds, size=N_USERS)]
    model.item_factors = model.item_factors[rng.integers(n_kinds, size=N_ITEMS)]
    return model


@pytest.mark.order
@pytest.mark.parametrize(
    ("n_kinds", "more"),
    [(1, {"filter_items": [0, 1, 7]}), (3, {"N": N_ITEMS}), (12, {"items": np.arange(N_ITEMS)[::-2]})],
)
def test_ties_come_in_the_order_of_the_items_for_one_user_and_for_many(n_kinds, more):
    model, users = copied(n_kinds), np.arange(N_USERS)
    batch, scores = model.recommend(users, LIKES, **more)
    few, _ = model.recommend(users[:9], LIKES[:9], **more)
    np.testing.assert_array_equal(few, batch[:9])
    for user in users:
        ids, single = model.recommend(user, LIKES[user], **more)
        np.testing.assert_array_equal(ids, batch[user])
        np.testing.assert_array_equal(single, scores[user])
        ties = np.flatnonzero(np.diff(single) == 0)
        assert (ids[ties] < ids[ties + 1]).all()


@pytest.mark.order
@pytest.mark.parametrize(
    ("n_kinds", "more"),
    covering([1, 3, 12], [{}, {"filter": [0, 5]}, {"chosen": np.arange(3, 30, 4)}, {"N": 30}]),
)
def test_copies_are_alike_in_their_order_after_the_one_that_was_asked_for(n_kinds, more):
    model = copied(n_kinds)
    for kind, factors in (("user", model.user_factors), ("item", model.item_factors)):
        ask, names = getattr(model, f"similar_{kind}s"), {"filter": f"filter_{kind}s", "chosen": f"{kind}s"}
        options = {names.get(name, name): value for name, value in more.items()}
        batch, scores = ask(np.arange(20), **options)
        for one in range(20):
            ids, single = ask(one, **options)
            np.testing.assert_array_equal(ids, batch[one])
            np.testing.assert_array_equal(single, scores[one])
            candidates = options.get(f"{kind}s", np.arange(len(factors)))
            allowed = one in candidates and one not in options.get(f"filter_{kind}s", [])
            assert bool(ids[0] == one) == allowed
            others = ids[ids != one]
            tied = np.flatnonzero(np.diff(single[ids != one]) == 0)
            assert (others[tied] < others[tied + 1]).all()


# -------------------------------------------------------------------- new rows


def test_without_graphs_new_rows_and_reasons_are_those_of_als():
    model = fitted(**NO_GRAPHS)
    als = als_with(model)
    assert (model.user_graph_, model.item_graph_) == (None, None)
    for found, expected in (
        (model.recalculate_user(USERS, LIKES), als.recalculate_user(USERS, LIKES)),
        (model.recalculate_item(ITEMS, COLUMNS), als.recalculate_item(ITEMS, COLUMNS)),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-4)
    total, top, _ = model.explain(3, LIKES, 8, N=4)
    expected_total, expected, _ = als.explain(3, LIKES, 8, N=4)
    assert total == pytest.approx(expected_total, rel=1e-4)
    assert [item for item, _ in top] == [item for item, _ in expected]
    np.testing.assert_allclose([part for _, part in top], [part for _, part in expected], rtol=1e-3)


@pytest.mark.parametrize("parameters", [AUTO | NO_GRAPHS, {"user_graph_reg": 0.0, "item_graph_reg": 5.0}])
def test_training_ends_in_the_factors_that_are_solved_for(parameters):
    model = fitted(**parameters, iterations=60, dtype=np.float64)
    np.testing.assert_allclose(model.recalculate_user(USERS, LIKES), model.user_factors, atol=1e-3)
    if not model.item_graph_reg:
        np.testing.assert_allclose(model.recalculate_item(ITEMS, COLUMNS), model.item_factors, atol=1e-3)
    assert np.abs(model.item_factors).max() > 0.1


@both_losses
def test_rows_without_likes_are_solved_to_zero(loss):
    model, rows = fitted(iterations=2, **loss), sp.csr_matrix((2, N_ITEMS))
    factors = model.recalculate_user([0, 1], rows)
    assert factors.shape == (2, model.item_factors.shape[1])
    assert not factors.any()
    assert not model.recalculate_item([0], sp.csr_matrix((1, N_USERS))).any()
    with pytest.warns(DataWarning, match="2 of 2 users have no likes: all scores are 0"):
        model.recommend([0, 1], rows, recalculate_user=True)
    assert model.explain(0, rows, 3) == (0.0, [], pytest.approx(np.zeros((0, factors.shape[1]))))


def test_rows_of_an_array_candidates_given_twice_and_one_of_them_are_taken_as_meant(model):
    array = sp.csr_array(LIKES)
    np.testing.assert_array_equal(model.recommend([3, 5], array[[3, 5]])[0], model.recommend([3, 5], LIKES[[3, 5]])[0])
    with fails(DataError, "found coo_array of 1 dimension(s): matrix[[row]] keeps two"):
        model.recommend(3, array[3])
    free = {"filter_already_liked_items": False}
    assert sorted(model.recommend(3, None, items=[5, 4, 5, 7, 7], **free)[0]) == [4, 5, 7]
    assert sorted(model.similar_items(5, items=[5, 4, 5])[0]) == [4, 5]
    assert model.recommend(3, None, items=7, **free)[0].tolist() == [7]
    assert 7 not in model.recommend(3, None, N=N_ITEMS - 1, filter_items=7, **free)[0]


def test_a_transposed_matrix_in_fit_is_said():
    model = fitted(sp.csr_matrix(LIKES[:, :30].T), iterations=1)
    with pytest.warns(DataWarning, match="is the matrix of fit transposed"):
        model.recommend(3, LIKES[3, :30])


def test_ids_of_a_partial_fit_are_positions_each_once(model):
    with fails(DataError, "expected each of the userids once, found one twice"):
        model.partial_fit_users([5, 5], LIKES[[3, 4]])
    with fails(IndexError, "userids must lie in 0..2147483646"):
        model.partial_fit_users([5, 1_405_380_000_000], LIKES[[3, 4]])


def test_partial_fits_make_room_and_forget_what_has_changed():
    model = fitted()
    old_users, old_items = model.user_factors, model.item_factors
    model.similar_items(0), model.similar_users(0), model.recalculate_user(0, LIKES[0])  # which are kept
    model.partial_fit_users([1, N_USERS + 2], LIKES[[4, 7]])
    assert model.user_factors.shape == (N_USERS + 3, 6)
    assert not model.user_factors[[N_USERS, N_USERS + 1]].any()
    np.testing.assert_array_equal(model.user_factors[[1, N_USERS + 2]], model.recalculate_user([0, 1], LIKES[[4, 7]]))
    np.testing.assert_array_equal(np.delete(model.user_factors[:N_USERS], 1, axis=0), np.delete(old_users, 1, axis=0))
    model.partial_fit_items([N_ITEMS], COLUMNS[[2]])
    assert model.item_factors.shape == (N_ITEMS + 1, 6)
    np.testing.assert_array_equal(model.item_factors[:-1], old_items)
    assert model.similar_items(N_ITEMS, N=2)[1][0] == pytest.approx(1.0)
    assert model.similar_users(N_USERS + 2, N=2)[1][0] == pytest.approx(1.0)
    # the new item counts from now on
    wider = sp.csr_matrix(([1.0], ([0], [N_ITEMS])), shape=(1, N_ITEMS + 1))
    assert model.recalculate_user(0, wider).any()
    assert N_ITEMS in model.recommend(0, LIKES[0], N=N_ITEMS + 1)[0]


def test_partial_fits_check_first():
    model = fitted(iterations=1)
    before = model.user_factors.copy()
    with fails(IndexError, "userids must lie in"):
        model.partial_fit_users([0, -1], LIKES[[0, 1]])
    with fails(ValueError, "expected one row for each user, 2, found 1"):
        model.partial_fit_users([0, 1], LIKES[0])
    with fails(ValueError, f"expected at most {N_USERS} columns, one for each of the users, found {N_USERS + 1}"):
        model.partial_fit_items([0], sp.csr_matrix((1, N_USERS + 1)))
    np.testing.assert_array_equal(model.user_factors, before)


@pytest.mark.parametrize("parameters", [{}, AUTO, SOFTMAX])
def test_contributions_sum_to_the_score_and_may_be_given_again(parameters):
    model, user, item = fitted(**parameters, dtype=np.float64), 5, 11
    total, top, parts = model.explain(user, LIKES, item, N=100)
    factors = model.recalculate_user(user, LIKES[user])
    assert total == pytest.approx(float(factors @ model.item_factors[item]), abs=1e-5)
    assert sum(value for _, value in top) == pytest.approx(total, abs=1e-5)
    assert sorted(each for each, _ in top) == sorted(LIKES[user].indices)
    assert [value for _, value in top] == sorted((value for _, value in top), reverse=True)
    np.testing.assert_allclose(parts.sum(axis=0), factors, atol=1e-5)
    again = model.explain(user, LIKES, item, user_weights=parts, N=2)
    assert again[:2] == (total, top[:2])
    with fails(ValueError, "expected user_weights of the"):
        model.explain(user, LIKES, item, user_weights=parts[:-1])


def test_reasons_need_rows_and_items_that_are_there(model):
    with fails(IndexError, f"userid must lie in 0..{N_USERS - 1}, found {N_USERS}"):
        model.explain(N_USERS, LIKES, 0)
    with fails(IndexError, f"itemid must lie in 0..{N_ITEMS - 1}, found -1"):
        model.explain(0, LIKES, -1)
    with pytest.warns(ParameterWarning):
        assert model.explain(0, LIKES.tocsc(), 1)[0] == model.explain(0, LIKES, 1)[0]


# -------------------------------------------------------------------- files


def assert_alike(first: ImplicitAIR, second: ImplicitAIR):
    """Two models answer alike, and learn on alike."""
    assert_same(first, second)
    for name in ("recommend", "recalculate_user"):
        for left, right in zip(getattr(first, name)(USERS, LIKES), getattr(second, name)(USERS, LIKES), strict=True):
            np.testing.assert_array_equal(left, right)
    assert first.explain(2, LIKES, 3)[:2] == second.explain(2, LIKES, 3)[:2]
    assert first.settings_ == second.settings_
    for left, right in ((first.user_graph_, second.user_graph_), (first.item_graph_, second.item_graph_)):
        assert (left is None) == (right is None)
        if left is not None and right is not None:
            assert left.kind == right.kind
            np.testing.assert_array_equal(left.to_scipy().toarray(), right.to_scipy().toarray())
    for each in (first, second):
        each.partial_fit_users([0], LIKES[3])
        each.partial_fit_items([1], COLUMNS[5])
        each.partial_fit_users([2], LIKES[4])
    assert_same(first, second)


@pytest.mark.parametrize(
    "parameters",
    [AUTO, {"item_graph_reg": 0.0, "depth": 3, "dtype": np.float64, "graph_neighbors": None}, SOFTMAX],
)
def test_a_loaded_model_answers_alike_and_learns_on(tmp_path, parameters):
    model, buffer = fitted(**parameters), io.BytesIO()
    model.save(str(tmp_path / "model"))
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]
    assert_alike(ImplicitAIR.load(tmp_path / "model.npz"), ImplicitAIR.load(str(tmp_path / "model")))
    model.save(buffer)
    buffer.seek(0)
    assert_alike(model, ImplicitAIR.load(buffer))


def test_every_parameter_is_kept_but_a_generator(tmp_path):
    parameters = {"graph_neighbors": None, "learning_rate": 0.02, "steps_per_iteration": 7, "device": "cpu"}
    model = ImplicitAIR(3, 0.5, 4.0, np.float64, iterations=2, random_state=np.int64(5), num_threads=3, **parameters)
    for name, each in {"unfitted": model, "untouched": ImplicitAIR()}.items():
        each.save(tmp_path / f"{name}.npz")
        assert ImplicitAIR.load(tmp_path / f"{name}.npz").__dict__ == each.__dict__
    drawn = fitted(random_state=np.random.default_rng(0))
    drawn.save(tmp_path / "drawn.npz")
    loaded = ImplicitAIR.load(tmp_path / "drawn.npz")
    assert loaded.random_state is None
    assert_same(drawn, loaded)


def test_other_and_damaged_files_are_refused_and_what_would_not_load_is_not_saved(tmp_path, model):
    path = tmp_path / "model.npz"
    model.save(path)
    whole = path.read_bytes()
    np.savez(tmp_path / "pickled.npz", header=np.array([{}], dtype=object))
    np.savez(tmp_path / "foreign.npz", user_factors=np.ones((2, 2)))
    np.savez(tmp_path / "other.npz", header=np.array('{"format": "air_recsys implicit 3", "model": "ImplicitAIR"}'))
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.npz").write_bytes(b"")
    for name in ("pickled", "foreign", "other", "cut", "empty"):
        with fails(ModelFileError, "expected a file that ImplicitAIR.save wrote"):
            ImplicitAIR.load(tmp_path / f"{name}.npz")
    with pytest.raises(FileNotFoundError):
        ImplicitAIR.load(tmp_path / "absent.npz")
    broken = copy.copy(model)
    broken.item_factors = np.full_like(model.item_factors, np.nan)
    with fails(ModelFileError, "cannot save the model, it would not load: expected a finite matrix item_factors"):
        broken.save(path)
    assert path.read_bytes() == whole
    rewrite(path, digests=lambda arrays: {}, item_factors=lambda factors: factors + 1)
    with fails(ModelFileError, "the file of ImplicitAIR is damaged: array item_factors differs"):
        ImplicitAIR.load(path)


def rewrite(path, digests=digests_of, unit=None, **changed):
    """Write a file again with other arrays, with the digests of these, and with another unit of its targets."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(arrays.pop("header").item())
    del header["digest"]
    changed = {name: change(arrays[name]) for name, change in changed.items()}
    header |= {"digests": header["digests"] | digests(changed), "unit": header["unit"] if unit is None else unit}
    np.savez(path, **arrays | changed, header=np.array(to_sealed_json(header).decode()))


@pytest.mark.parametrize(
    ("loss", "changed", "message"),
    [
        (AUTO, {"item_counts": np.zeros_like}, "expected numbers of likes >= 1 of 40 items"),
        (AUTO, {"item_counts": lambda counts: counts[:3]}, "expected numbers of likes >= 1 of 40 items"),
        (AUTO, {"unit": -1.0}, "unit must be a number > 0, found -1.0"),
        (AUTO, {"item_factors": lambda factors: factors * np.nan}, "expected a finite matrix item_factors"),
        (SOFTMAX, {"sources": lambda rows: rows[:-1]}, "rows of sources"),
        (SOFTMAX, {"target_map": lambda rows: rows[:-1]}, "rows of target_map"),
    ],
)
def test_arrays_of_a_file_have_to_fit(tmp_path, loss, changed, message):
    path = tmp_path / "model.npz"
    fitted(iterations=1, **loss).save(path)
    rewrite(path, **changed)
    with fails(ModelFileError, message):
        ImplicitAIR.load(path)


def some_with_few_likes() -> sp.csr_matrix:
    """Thirty users with eight likes and, among them, ten with one."""
    rng = np.random.default_rng(0)
    counts = np.where(np.arange(40) % 4 == 1, 1, 8)
    rows = np.repeat(np.arange(40), counts)
    columns = np.concatenate([rng.permutation(20)[:count] for count in counts])
    return sp.csr_matrix((rng.integers(1, 6, rows.size).astype(float), (rows, columns)), shape=(40, 20))


@pytest.mark.parametrize(("K", "dtype"), covering([1, 3], [np.float32, np.int64, bool]))
def test_our_split_keeps_values_and_type_takes_a_seed_and_needs_likes_to_hold_out(K, dtype):
    ratings = some_with_few_likes().astype(dtype)
    train, test = leave_k_out_split(ratings, K, random_state=0)
    for part in (train, test):
        assert isinstance(part, sp.csr_matrix)
        assert part.dtype == dtype
    assert (train + test != ratings).nnz == 0
    assert train.nnz + test.nnz == ratings.nnz
    counts = np.diff(ratings.indptr)
    np.testing.assert_array_equal(np.diff(test.indptr), np.where(counts > K, K, 0))
    for seed in (0, 1):
        assert ((leave_k_out_split(ratings, K, random_state=seed)[1] != test).nnz == 0) is (seed == 0)
    with fails(DataError, "expected ratings on both sides of the split"):
        leave_k_out_split(sp.csr_matrix(np.eye(3)), K=1)
