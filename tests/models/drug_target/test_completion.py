"""Laws of the completion under learned graphs, of rows of which nothing is known, and of the linear part."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from air_recsys.dti import DrugTargetAIR
from air_recsys.models.drug_target.completion import (
    Extension,
    _leave_one_out,
    affinity,
    complete,
    softmin_neighbors,
    spectrum,
)
from air_recsys.models.drug_target.similarities import adjacency_of
from air_recsys.models.drug_target.whole import (
    Strengths,
    base_rates,
    chosen_share,
    complete_all,
    lifted,
    regress,
    score_parts,
)
from benchmarks.accuracy.peers.gip import ease_scores

VALUES = (np.random.default_rng(0).random((7, 5)) < 0.4).astype(float)
SPARSE = (np.random.default_rng(0).random((14, 11)) < 0.25).astype(float)


def symmetric(n: int, seed: int) -> torch.Tensor:
    points = np.random.default_rng(seed).random((n, 3))
    return affinity(torch.from_numpy(points), None, 0.0)


def without(*places: tuple[int, int]) -> np.ndarray:
    """Weights of the values, without some of them."""
    weights = np.ones_like(VALUES)
    weights[tuple(zip(*places, strict=True))] = 0
    return weights


# -------------------------------------------------------------------- completion


def test_smoothing_is_the_minimum_of_its_energy_and_keeps_what_is_recorded_without_noise() -> None:
    drugs, targets, noise = symmetric(7, 1), symmetric(5, 2), 0.3
    kernel = np.kron(drugs.numpy(), targets.numpy())
    expected = kernel @ np.linalg.solve(kernel + noise * np.eye(35), VALUES.ravel())
    found, plain = (spectrum(drugs, targets, each).smooth(torch.from_numpy(VALUES)) for each in (noise, 1e-12))
    np.testing.assert_allclose(found.ravel(), expected, atol=1e-10)
    np.testing.assert_allclose(plain, VALUES, atol=1e-5)


def test_affinities_are_symmetric_with_unit_diagonal_and_at_most_one() -> None:
    similarity = symmetric(7, 3)
    for weight in (0.0, 0.5, 1.0):
        graph = affinity(torch.from_numpy(VALUES), similarity, weight).numpy()
        np.testing.assert_allclose(graph, graph.T)
        np.testing.assert_allclose(np.diag(graph), 1)
        assert 0 <= graph.min() <= graph.max() <= 1 + 1e-12
    np.testing.assert_array_equal(affinity(torch.from_numpy(VALUES), similarity, 1.0), similarity)


def test_a_large_graph_keeps_the_strongest_edges_of_every_node() -> None:
    profiles = np.random.default_rng(0).random((4097, 3), dtype=np.float32)
    assert isinstance(adjacency_of(profiles[:4096], None, 0.5), np.ndarray)
    found = adjacency_of(profiles, None, 0.5)
    assert isinstance(found, sp.csr_array)
    assert abs(found - found.T).max() < 1e-6
    dense = affinity(torch.from_numpy(profiles), None, 0.5).fill_diagonal_(0)[:20].numpy()
    kept = found[:20].toarray()
    np.testing.assert_allclose(kept[kept > 0], dense[kept > 0], atol=1e-6)
    np.testing.assert_allclose(np.sort(kept)[:, -100:], np.sort(dense)[:, -100:], atol=1e-6)
    assert (np.diff(found.indptr) < 4096).any()


def test_recorded_values_are_kept_and_others_do_not_matter_and_stay_in_range() -> None:
    weights = (np.random.default_rng(1).random(VALUES.shape) < 0.8).astype(float)
    found, other = (complete(each, weights) for each in (VALUES, np.where(weights > 0, VALUES, 1 - VALUES)))
    np.testing.assert_array_equal(found.scores, other.scores)
    filled = found.filled
    np.testing.assert_array_equal(filled[weights == 1], VALUES[weights == 1])
    assert 0 <= filled.min() <= filled.max() <= 1


def test_half_a_weight_lies_between_recorded_and_completed() -> None:
    weights = np.ones_like(VALUES)
    weights[0] = 0.5
    found = complete(VALUES, weights, n_rounds=1)
    expected = (VALUES[0] + found.scores[0].clip(0, 1)) / 2
    # The first round starts from the weighted record.
    np.testing.assert_allclose(found.filled[0], expected)


def test_the_transpose_has_transposed_scores() -> None:
    weights = without((0, 0))
    found, other = complete(VALUES, weights).scores, complete(VALUES.T, weights.T).scores
    np.testing.assert_allclose(found, other.T, atol=1e-10)


def test_further_rounds_change_nothing_where_nothing_is_missing() -> None:
    once, often = (complete(VALUES, np.ones_like(VALUES), n_rounds=n) for n in (1, 10))
    np.testing.assert_array_equal(once.scores, often.scores)


# -------------------------------------------------------------------- rows of which nothing is known


@pytest.mark.parametrize("effective", [2.0, 5.0])
def test_every_row_has_the_effective_number_of_neighbors(effective: float) -> None:
    weights = softmin_neighbors(np.random.default_rng(0).random((4, 20)), effective)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(axis=1)
    np.testing.assert_allclose(np.exp(entropy), effective, rtol=1e-3)


def test_nearer_rows_weigh_more_and_infinite_ones_nothing_and_too_few_share_alike() -> None:
    weights = softmin_neighbors(np.array([[0.1, 0.2, 0.3, 0.4, np.inf]]))[0]
    assert (np.diff(weights) < 0).all()
    assert weights[-1] == 0
    np.testing.assert_allclose(softmin_neighbors(np.array([[0.2, 0.6]])), [[0.5, 0.5]], atol=1e-3)


def test_leaving_one_out_in_closed_form_is_fitting_without_it() -> None:
    rng = np.random.default_rng(0)
    kernel, rows, decay = affinity(torch.from_numpy(rng.random((6, 3))), None, 0.0).numpy(), rng.random((6, 4)), 0.3
    values, vectors = np.linalg.eigh(kernel)
    found = _leave_one_out(values, vectors, decay, rows, vectors.T @ rows)
    for row in range(6):
        rest = np.delete(np.arange(6), row)
        inner = kernel[np.ix_(rest, rest)] + decay * np.eye(5)
        np.testing.assert_allclose(found[row], kernel[row, rest] @ np.linalg.solve(inner, rows[rest]))


def test_an_unknown_row_is_predicted_like_its_twins_be_it_one() -> None:
    rows = np.kron(np.eye(2), np.ones((4, 3)))
    similarity = np.kron(np.eye(2), np.full((4, 4), 0.9)) + 0.1 * np.eye(8)
    known = np.arange(8) > 0
    extension = Extension.of(similarity[1:, 1:], rows[known], rows[known], np.ones((7, 6), dtype=bool))
    weights = extension.weights(similarity[:1, 1:])
    assert weights.shape == (1, 7)
    predicted = (weights @ rows[known])[0]
    assert predicted[:3].min() > 0.8
    assert abs(predicted[3:]).max() < 0.1
    one = np.ones((1, 2))
    few = Extension.of(np.ones((1, 1)), one, one, one > 0).weights(np.array([[0.3]]))
    np.testing.assert_allclose(few, [[1.0]])


# -------------------------------------------------------------------- the linear part


def test_the_linear_part_is_ease_on_both_sides() -> None:
    expected = (ease_scores(SPARSE, 10.0) + ease_scores(SPARSE.T, 10.0).T) / 2 + base_rates(SPARSE)
    np.testing.assert_allclose(regress(SPARSE).scores, expected, atol=1e-12)


def test_an_explained_regression_adds_up_with_its_counts() -> None:
    found = regress(SPARSE)
    for place in ((0, 0), (4, 9)):
        assert found.contributions(SPARSE, *place).sum() == pytest.approx(found.scores[place])


def test_a_drug_of_the_table_interacts_with_one_of_its_missing_pairs() -> None:
    """By the share of such drugs that missing pairs explain: none where every pair is recorded."""
    values = np.kron(np.eye(3), np.ones((4, 4)))
    values[0, :3] = 0  # of the first drug only the pair with the fourth target interacts
    weights = np.ones_like(values)
    weights[0, 3] = weights[5, 1] = weights[9, 2] = 0
    weights[:, 3] = 0
    values[4:8, 5:8] = values[8:, 9:] = 0  # many drugs with one interaction
    plain = complete_all(values, weights, (None, None), Strengths(0.5, 1.0, 10, "cpu", 0.2))
    found = lifted(plain, weights, weights == 0)
    assert found.scores[0, 3] > plain.scores[0, 3]
    np.testing.assert_array_equal(found.scores[1:, :3], plain.scores[1:, :3])
    assert lifted(plain, weights, np.zeros_like(weights, dtype=bool)) is plain
    assert score_parts(found, 0.2, 0, 3).sum() == pytest.approx(found.scores[0, 3])


def test_what_ranks_better_gets_the_larger_share() -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(400) < 0.2).astype(float)
    good, noise = labels + 0.3 * rng.random(400), rng.random(400)
    assert chosen_share(good, noise, labels) < 0.1
    assert chosen_share(noise, good, labels) > 0.45
    few = np.arange(20)  # the usual share, whatever ranks them better
    assert chosen_share(noise[few], good[few], labels[few]) == pytest.approx(0.2, abs=0.05)


def test_the_scores_are_a_mixture() -> None:
    without_it = DrugTargetAIR(regression_weight=0).fit(SPARSE)
    half = DrugTargetAIR(regression_weight=0.5).fit(SPARSE)
    np.testing.assert_allclose(half.scores_, (without_it.scores_ + regress(SPARSE).scores) / 2)
    np.testing.assert_allclose(without_it.scores_, complete(SPARSE, np.ones_like(SPARSE)).scores)
    assert 0.1 <= DrugTargetAIR().fit(SPARSE).regression_weight_ <= 0.6
