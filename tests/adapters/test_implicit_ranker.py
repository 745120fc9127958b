"""`ImplicitRanker`: the lists of `AIR.for_likes()` under implicit's contract, beside its own suite."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from host_cases import fails
from implicit.utils import ParameterWarning

from air_recsys import Interactions
from air_recsys.adapters.implicit import ImplicitRanker
from air_recsys.exceptions import DataError, ModelFileError, NotFittedError, ParameterError
from air_recsys.models import GraphRanker

N_USERS, N_ITEMS = 60, 30
SMALL: dict[str, Any] = {"n_factors": 4, "n_steps": 20, "device": "cpu"}
FIXED: dict[str, Any] = SMALL | {"settings": {}}
LOWEST = np.finfo(np.float64).min
USERS = np.arange(N_USERS)


def made(seed: int = 0) -> sp.csr_matrix:
    """Likes of one half of the items; the first user and the last item have none, values differ."""
    rng = np.random.default_rng(seed)
    same = np.arange(N_USERS)[:, None] % 2 == np.arange(N_ITEMS) % 2
    likes = (rng.random((N_USERS, N_ITEMS)) < np.where(same, 0.5, 0.03)) * rng.integers(1, 6, (N_USERS, N_ITEMS))
    likes[0] = likes[:, -1] = 0
    return sp.csr_matrix(likes.astype(np.float32))


@pytest.fixture(scope="module")
def likes():
    return made()


def trained(likes: sp.csr_matrix, **parameters: Any) -> Any:
    model = ImplicitRanker(**parameters)
    model.fit(likes, show_progress=False)
    return model


@pytest.fixture(scope="module")
def fitted(likes):
    return trained(likes, **SMALL)


@pytest.fixture(scope="module")
def fixed(likes):
    return trained(likes, **FIXED)


def test_it_is_the_model_of_the_library_for_known_and_for_new_users(likes, fitted):
    own = GraphRanker(**SMALL).fit(Interactions.from_csr(likes))
    assert own.settings_ == fitted.model_.settings_
    assert (own.history_["strength"] > 0).any()  # values are read
    table = own.recommend(USERS[1:], n=5)
    ids, scores = fitted.recommend(USERS[1:], likes[1:], N=5)
    assert ids.ravel().tolist() == table["item"].tolist()
    np.testing.assert_allclose(scores.ravel(), table["score"], rtol=1e-6)
    new = made(seed=1)[:20]
    table = fitted.model_.fold_in(new).recommend(range(new.shape[0]), n=5)
    ids, scores = fitted.recommend(USERS[:20], new, N=5, recalculate_user=True)
    assert ids.ravel().tolist() == table["item"].tolist()
    np.testing.assert_allclose(scores[1:].ravel(), table["score"][5:], rtol=1e-6)  # the first has no items


def test_parameters_reach_the_model(likes, capsys):
    model: Any = ImplicitRanker(n_validation=7, random_state=3, time_budget=60.0, **SMALL)
    model.fit(likes)
    found = model.model_
    assert (found.n_validation, found.random_state, found.time_budget) == (7, 3, 60.0)
    assert found.search_line_ in capsys.readouterr().err
    with fails(ParameterError, "n_steps must be"):
        ImplicitRanker(n_steps=0).fit(likes)


def test_what_cannot_be_trained_on_is_an_error_and_before_fit_there_is_no_list(likes, fixed):
    model = ImplicitRanker(**FIXED)
    for error, message, given in (
        (DataError, "confidences must be finite and >= 0", {"user_items": -likes}),
        (DataError, "at least one value > 0", {"user_items": sp.csr_matrix((3, 4))}),
        (NotImplementedError, "no epochs", {"user_items": likes, "callback": print}),
    ):
        with fails(error, message):
            model.fit(**given)
    for ask in (lambda: model.recommend(0, likes[0]), lambda: model.similar_items(0), lambda: model.similar_users(0)):
        with fails(NotFittedError, "not fitted yet"):
            ask()
    with fails(IndexError, "userid must lie in"):  # the checks are those of `ImplicitAIR`, whose tests have every case
        fixed.recommend(N_USERS, likes[0])
    with pytest.warns(ParameterWarning, match="CSR"):
        model.fit(likes.tocoo(), show_progress=False)


def test_the_rows_that_are_given_are_left_out(fixed, likes):
    ids, _ = fixed.recommend(3, likes[3], N=3)
    more = sp.csr_matrix(np.isin(np.arange(N_ITEMS), ids)[None] * 1.0)
    assert not np.isin(ids, fixed.recommend(3, more, N=3)[0]).any()
    stored = more.copy()
    stored.data[:] = 0  # implicit leaves out what is stored, too
    np.testing.assert_array_equal(fixed.recommend(3, stored, N=3)[0], fixed.recommend(3, more, N=3)[0])
    free, _ = fixed.recommend(3, None, N=N_ITEMS, filter_already_liked_items=False)
    assert sorted(free) == list(range(N_ITEMS))
    narrow = sp.csr_matrix(likes[4:6, :10])  # of the first items
    wide = sp.csr_matrix((narrow.data, narrow.indices, narrow.indptr), shape=(2, N_ITEMS))
    for recalculate in (False, True):
        found = [fixed.recommend([4, 5], rows, recalculate_user=recalculate)[0] for rows in (narrow, wide)]
        np.testing.assert_array_equal(*found)


def test_what_is_left_out_comes_last_in_long_lists(likes, fixed):
    ids, scores = fixed.recommend(USERS, likes, N=1000)
    assert ids.shape == (N_USERS, 1000)
    assert (ids[:, N_ITEMS:] == -1).all()
    ids, scores = ids[:, :N_ITEMS], scores[:, :N_ITEMS]
    assert (np.sort(ids, axis=1) == np.arange(N_ITEMS)).all()
    assert (ids.dtype, scores.dtype) == (np.int32, np.float64)
    assert (np.diff(scores) <= 0).all()
    counts = np.diff(likes.indptr)
    np.testing.assert_array_equal((scores == LOWEST).sum(axis=1), counts)
    filtered, scores = fixed.recommend(7, likes[7], N=N_ITEMS, filter_items=[0, 3, 4])
    out = np.union1d([0, 3, 4], likes[7].indices)
    assert set(filtered[scores == LOWEST]) == set(out)
    everything, scores = fixed.recommend(7, likes[7], N=2, filter_items=np.arange(N_ITEMS))
    assert (everything.size, set(scores)) == (2, {LOWEST})
    chosen = [9, 2, 4, 6, 11]
    ids, scores = fixed.recommend(USERS, likes, items=chosen)
    assert (np.sort(ids, axis=1) == sorted(chosen)).all()
    liked = likes[np.repeat(USERS, 5), ids.ravel()].reshape(ids.shape) > 0
    np.testing.assert_array_equal(liked, scores == LOWEST)
    assert (np.diff(liked.astype(int), axis=1) >= 0).all()


def test_a_user_without_likes_gets_what_most_like(likes, fixed):
    popular = np.lexsort((np.arange(N_ITEMS), -np.bincount(likes.indices, minlength=N_ITEMS)))
    for recalculate in (False, True):
        ids, scores = fixed.recommend([0], likes[[0]], N=6, recalculate_user=recalculate)
        assert ids[0].tolist() == popular[:6].tolist()
        assert (np.diff(scores) <= 0).all()
    taken = sp.csr_matrix(np.isin(np.arange(N_ITEMS), popular[:2])[None] * 1.0)
    assert fixed.recommend(0, taken, N=2)[0].tolist() == popular[2:4].tolist()


def test_similar_items_and_users_are_the_neighbours_in_the_graphs(fixed):
    ids, weights = fixed.similar_items(4, N=5)
    table = fixed.model_.similar_items(4, n=4)
    assert ids.tolist() == [4, *table["item"]]
    np.testing.assert_allclose(weights, [1, *table["weight"]])
    many, of_many = fixed.similar_items([4, N_ITEMS - 1], N=5)
    np.testing.assert_array_equal(many[0], ids)
    assert many[1].tolist() == [N_ITEMS - 1, -1, -1, -1, -1]  # it has no likes
    assert of_many[1].tolist() == [1.0] + [LOWEST] * 4
    assert fixed.similar_items(N_ITEMS - 1)[0].tolist() == [N_ITEMS - 1]
    with fails(NotImplementedError, "no new items"):
        fixed.similar_items(0, recalculate_item=True)
    ids, weights = fixed.similar_users([2, 3], N=4, users=[0, 3, 5])
    assert (np.sort(ids, axis=1) == [0, 3, 5]).all()
    assert (ids[1, 0], weights[1, 0], weights[1, -1]) == (3, 1.0, LOWEST)  # user 0 has no likes
    others, _ = fixed.similar_users(2, N=10, filter_users=[2, 4])
    assert not {2, 4} & set(others)


def test_files_hold_parameters_and_model_and_others_are_refused(fitted, likes, tmp_path):
    fitted.save(tmp_path / "lists")
    loaded: Any = ImplicitRanker.load(str(tmp_path / "lists"))
    for one, other in zip(loaded.recommend(USERS, likes), fitted.recommend(USERS, likes), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (loaded.n_factors, loaded.model_.search_line_) == (4, fitted.model_.search_line_)
    np.savez(tmp_path / "other.npz", header=np.array("{}"))
    with fails(ModelFileError, "expected a file that ImplicitRanker"):
        ImplicitRanker.load(tmp_path / "other.npz")
