"""The terms of a `GraphRanker`: its trained factors, its regression, and lists by candidates of their sum."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from ranker_cases import CPU, all_scores, likes, training_of

from air_recsys.graphs.cooccurrence import cooccurrence_neighbors
from air_recsys.metrics.checks import Csr
from air_recsys.models import GraphRanker
from air_recsys.models.graph_ranker.factors import ItemFactors, factor_graph, item_axes, user_factors
from air_recsys.models.graph_ranker.inputs import RankerSettings
from air_recsys.models.graph_ranker.lists import best_lists
from air_recsys.models.graph_ranker.regression import (
    NormalisedItems,
    exact_weights,
    filtered,
    item_products,
    item_weights,
    neighborhood_weights,
    normalised_items,
    regression_scorer,
)
from air_recsys.models.graph_ranker.scorers import (
    FactorScorer,
    ProductScorer,
    ScaledColumns,
    WeightedScorers,
    of_length_one,
)
from air_recsys.models.ranking import ties
from air_recsys.storage.arrays import largest_of_rows
from air_recsys.training import train

N_USERS, N_ITEMS = 70, 300
WEIGHTS = {"regression": 1.0, "factor": 0.7}


@pytest.fixture(scope="module")
def pattern() -> Csr:
    return likes(60, 20, own=0.5, other=0.03)


def trained(pattern: Csr, width: int, n_steps: int, seed: int = 0, n_neighbors: int = 0) -> ItemFactors:
    training = training_of(pattern, width, n_steps, seed, n_neighbors)
    train(training.trainer(n_steps))
    return training.factors()


def test_factors_have_length_one_and_the_width_that_the_data_allow(pattern: Csr) -> None:
    pattern = sp.csr_array(sp.vstack([pattern, sp.csr_array((1, 20), dtype=np.float32)]))
    factors = trained(pattern, 64, 5)
    assert factors.sources.shape == factors.targets.shape == (20, 20)
    users = user_factors(pattern, factors.sources)
    np.testing.assert_allclose(np.linalg.norm(factors.targets, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(users[:-1], axis=1), 1, rtol=1e-5)
    assert not users[-1].any()


def test_the_same_seed_gives_the_same_factors_and_another_another_order() -> None:
    pattern = likes(2000, 20, own=0.5, other=0.03)  # in several batches
    one, again, other = (trained(pattern, 4, 5, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.sources, again.sources)
    np.testing.assert_array_equal(one.targets, again.targets)
    assert not np.allclose(np.abs(one.targets), np.abs(other.targets), atol=1e-6)


def test_scores_of_a_low_temperature_are_held() -> None:
    items = np.array([[1.0, 0.0], [0.0, 1.0]])
    cold = FactorScorer.of(items[:1], ItemFactors(items, items), 1e-4, np.zeros(2))  # e^10000 is not a number
    np.testing.assert_allclose(cold.scores(np.array([0])), [[1, 0]])


def test_axes_are_the_leading_ones(pattern: Csr) -> None:
    products = np.abs(item_axes(pattern, 2, 0).T @ item_axes(pattern, 6, 0))
    np.testing.assert_allclose(products[:, :2], np.eye(2), atol=1e-3)


# -------------------------------------------------------------------- the graph that targets are spread over


def test_weights_are_normalised_cooccurrences_and_items_without_users_stay_as_they_are(pattern: Csr) -> None:
    with_one = sp.csr_array(sp.hstack([pattern, np.zeros((60, 1), dtype=np.float32)]))
    dense = cooccurrence_neighbors(sp.csr_array(with_one.T), 5).toarray().astype(np.float64)
    degrees = np.append(dense.sum(axis=1)[:-1], 1)
    expected = np.eye(21) + 2 * dense / np.sqrt(np.outer(degrees, degrees))
    found = factor_graph(with_one, 5, 0, CPU).spread(torch.eye(21)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(found, found.T, atol=1e-6)  # gradients take it for its own transpose
    assert found[-1].tolist() == np.eye(21)[-1].tolist()


@pytest.mark.parametrize(("n_items", "n_neighbors"), [(4096, 0), (4097, 20)])
def test_a_ranker_of_many_items_spreads_its_targets(n_items: int, n_neighbors: int) -> None:
    many = likes(60, n_items, own=0.02, other=0.005)
    model = GraphRanker(n_factors=3, n_steps=4, settings={"regression_weight": 0.0}, device="cpu").fit(many)
    expected, other = (trained(many, 3, 4, n_neighbors=each).targets for each in (n_neighbors, 20 - n_neighbors))
    np.testing.assert_array_equal(model.item_factors_, expected)
    assert np.abs(other - expected).max() > 0.01


def test_a_rare_item_learns_from_those_like_it() -> None:
    blocks = np.kron(np.eye(2), np.ones((40, 6))) * (np.random.default_rng(1).random((80, 12)) < 0.6)
    blocks[:, 0] = 0
    blocks[3, 0] = 1  # one user has item 0, with items of the first group
    near = []
    for n_neighbors in (3, 0):
        targets = trained(sp.csr_array(blocks.astype(np.float32)), 4, 5, n_neighbors=n_neighbors).targets
        near.append(float(targets[1:6].mean(axis=0) @ targets[0]))
    assert near[0] > near[1] + 0.05


# -------------------------------------------------------------------- the regression


@pytest.fixture(scope="module")
def lacking() -> Csr:
    chosen = likes(40, 25, own=0.6, other=0.1, n_groups=4).toarray()
    chosen[:, 3] = 0  # an item that nobody has
    return sp.csr_array(chosen)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_ease_and_rdlae_without_a_limit_are_members(lacking, share):
    """Both are ridge regressions; EASE penalises all items alike, RDLAE a share of the item's own degree besides."""
    normalised, x, counts = normalised_items(lacking, 0.0, share), lacking.toarray().astype(float), lacking.sum(axis=0)
    present = np.flatnonzero(counts)  # the item of nobody is not normalised
    at = np.ix_(present, present)
    added = 2.0 * (share * counts + (1 - share) * counts[present].mean())
    inverse = np.linalg.inv((x.T @ x + np.diag(added))[at])
    expected = -inverse / inverse.diagonal()
    h, roots = exact_weights(item_products(normalised), 2.0), np.sqrt(normalised.degrees)
    found = (h / roots[:, None] * roots / (1 - h.diagonal()))[at]  # the docstring's map to weights of EASE
    for weights in (found, expected):
        np.fill_diagonal(weights, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_a_large_penalty_leaves_the_linear_gf_cf_with_weighted_degrees(lacking):
    """The degrees of the items are sums of the users' weights 1 / |N(u)| there, and numbers of users in GF-CF."""
    x = lacking.toarray().astype(float)
    sizes = x.sum(axis=1, keepdims=True)
    degrees = (x / sizes).sum(axis=0)
    even = np.divide(x, np.sqrt(sizes * degrees), out=np.zeros_like(x), where=degrees > 0)
    settings = RankerSettings(
        regression_exponent=1.0, regression_penalty=1e5, regression_source=0.0, regression_target=0.0
    )
    term = regression_scorer(lacking, lacking, item_weights(lacking, settings), np.zeros(25), settings)
    np.testing.assert_allclose(term.scores(np.arange(40)), of_length_one(x @ even.T @ even), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("exponent", "share", "penalty"), [(0.0, 0.0, 1.0), (0.5, 1.0, 1.0), (0.5, 0.0, 16.0)])
def test_polynomials_and_neighbourhoods_are_the_exact_weights(lacking, exponent, share, penalty):
    whole = sp.csr_array(sp.vstack([lacking, np.arange(25)[None] != 3]), dtype=np.float32)  # every pair is shared
    normalised = normalised_items(whole, exponent, share)
    exact = exact_weights(item_products(normalised), penalty)
    own = sp.csr_array(lacking[:35], dtype=np.float32)  # more than go through a polynomial at a time
    for found in filtered(normalised, own, [penalty / 2, penalty])[1:]:
        np.testing.assert_allclose(found, own @ exact, atol=3e-3 * own.sum(axis=1).max())
    np.testing.assert_allclose(neighborhood_weights(normalised, penalty).toarray(), exact, rtol=1e-4, atol=1e-6)


def test_few_neighbours_are_a_regression_on_these_alone(lacking):
    """Column j is that of the exact weights of j and its neighbours, all other items left out."""
    normalised = normalised_items(lacking, 0.5, 1.0)
    found = neighborhood_weights(normalised, 2.0, n_neighbors=5).toarray()
    for item in (0, 7, 24):
        chosen = np.flatnonzero(found[:, item])
        assert chosen.size == 6
        alone = exact_weights(
            item_products(NormalisedItems(sp.csr_array(normalised.rows[:, chosen]), normalised.degrees[chosen])), 2.0
        )
        np.testing.assert_allclose(found[chosen, item], alone[:, np.flatnonzero(chosen == item)[0]], rtol=1e-4)


def test_an_item_of_nobody_has_no_weights(lacking):
    normalised = normalised_items(lacking, 0.5, 1.0)
    assert np.isfinite(normalised.degrees).all()
    for weights in (
        exact_weights(item_products(normalised, np.float64), 2.0),
        neighborhood_weights(normalised, 2.0).toarray(),
    ):
        np.testing.assert_allclose(weights[3], 0, atol=1e-12)
        np.testing.assert_allclose(weights[:, 3], 0, atol=1e-12)


# -------------------------------------------------------------------- lists


def product(left: sp.csr_array, right: sp.csr_array | np.ndarray) -> ProductScorer:
    columns = ScaledColumns(right, np.ones(right.shape[1]))
    return ProductScorer(left, columns, np.ones(left.shape[1]))


def factors(users: np.ndarray, items: np.ndarray, temperature: float) -> FactorScorer:
    return FactorScorer.of(users, ItemFactors(items, items), temperature, np.zeros(len(items)))


def scorers(temperature: float = 0.15, *, copies: int = 1) -> WeightedScorers:
    """A sparse product and factors; each item is there so many times."""
    rng = np.random.default_rng(0)
    n = N_ITEMS // copies
    left = sp.random_array((N_USERS, n), density=0.05, random_state=rng, dtype=np.float32, format="csr")
    right = sp.random_array((n, n), density=0.1, random_state=rng, dtype=np.float32, format="csr")
    users, items = (rng.normal(size=(size, 6)).astype(np.float32) for size in (N_USERS, n))
    users, items = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (users, items))
    users[3] = 0  # who has no items
    right, items = sp.csr_array(sp.hstack([right] * copies)), np.tile(items, (copies, 1))
    both = {"regression": product(sp.csr_array(left), right), "factor": factors(users, items, temperature)}
    return WeightedScorers(both, WEIGHTS, N_ITEMS)


def expected(each: WeightedScorers, n: int, seen: sp.csr_array | None, allowed: np.ndarray | None) -> tuple:
    scores = each.scores(np.arange(N_USERS))
    if seen is not None:
        scores[seen.nonzero()] = -np.inf
    if allowed is not None:
        items, values = ties.best_of(scores[:, allowed], n, sum(WEIGHTS.values()))
        return np.where(items < 0, -1, allowed[items]), values
    return ties.best_of(scores, n, sum(WEIGHTS.values()))


def some_seen() -> sp.csr_array:
    seen = np.random.default_rng(1).random((N_USERS, N_ITEMS)) < 0.2
    seen[5] = True
    seen[6, 4:] = True
    return sp.csr_array(seen.astype(np.float32))


@pytest.mark.parametrize(
    ("copies", "temperature", "n", "hides"),
    [
        (1, 0.1, 1, True),
        (1, 0.3, N_ITEMS, True),
        (1, 0.3, 20, False),
        (3, 0.1, 20, True),
        (3, 0.3, 1, False),
        (3, 0.1, N_ITEMS, False),
        (50, 0.1, 7, True),  # more than candidates
        (50, 0.3, 7, False),
    ],
)
def test_lists_are_those_of_all_scores(copies: int, temperature: float, n: int, hides: bool) -> None:
    each, seen = scorers(temperature, copies=copies), some_seen() if hides else None
    items, scores = best_lists(each, np.arange(N_USERS), n, seen=seen)
    wanted, values = expected(each, n, seen, None)
    np.testing.assert_array_equal(items, wanted)
    np.testing.assert_allclose(scores, values, rtol=1e-5, atol=1e-6)


def test_blocks_of_users_change_no_list() -> None:
    each, users = scorers(copies=3), np.tile(np.arange(N_USERS), 60)  # more than a block
    items, _ = best_lists(each, users, 7)
    np.testing.assert_array_equal(items, np.tile(expected(each, 7, None, None)[0], (60, 1)))


@pytest.mark.parametrize("allowed", [np.arange(0, N_ITEMS, 2), np.array([4]), np.arange(10, 60)])
def test_lists_hold_what_is_allowed(allowed: np.ndarray) -> None:
    each, seen, n = scorers(), some_seen(), min(5, len(allowed))
    items, _ = best_lists(each, np.arange(N_USERS), n, seen=seen, allowed=allowed)
    np.testing.assert_array_equal(items, expected(each, n, seen, allowed)[0])


def test_no_users_and_nothing_allowed_have_empty_lists() -> None:
    items, scores = best_lists(scorers(), np.arange(2), 0, allowed=np.empty(0, int))
    assert items.shape == scores.shape == (2, 0)
    assert best_lists(scorers(), np.empty(0, int), 3)[0].shape == (0, 3)


@pytest.mark.parametrize("weight", [1.0, 4.0, 10.0])
def test_scores_of_nothing_are_zero_whatever_they_weigh(weight: float) -> None:
    """In single precision a large weight over the length of a row of zeros is not finite."""
    rng = np.random.default_rng(3)
    items = rng.normal(size=(N_ITEMS, 6)).astype(np.float32)
    nothing = product(sp.csr_array((2, N_ITEMS), dtype=np.float32), sp.eye_array(N_ITEMS, format="csr"))
    for scorer in (nothing, factors(np.zeros((2, 6)), items, 0.15)):
        one = WeightedScorers({"one": scorer}, {"one": weight}, N_ITEMS)
        found, scores = best_lists(one, np.arange(2), 3)
        np.testing.assert_array_equal(found, [[0, 1, 2]] * 2)
        assert not scores.any()


@pytest.mark.parametrize("kind", ["array", "tensor"])
@pytest.mark.parametrize("n_columns", [40, 1600, 1607])
def test_the_largest_of_long_rows_are_those_of_all(n_columns: int, kind: str) -> None:
    scores = torch.rand((5, n_columns), generator=torch.Generator().manual_seed(4))
    scores[0, -3:] = 2.0 + torch.arange(3)
    scores[1] = -torch.inf
    found = largest_of_rows(scores.numpy() if kind == "array" else scores, 30)
    values, places = map(torch.as_tensor, found)
    assert torch.equal(values, scores.topk(30).values)
    assert torch.equal(scores.gather(1, places), values)
    assert all(row.unique().numel() == 30 for row in places)


@pytest.mark.filterwarnings("ignore:n_threads=.* is more than")
def test_threads_change_no_bit_of_a_fit() -> None:
    seen = likes(150, 600, own=0.2, other=0.05, n_groups=4)
    how = {"n_factors": 6, "n_steps": 12, "n_validation": 80, "device": "cpu"}
    found = [GraphRanker(n_threads=number, **how).fit(seen) for number in (1, 2, 16)]
    for other in found[1:]:
        assert other.settings_ == found[0].settings_
        np.testing.assert_array_equal(all_scores(other), all_scores(found[0]))
