"""`ImplicitAIR` as it is untouched: a softmax over all items, rows that follow from likes, files, edges."""

import copy
import io
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from implicit import evaluation
from implicit.cpu.als import AlternatingLeastSquares

from air_recsys.adapters.implicit import ImplicitAIR
from air_recsys.datasets import load_movielens
from air_recsys.exceptions import DataError, ModelFileError
from air_recsys.exceptions import ParameterError as OurParameterError
from air_recsys.graphs.neighbors import nearest_neighbors_graph
from air_recsys.models.like_factors.softmax import temperature_for
from benchmarks.hosts.lists import likes

N_USERS, N_ITEMS = 90, 40


def planted(seed: int = 0) -> sp.csr_matrix:
    """Two groups of users, each with its own half of the items, values 1..3, and some noise."""
    rng = np.random.default_rng(seed)
    same = np.arange(N_USERS)[:, None] % 2 == np.arange(N_ITEMS) % 2
    liked = rng.random((N_USERS, N_ITEMS)) < np.where(same, 0.4, 0.03)
    return sp.csr_matrix(liked * rng.integers(1, 4, liked.shape), dtype=np.float32)


LIKES = planted()


def fitted(matrix: sp.csr_matrix = LIKES, **parameters) -> ImplicitAIR:
    model = ImplicitAIR(**{"device": "cpu", "random_state": 0, "num_threads": 1} | parameters)
    model.fit(matrix, show_progress=False)
    return model


@pytest.fixture(scope="module")
def model() -> ImplicitAIR:
    return fitted()


def assert_same(first: ImplicitAIR, second: ImplicitAIR) -> None:
    np.testing.assert_array_equal(first.user_factors, second.user_factors)
    np.testing.assert_array_equal(first.item_factors, second.item_factors)


# -------------------------------------------------------------------- what is trained


def test_users_have_length_one_and_items_follow_their_likes(model):
    assert model.settings_ == {"factors": N_ITEMS, "temperature": 0.25}
    np.testing.assert_allclose(np.linalg.norm(model.user_factors, axis=1), 1, atol=1e-5)
    counts = np.diff(LIKES.T.tocsr().indptr)
    np.testing.assert_allclose(np.linalg.norm(model.item_factors, axis=1), counts**0.05, rtol=1e-5)


def test_users_are_offered_what_their_group_likes(model):
    ids, _ = model.recommend(np.arange(N_USERS), LIKES, N=5)
    assert np.mean(ids % 2 == np.arange(N_USERS)[:, None] % 2) > 0.95


def test_values_do_not_count_and_a_seed_decides(model):
    ones = LIKES.copy()
    ones.data[:] = 1
    assert_same(model, fitted(ones))
    model_of_generator = fitted(random_state=np.random.default_rng(3))
    assert_same(model_of_generator, fitted(random_state=np.random.default_rng(3)))


def test_the_loss_is_told_once_an_iteration_and_falls():
    told = []
    fitted_model = ImplicitAIR(device="cpu", random_state=0, iterations=4, calculate_training_loss=True)
    fitted_model.fit(LIKES, show_progress=False, callback=lambda *each: told.append(each))
    assert [number for number, _, _ in told] == [0, 1, 2, 3]
    assert all(seconds > 0 for _, seconds, _ in told)
    assert told[-1][2] < told[0][2]
    silent = []
    fitted(iterations=2).fit(LIKES, show_progress=False, callback=lambda *each: silent.append(each))
    assert [loss for _, _, loss in silent] == [None, None]


@pytest.mark.parametrize(
    "parameters",
    [
        {"regularization": 0.5},
        {"alpha": 2.0},
        {"user_graph_reg": 0.0},
        {"item_graph_reg": 2.0},
        {"depth": 3},
        {"loss": "squared"},
    ],
)
def test_parameters_of_the_squared_error_ask_for_it(parameters):
    assert set(fitted(iterations=1, **parameters).settings_) == {"factors", "regularization", "alpha"}


def test_what_the_softmax_does_not_read_is_refused_beside_it():
    with pytest.raises(
        OurParameterError, match=re.escape("loss='softmax' does not read alpha, depth: leave them out")
    ):
        fitted(loss="softmax", alpha=2.0, depth=3)
    with pytest.raises(OurParameterError, match="loss must be one of 'auto', 'softmax', 'squared', found 'hinge'"):
        fitted(loss="hinge")
    with pytest.raises(OurParameterError, match="graph_neighbors must be an integer >= 1, found 0"):
        fitted(graph_neighbors=0)


def test_width_steps_and_rate_are_those_asked_for():
    assert fitted(factors=7, dtype=np.float64).item_factors.shape == (N_ITEMS, 7)
    assert fitted(factors=7, dtype=np.float64).item_factors.dtype == np.float64
    wide = fitted(factors=60)
    assert wide.user_factors.shape == (N_USERS, 60)
    assert np.isfinite(wide.user_factors).all()
    assert_same(fitted(iterations=2, steps_per_iteration=6), fitted(iterations=1))
    assert np.abs(fitted(learning_rate=0.1).item_factors - fitted().item_factors).max() > 1e-3


def test_more_items_take_a_lower_temperature():
    found = [temperature_for(n) for n in (1, 2, 100, 3_000, 40_000, 10**7)]
    assert found == sorted(found, reverse=True)
    assert found[0] == 0.25
    assert found[-1] == 0.1


# -------------------------------------------------------------------- rows that follow from likes


def test_known_users_are_solved_to_what_they_are(model):
    np.testing.assert_allclose(model.recalculate_user(np.arange(N_USERS), LIKES), model.user_factors, atol=1e-6)
    np.testing.assert_array_equal(model.recalculate_user(0, LIKES[0]), model.recalculate_user([0], LIKES[[0]])[0])


def test_items_are_solved_near_to_what_they_are():
    model = fitted(factors=8)
    solved = model.recalculate_item(np.arange(N_ITEMS), LIKES.T.tocsr())
    cosines = (solved * model.item_factors).sum(axis=1) / (
        np.linalg.norm(solved, axis=1) * np.linalg.norm(model.item_factors, axis=1)
    )
    assert np.median(cosines) > 0.9


def test_rows_without_likes_are_zeros(model):
    empty = sp.csr_matrix((2, N_ITEMS), dtype=np.float32)
    assert not model.recalculate_user([0, 1], empty).any()
    assert not model.recalculate_item([0], sp.csr_matrix((1, N_USERS), dtype=np.float32)).any()
    score, top, parts = model.explain(0, empty, 3)
    assert (score, top, len(parts)) == (0.0, [], 0)


def test_a_new_item_reaches_users_and_makes_them():
    model = fitted()
    even = sp.csr_matrix((np.arange(N_USERS) % 2 == 0).astype(np.float32)[None])
    model.partial_fit_items([N_ITEMS], even)
    assert len(model.item_factors) == N_ITEMS + 1
    scores = model.user_factors @ model.item_factors[N_ITEMS]
    assert scores[::2].min() > scores[1::2].max()
    likes_it = sp.csr_matrix(([1.0], ([0], [N_ITEMS])), shape=(1, N_ITEMS + 1))
    ids, _ = model.recommend(0, likes_it, N=5, recalculate_user=True)
    assert (ids % 2 == 0).all()
    model.partial_fit_users([N_USERS + 1], likes_it)
    assert model.user_factors.shape[0] == N_USERS + 2
    assert not model.user_factors[N_USERS].any()


def test_contributions_sum_to_the_score_and_are_those_of_the_items_alone(model):
    score, top, parts = model.explain(3, LIKES, 8, N=100)
    assert score == pytest.approx(float(model.user_factors[3] @ model.item_factors[8]), abs=1e-5)
    assert sum(value for _, value in top) == pytest.approx(score)
    np.testing.assert_allclose(parts.sum(axis=0), model.user_factors[3], atol=1e-6)
    again, *_ = model.explain(3, LIKES, 8, user_weights=parts)
    assert again == score


# -------------------------------------------------------------------- graphs, files, edges


def test_graphs_are_the_strongest_cosines_and_are_made_once(model):
    graph = model.item_graph_
    assert graph is model.item_graph_
    expected = nearest_neighbors_graph(model.item_factors, 20, "cosine")
    np.testing.assert_allclose(graph.to_scipy().toarray(), expected.toarray())
    assert model.user_graph_.kind == "user"
    assert (fitted(graph_neighbors=3).user_graph_.to_scipy() > 0).sum() < (model.user_graph_.to_scipy() > 0).sum()
    every = fitted(graph_neighbors=None).item_graph_.to_scipy().toarray() > 0
    assert every.sum() > (graph.to_scipy() > 0).sum()


def test_unfitted_it_has_no_graphs():
    assert ImplicitAIR().user_graph_ is None


@pytest.mark.parametrize("parameters", [{}, {"factors": 5, "dtype": np.float64}])
def test_a_loaded_model_answers_alike_and_learns_on(tmp_path, parameters):
    model = fitted(**parameters)
    model.save(tmp_path / "model")
    loaded = ImplicitAIR.load(tmp_path / "model.npz")
    assert_same(model, loaded)
    assert loaded.settings_ == model.settings_
    assert loaded.explain(1, LIKES, 2)[:2] == model.explain(1, LIKES, 2)[:2]
    for each in (model, loaded):
        each.partial_fit_items([2], LIKES.T.tocsr()[[4]])
        each.partial_fit_users([5], LIKES[[7]])
    assert_same(model, loaded)


def test_files_whose_arrays_do_not_fit_are_refused(model):
    for name in ("sources", "target_map"):
        broken, file = copy.copy(model), io.BytesIO()
        broken._rows = broken._rows._replace(**{name: getattr(broken._rows, name)[:-1]})
        with pytest.raises(ModelFileError, match=f"cannot save the model, it would not load: .* rows of {name}"):
            broken.save(file)


def test_empty_users_and_items_have_zeros_and_change_nothing(model):
    wide = sp.csr_matrix(np.pad(LIKES.toarray(), ((2, 1), (1, 1))))
    padded = fitted(wide)
    np.testing.assert_allclose(padded.user_factors[2:-1], model.user_factors, atol=1e-5)
    np.testing.assert_allclose(padded.item_factors[1:-1], model.item_factors, atol=1e-5)
    assert not padded.user_factors[[0, 1, -1]].any()
    assert not padded.item_factors[[0, -1]].any()
    assert padded.item_graph_.neighbors(0).empty


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1), (3, 3)])
def test_small_matrices(shape):
    tiny = fitted(sp.csr_matrix(np.ones(shape)))
    ids, scores = tiny.recommend(0, sp.csr_matrix(np.zeros((1, shape[1]))), N=3)
    assert len(ids) == min(3, shape[1])
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("seed", range(3))
def test_one_like_a_user_is_remembered(seed):
    model = fitted(sp.identity(10, format="csr"), random_state=seed)
    assert (model.user_factors @ model.item_factors.T).argmax(axis=1).tolist() == list(range(10))


def test_likes_are_checked(model):
    with pytest.raises(DataError, match="confidences must be finite and >= 0"):
        fitted(sp.csr_matrix([[1.0, -1.0]]))
    with pytest.raises(DataError, match=re.escape("expected at least one value > 0, found none")):
        fitted(sp.csr_matrix((3, 4)))
    with pytest.raises(ValueError, match="expected at most 40 columns"):
        model.recalculate_user([0], sp.csr_matrix(np.ones((1, N_ITEMS + 1))))


# -------------------------------------------------------------------- beside ALS


@pytest.mark.data
def test_untouched_it_ranks_movielens_above_als(data_root):
    train, test = likes(load_movielens(data_root, variant="100k"), seed=23)
    model = fitted(train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # OpenBLAS has threads
        als = AlternatingLeastSquares(128, 45.0, 7.0, num_threads=1, random_state=0)  # the best of a search
    als.fit(train, show_progress=False)
    ours, theirs = (evaluation.ndcg_at_k(each, train, test, show_progress=False) for each in (model, als))
    assert ours > theirs - 0.01
