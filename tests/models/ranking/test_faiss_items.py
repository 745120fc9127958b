"""Items as a faiss index: exact ones give what `recommend` gives, approximate ones most of it."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from model_cases import MODELS, N_ITEMS, USERS, fitted, frame, with_factors

from air_recsys import AIR, BiasModel
from air_recsys.exceptions import NotFittedError, ParameterError, UnknownIdError
from air_recsys.models.learned import Factors
from air_recsys.models.ranking import faiss_items
from air_recsys.models.ranking.top_items import top_items

faiss = faiss_items._faiss()  # without the warnings of its wrapper
every_metric = pytest.mark.parametrize("metric", ["inner_product", "l2"])


def fails(error, message):
    return pytest.raises(error, match=re.escape(message))


@pytest.fixture(autouse=True)
def one_thread():
    """The indices are tiny, and one made by several threads need not be the same twice."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(before)


def made_model(n_users=300, n_items=2000, width=8) -> Any:
    """A fitted model with factors in groups, popular and unpopular items, and users who have seen 1 to 400 items."""
    rng = np.random.default_rng(0)
    n_seen = np.geomspace(1, n_items / 5, n_users).astype(int)
    rows = np.repeat(np.arange(n_users), n_seen)
    columns = np.concatenate([rng.permutation(n_items)[:size] for size in n_seen])
    table = pd.DataFrame({"user": rows, "item": columns, "rating": rng.integers(1, 6, rows.size).astype(float)})
    empty = pd.DataFrame({"user": [0] * n_items, "item": range(n_items), "rating": 3.0})
    table = pd.concat([table, empty]).drop_duplicates(["user", "item"])  # all items are known, user 0 has seen them
    model = AIR.for_ratings(n_factors=2, n_sweeps=1, clip=False, device="cpu", random_state=0).fit(table)
    centres = rng.normal(size=(12, width))
    users, items = (
        centres[rng.integers(12, size=size)] + 0.5 * rng.normal(size=(size, width)) for size in (n_users, n_items)
    )
    biases = rng.normal(size=n_users), rng.normal(size=n_items)
    return with_factors(model, Factors(users, items, *biases, 3.5))


@pytest.fixture(scope="module")
def model() -> Any:
    return made_model()


@pytest.fixture(scope="module")
def people(model: Any) -> np.ndarray:
    return model.interactions_.user_ids


def recall(found, expected):
    wanted = set(zip(expected["user"], expected["item"], strict=True))
    return len(wanted & set(zip(found["user"], found["item"], strict=True))) / len(wanted)


def assert_same_lists(found, expected):
    pd.testing.assert_frame_equal(found.drop(columns="score"), expected.drop(columns="score"))
    np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-9)


# -------------------------------------------------------------------- exact


@pytest.mark.order
@every_metric
@pytest.mark.parametrize(("n", "exclude_seen"), [(1, True), (10, False), (128, True)])
def test_a_flat_index_gives_what_recommend_gives(model, people, metric, exclude_seen, n):
    asked = [*people[::-1], -1, 5]
    items = model.to_faiss(metric)
    assert_same_lists(items.search(asked, n, exclude_seen), model.recommend(asked, n, exclude_seen, rank_by="rating"))


@pytest.mark.order
@every_metric
@pytest.mark.parametrize("n", [1, 8, 9])
def test_items_that_single_precision_cannot_tell_apart_are_ranked_by_their_scores(metric, n):
    """An index holds every second item as the same vector as the one before it, which is a little worse."""
    model = made_model(n_users=40, n_items=100)
    items, biases = (np.repeat(array[:50], 2, axis=0) for array in (model.item_factors_, model.item_biases_))
    biases[1::2] += 1e-9
    with_factors(model, model.factors_._replace(item_factors=items, item_biases=biases))
    found, expected = (ask(range(40), n, False) for ask in (model.to_faiss(metric).search, model.recommend))
    assert_same_lists(found, expected)
    assert (found["item"][found["rank"] == 1] % 2 == 1).all()


@every_metric
@pytest.mark.parametrize("name", ["AIR-dense", "AIR-ratings", "DMF", "PatchAIR", "BiasModel"])
def test_every_item_comes_back_where_all_are_asked_for(name, metric):
    """Lists of all items, full width, equal scores, users who have seen everything, unknown users."""
    model = fitted(MODELS[name])
    for asked in ([*USERS, "nobody"], USERS[3], []):
        for exclude_seen in (True, False):
            found = model.to_faiss(metric).search(asked, N_ITEMS, exclude_seen)
            assert_same_lists(found, model.recommend(asked, N_ITEMS, exclude_seen))


# -------------------------------------------------------------------- approximate


@every_metric
def test_a_graph_and_cells_find_most_of_the_best_and_more_in_more_cells(model, people, metric):
    expected = model.recommend(people, 10, rank_by="rating")
    assert recall(model.to_faiss(metric, "HNSW32").search(people, 10), expected) >= 0.9
    items, found = model.to_faiss(metric, "IVF32,Flat"), []
    for n_cells in (1, 8, 32):
        items.index.nprobe = n_cells
        found.append(recall(items.search(people, 10), expected))
    assert found[0] < found[1] < found[2] == 1
    assert found[1] >= 0.9


def test_an_index_that_finds_too_little_gives_shorter_lists(model, people):
    items = model.to_faiss(factory="IVF200,Flat")
    items.index.nprobe, some = 1, people[::5]
    found = items.search(some, 100)
    assert found.groupby("user")["item"].count().min() < 100
    assert not found.duplicated(["user", "item"]).any()
    seen = model.interactions_.to_frame()
    assert found.merge(seen, on=["user", "item"]).empty
    whole = model.recommend(some, model.interactions_.n_items)
    both = found.merge(whole, on=["user", "item"], suffixes=("", "_exact"))
    assert len(both) == len(found)
    np.testing.assert_allclose(both["score"], both["score_exact"], rtol=1e-5, atol=1e-5)


# -------------------------------------------------------------------- elsewhere


@every_metric
def test_a_saved_index_and_queries_are_enough_elsewhere(model, people, tmp_path, metric):
    items = model.to_faiss(metric)
    path, queries = items.save(tmp_path / "items.faiss"), items.queries(people)
    np.testing.assert_array_equal(queries[:, :8], model.user_factors_.astype(np.float32))
    np.testing.assert_array_equal(queries[:, 8:], [[1.0] if metric == "inner_product" else [1.0, 0.0]] * len(people))
    assert queries.dtype == np.float32
    factors = model.user_factors_, model.item_factors_, model.item_biases_  # which the item graph is no part of
    expected = items.item_ids[top_items(*factors, 10)[0]]
    index = faiss.read_index(str(path))
    np.testing.assert_array_equal(items.item_ids[index.search(queries, 10)[1]], expected)
    if metric == "l2":  # vectors of one norm, so that cosines rank too
        vectors = index.reconstruct_n(0, index.ntotal)
        norms = np.linalg.norm(vectors, axis=1)
        np.testing.assert_allclose(norms, norms.max(), rtol=1e-6)
        cosines = (queries @ vectors.T) / norms / np.linalg.norm(queries, axis=1, keepdims=True)
        nearest = np.argsort(-cosines, axis=1)[:, :5]
        assert (items.item_ids[nearest] == expected[:, :5]).mean() > 0.999


@pytest.mark.parametrize("train", ["fit", "partial_fit"])
def test_the_index_stays_that_of_the_model_as_it_was(train):
    model = fitted(MODELS["AIR-ratings"])
    items = model.to_faiss()
    expected = items.search(USERS, 4)
    model.set_params(random_state=1)
    getattr(model, train)(frame(seed=1))
    pd.testing.assert_frame_equal(items.search(USERS, 4), expected)
    assert not model.recommend(USERS, 4).equals(expected)


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "cosine"}, "metric must be one of 'inner_product', 'l2', found 'cosine'"),
        ({"factory": 3}, "factory must be a string of faiss.index_factory or None, found 3"),
        ({"factory": ""}, "factory must be one that faiss can make of 9 items, found ''"),
        ({"factory": "Tree"}, "found 'Tree': could not parse index string Tree"),
        ({"factory": "IVF10,Flat"}, "found 'IVF10,Flat': Number of training points (9) should be at least as large"),
    ],
)
def test_an_index_that_cannot_be_made_is_refused(options, message):
    with fails(ParameterError, message):
        BiasModel().fit(frame()).to_faiss(**options)


def test_lists_of_no_length_unknown_users_and_models_without_training_are_refused():
    items = BiasModel().fit(frame()).to_faiss()
    with fails(ParameterError, "n must be an integer >= 1, found 0"):
        items.search(USERS[0], 0)
    with fails(UnknownIdError, "2 user id(s) were not in the training data: 'nobody', -1; only users of"):
        items.queries([USERS[0], "nobody", -1])
    with fails(NotFittedError, "this AIR is not fitted yet: call fit first"):
        AIR().to_faiss()
