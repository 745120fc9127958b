"""Rankings at k: brute force, scikit-learn, ties, blocks, and memory."""

import math
import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import average_precision_score, ndcg_score

from air_recsys import metrics
from air_recsys.exceptions import DataError, DataWarning, ParameterError
from air_recsys.metrics import ranking_report, top_k

fast = settings(max_examples=60)
pytestmark = [pytest.mark.order, pytest.mark.filterwarnings("ignore:.* users have one score")]

NAMES = ["precision_at_k", "recall_at_k", "ndcg_at_k", "map_at_k", "hit_rate_at_k"]
shapes = st.tuples(st.integers(1, 6), st.integers(1, 7))


@st.composite
def problems(draw):
    """Scores with ties, a truth and a seen part that do not meet, and a k."""
    shape = draw(shapes)
    scores = draw(hnp.arrays(np.float64, shape, elements=st.integers(0, 4).map(float)))
    state = draw(hnp.arrays(np.int8, shape, elements=st.integers(0, 2)))
    state[draw(st.integers(0, shape[0] - 1)), draw(st.integers(0, shape[1] - 1))] = 1
    return scores, sp.csr_array(state == 1), sp.csr_array(state == 2), draw(st.integers(1, shape[1]))


def brute_force(ranked, wanted, k):
    """All measures of one user, by loops."""
    hits = [item in wanted for item in ranked[:k]]
    gains = [hit / math.log2(place + 2) for place, hit in enumerate(hits)]
    ideal = [1 / math.log2(place + 2) for place in range(min(k, len(wanted)))]
    precisions = [sum(hits[: place + 1]) / (place + 1) for place, hit in enumerate(hits) if hit]
    return {
        "precision_at_k": sum(hits) / k,
        "recall_at_k": sum(hits) / len(wanted),
        "ndcg_at_k": sum(gains) / sum(ideal),
        "map_at_k": sum(precisions) / min(k, len(wanted)),
        "hit_rate_at_k": float(any(hits)),
    }


def rank(scores, seen):
    """The items that are not seen, by falling score and rising index."""
    return sorted(set(range(len(scores))) - set(seen), key=lambda item: (-scores[item], item))


@fast
@given(problems(), st.integers(1, 7))
def test_report_and_functions_agree_with_loops(problem, block_size):
    scores, relevant, seen, k = problem
    lists = [rank(row, seen[[user]].indices) for user, row in enumerate(scores)]
    users = [user for user in range(len(scores)) if relevant[[user]].nnz]
    expected = [brute_force(lists[user], set(relevant[[user]].indices), k) for user in users]
    report = ranking_report(lambda block: scores[block], relevant, seen, k, block_size)
    for form in ("csc", "coo", "lil"):
        every = [matrix.asformat(form) for matrix in (relevant, seen)]
        assert ranking_report(lambda block: scores[block], *every, k, block_size) == report
    padded = np.array([(items + [-1] * (k + 1))[: k + 1] for items in lists])  # a longer list may be cut
    assert report["n_users"] == len(users)
    assert report["k"] == k
    for name in NAMES:
        mean = np.mean([measures[name] for measures in expected])
        assert report[name] == pytest.approx(mean)
        assert getattr(metrics, name)(padded, relevant, k) == pytest.approx(mean)


@fast
@given(shapes, st.integers(0, 2**32 - 1), st.data())
def test_ndcg_and_map_are_those_of_scikit_learn(shape, seed, data):
    n_users, n_items = shape[0], shape[1] + 1
    k = data.draw(st.integers(1, n_items))
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.arange(float(n_items)), (n_users, 1)), axis=1)
    truth = rng.random((n_users, n_items)) < 0.5
    truth[:, 0] = True
    found = ranking_report(lambda users: scores[users], sp.csr_array(truth), k=k)["ndcg_at_k"]
    assert found == pytest.approx(ndcg_score(truth, scores, k=k))
    over_all = ranking_report(lambda users: scores[users], sp.csr_array(truth), k=n_items)["map_at_k"]
    assert over_all == pytest.approx(np.mean(list(map(average_precision_score, truth, scores))))


@fast
@given(shapes, st.data())
def test_top_k_is_a_stable_sort(shape, data):
    elements = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, np.inf])
    scores = data.draw(hnp.arrays(st.sampled_from([np.float32, np.float64]), shape, elements=elements))
    k = data.draw(st.integers(1, shape[1]))
    before = scores.copy()
    np.testing.assert_array_equal(top_k(scores, k), np.argsort(-scores, axis=1, kind="stable")[:, :k])
    np.testing.assert_array_equal(scores, before)


@fast
@given(problems())
def test_laws(problem):
    scores, relevant, seen, k = problem
    report = ranking_report(lambda users: scores[users], relevant, seen, k)
    assert all(0 <= report[name] <= 1 for name in NAMES)
    assert report["map_at_k"] <= report["hit_rate_at_k"]
    assert report["precision_at_k"] <= report["hit_rate_at_k"]
    perfect = ranking_report(lambda users: relevant.toarray()[users].astype(float), relevant, seen, k)
    assert perfect["ndcg_at_k"] == perfect["map_at_k"] == perfect["hit_rate_at_k"] == 1
    moved = ranking_report(lambda users: 2 * scores[users] + 1, relevant, seen, k)
    assert moved == report
    recalls = [
        ranking_report(lambda users: scores[users], relevant, seen, longer)["recall_at_k"]
        for longer in range(1, scores.shape[1] + 1)
    ]
    assert recalls == sorted(recalls)
    assert recalls[-1] == pytest.approx(1)


def test_users_without_relevant_items_are_left_out():
    scores, relevant = np.eye(3), sp.csr_array([[1, 0, 0], [0, 0, 0], [0, 1, 0]])
    asked = []
    report = ranking_report(lambda users: asked.extend(users) or scores[users], relevant, k=1)
    assert asked == [0, 2]
    assert report["n_users"] == 2
    assert report["recall_at_k"] == 0.5
    assert metrics.recall_at_k([[0], [1], [2]], relevant, k=1) == 0.5


def test_a_stored_zero_is_seen_but_not_relevant_and_minus_infinity_is_not_recommended():
    zero = sp.csr_array(([0.0], ([0], [0])), shape=(1, 3))
    relevant = sp.csr_array(([1.0, 0.0], ([0, 0], [1, 2])), shape=(1, 3))
    report = ranking_report(lambda users: np.array([[3.0, 2.0, 1.0]]), relevant, seen=zero, k=1)
    assert report["recall_at_k"] == 1
    assert metrics.recall_at_k([[2, 1]], relevant, k=1) == 0
    without = ranking_report(lambda users: np.array([[-np.inf, 1.0]]), sp.csr_array([[1, 1]]), k=2)
    assert without["recall_at_k"] == without["precision_at_k"] == 0.5


def test_memory_stays_with_the_block():
    n_users, n_items, block_size = 4000, 3000, 64
    rng = np.random.default_rng(0)
    left, right = rng.random((n_users, 8)), rng.random((n_items, 8))
    columns = rng.integers(0, n_items, n_users)
    relevant = sp.csr_array((np.ones(n_users), (np.arange(n_users), columns)), shape=(n_users, n_items))
    seen = sp.csr_array((np.ones(n_users), (np.arange(n_users), (columns + 1) % n_items)), shape=relevant.shape)
    tracemalloc.start()
    try:
        ranking_report(lambda users: left[users] @ right.T, relevant, seen, k=10, block_size=block_size)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    block = block_size * n_items * 8
    assert peak < 4 * block
    assert peak < n_users * n_items * 8 / 10


@pytest.mark.parametrize(
    ("recommended", "k", "error", "message"),
    [
        ([[0, 1], [1, 2]], 0, ParameterError, "k must be an integer >= 1, found 0"),
        ([[0, 1], [1, 2]], 3, ParameterError, "k must be <= the 2 recommended items per user, found 3"),
        ([[0, 1]], 1, DataError, "expected item indices in an integer array (2 users x k), found int64 (1, 2)"),
        (
            [[0.0], [1.0]],
            1,
            DataError,
            "expected item indices in an integer array (2 users x k), found float64 (2, 1)",
        ),
        ([0, 1], 1, DataError, "expected item indices in an integer array (2 users x k), found int64 (2,)"),
        ([[0], [3]], 1, DataError, "expected item indices in -1..2, found 0..3"),
        ([[-2], [1]], 1, DataError, "expected item indices in -1..2, found -2..1"),
        ([[-1, -1, 0], [1, 2, 1]], 3, DataError, "expected each item once per user, found one twice in row 1"),
    ],
)
def test_lists_that_are_refused(recommended, k, error, message):
    for name in NAMES:
        with pytest.raises(error, match=f"^{re.escape(message)}$"):
            getattr(metrics, name)(recommended, sp.csr_array([[1, 0, 0], [0, 0, 1]]), k)
        with pytest.raises(DataError, match="expected relevant as a 2-D SciPy sparse matrix, found ndarray"):
            getattr(metrics, name)([[0]], np.eye(1), 1)
        with pytest.raises(DataError, match="expected at least one user with relevant items, found none"):
            getattr(metrics, name)([[0]], sp.csr_array((1, 1)), 1)


@pytest.mark.parametrize(
    ("scores", "changes", "error", "message"),
    [
        (np.ones((2, 3)), {"k": 0}, ParameterError, "k must be an integer >= 1, found 0"),
        (np.ones((2, 3)), {"k": 4}, ParameterError, "k must be <= the number of items, 3, found 4"),
        (np.ones((2, 3)), {"block_size": 0}, ParameterError, "block_size must be an integer >= 1, found 0"),
        (np.ones((2, 2)), {}, DataError, "expected scores of shape (2, 3), found shape (2, 2)"),
        (np.full((2, 3), np.nan), {}, DataError, "expected scores without NaN, found NaN in row 0"),
        (np.ones((2, 3)), {"seen": sp.csr_array((2, 4))}, DataError, "expected seen with 3 items, found 4"),
        (np.ones((2, 3)), {"seen": sp.csr_array((1, 3))}, DataError, "expected seen with 2 users, found 1"),
        (np.ones((2, 3)), {"relevant": sp.csr_array((2, 3))}, DataError, "expected at least one user with relevant"),
        (np.ones(2), {}, DataError, "expected scores"),
    ],
)
def test_reports_that_are_refused(scores, changes, error, message):
    relevant = sp.csr_array([[1, 0, 0], [0, 0, 1]])
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        ranking_report(lambda users: scores, **({"relevant": relevant, "k": 1} | changes))
    with pytest.raises(DataError, match="expected score_block as a function of user indices, found ndarray"):
        ranking_report(np.ones((2, 3)), relevant, k=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [1, 3, 20])
@pytest.mark.parametrize("levels", [4, 100_000])
def test_lists_of_long_rows_are_those_of_a_stable_sort(k, levels):
    """Rows that are long enough are searched piece by piece: also with ties, and with items that are left out."""
    rng = np.random.default_rng(k)
    scores = rng.integers(0, levels, (6, 5003)).astype(np.float32)
    scores[1] = -np.inf
    scores[2, 7:] = -np.inf
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(metrics.top_k(scores, k), expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seen": sp.csr_array([[0, 1, 1]])}, "1 relevant pairs are among the seen ones"),
        ({"scores": [[2.0, 2.0, 2.0]]}, "1 of 1 users have one score for all items"),
        ({"relevant": sp.csr_array([[1, 5, 0]])}, r"values of relevant do not count, found 1\.\.5"),
    ],
)
def test_what_makes_a_figure_misleading_is_said(changes, message):
    asked = {"scores": [[3.0, 2.0, 1.0]], "relevant": sp.csr_array([[1, 1, 0]]), "seen": None} | changes
    with pytest.warns(DataWarning, match=message):
        ranking_report(lambda _: np.array(asked["scores"]), asked["relevant"], asked["seen"], k=2)


def test_masked_items_are_not_listed_and_masked_truths_are_refused():
    scores = np.ma.masked_array([[3.0, 2.0, 1.0]], [[True, False, False]])
    assert ranking_report(lambda _: scores, sp.csr_array([[1, 0, 0]]), k=2)["recall_at_k"] == 0
    with pytest.raises(DataError, match="expected y_true without masked values, found 1"):
        metrics.rmse(scores[0], [3.0, 2.0, 1.0])
