"""The regression of a `GraphRanker`: EASE and RDLAE are members, and its three computations agree."""

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.models.graph_ranker.inputs import RankerSettings
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
from air_recsys.models.graph_ranker.scorers import of_length_one
from benchmarks.accuracy.peers.autoencoders import EASE, RDLAE
from benchmarks.accuracy.peers.filters import GFCF, TurboCF


@pytest.fixture(scope="module")
def pattern():
    rng = np.random.default_rng(0)
    group = np.arange(40)[:, None] % 4 == np.arange(25) % 4
    chosen = rng.random(group.shape) < np.where(group, 0.6, 0.1)
    chosen[:, 3] = False  # an item that nobody has
    return sp.csr_array(chosen.astype(np.float32))


def off_diagonal(matrix):
    return matrix - np.diag(matrix.diagonal())


def scores_of_items(ranker) -> np.ndarray:
    """Return the scores of users with one item each: the weights of a linear model."""
    return ranker._scores(sp.csr_array(sp.eye_array(ranker.pattern.shape[1], dtype=np.float32)))


def as_weights(normalised: NormalisedItems, h: np.ndarray) -> np.ndarray:
    """Return D^-1/2 H D^1/2, column j divided by 1 - H_jj: the docstring's map to weights of EASE."""
    roots = np.sqrt(normalised.degrees)
    return h / roots[:, None] * roots / (1 - h.diagonal())


def test_ease_is_a_member(pattern):
    normalised = normalised_items(pattern, 0.0, 0.0)
    decay = 3.0 * normalised.degrees[0]
    ease = EASE(decay).fit(Interactions.from_csr(pattern))
    found = as_weights(normalised, exact_weights(item_products(normalised), 3.0))
    present = np.flatnonzero(pattern.sum(axis=0))  # the item of nobody is not normalised
    at = np.ix_(present, present)
    np.testing.assert_allclose(off_diagonal(found)[at], off_diagonal(scores_of_items(ease))[at], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_rdlae_without_a_limit_is_a_member(pattern, share):
    """Its penalty lambda + p / (1 - p) n_i is that of D: a share of the item's degree, the rest for all alike."""
    normalised, penalty = normalised_items(pattern, 0.0, share), 2.0
    counts = pattern.sum(axis=0)
    dropout = penalty * share / (1 + penalty * share)
    decay = penalty * (1 - share) * counts[counts > 0].mean()
    own = scores_of_items(RDLAE(max(decay, 1e-6), dropout, 0.0).fit(Interactions.from_csr(pattern)))
    found = as_weights(normalised, exact_weights(item_products(normalised), penalty))
    present = np.flatnonzero(counts)
    at = np.ix_(present, present)
    np.testing.assert_allclose(off_diagonal(found)[at], off_diagonal(own)[at], rtol=1e-3, atol=1e-5)


def scores_of_products(pattern, power):
    """Return the scores of the regression at a large penalty, each user's of length 1."""
    settings = RankerSettings(
        regression_exponent=1.0, regression_penalty=1e5, regression_source=power, regression_target=power
    )
    weights = item_weights(pattern, settings)
    term = regression_scorer(pattern, pattern, weights, np.zeros(pattern.shape[1]), settings)
    return term.scores(np.arange(pattern.shape[0]))


def test_a_large_penalty_leaves_the_linear_gf_cf_with_weighted_degrees(pattern):
    """The degrees of the items are sums of the users' weights 1 / |N(u)| there, and numbers of users in GF-CF."""
    x = pattern.toarray().astype(float)
    sizes = x.sum(axis=1, keepdims=True)
    degrees = (x / sizes).sum(axis=0)
    even = np.divide(x, np.sqrt(sizes * degrees), out=np.zeros_like(x), where=degrees > 0)
    expected = of_length_one(x @ even.T @ even)
    np.testing.assert_allclose(scores_of_products(pattern, 0.0), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("peer", "power"), [(GFCF(1, weight=0.0), 0.0), (TurboCF(0.6), -0.1)])
def test_linear_gf_cf_and_turbo_cf_are_members_where_users_have_as_many_items_each(peer, power):
    even = sp.csr_array(
        np.argsort(np.random.default_rng(0).random((40, 25)) ** np.arange(1, 26)) < 6, dtype=np.float32
    )
    assert np.ptp(even.sum(axis=0)) > 3  # some items are popular
    peer.fit(Interactions.from_csr(even))
    expected = of_length_one(peer._scores(peer.pattern))
    np.testing.assert_allclose(scores_of_products(even, power), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("exponent", [0.0, 0.5])
@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize("penalty", [1.0, 16.0])
def test_polynomials_and_neighbourhoods_are_the_exact_weights(pattern, exponent, share, penalty):
    whole = sp.csr_array(sp.vstack([pattern, np.arange(25)[None] != 3]), dtype=np.float32)  # every pair is shared
    normalised = normalised_items(whole, exponent, share)
    exact = exact_weights(item_products(normalised), penalty)
    own = sp.csr_array(pattern[:35], dtype=np.float32)  # more than go through a polynomial at a time
    for found in filtered(normalised, own, [penalty / 2, penalty])[1:]:
        np.testing.assert_allclose(found, own @ exact, atol=3e-3 * own.sum(axis=1).max())
    np.testing.assert_allclose(neighborhood_weights(normalised, penalty).toarray(), exact, rtol=1e-4, atol=1e-6)


def test_few_neighbours_are_a_regression_on_these_alone(pattern):
    """Column j is that of the exact weights of j and its neighbours, all other items left out."""
    normalised = normalised_items(pattern, 0.5, 1.0)
    found = neighborhood_weights(normalised, 2.0, n_neighbors=5).toarray()
    for item in (0, 7, 24):
        chosen = np.flatnonzero(found[:, item])
        assert chosen.size == 6
        alone = exact_weights(
            item_products(NormalisedItems(sp.csr_array(normalised.rows[:, chosen]), normalised.degrees[chosen])), 2.0
        )
        np.testing.assert_allclose(found[chosen, item], alone[:, np.flatnonzero(chosen == item)[0]], rtol=1e-4)


def test_an_item_of_nobody_has_no_weights(pattern):
    normalised = normalised_items(pattern, 0.5, 1.0)
    assert np.isfinite(normalised.degrees).all()
    for weights in (exact_weights(item_products(normalised), 2.0), neighborhood_weights(normalised, 2.0).toarray()):
        np.testing.assert_allclose(weights[3], 0, atol=1e-12)
        np.testing.assert_allclose(weights[:, 3], 0, atol=1e-12)
