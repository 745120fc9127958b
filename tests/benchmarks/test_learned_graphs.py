"""The graphs' measures, their rivals, and all reports on small data."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import cosine_similarity as cosine
from sklearn.metrics.pairwise import euclidean_distances

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import DrugTargetData, make_syn_netflix
from benchmarks.graphs.measures import (
    _scale,
    ease,
    gip,
    jaccard,
    lift,
    neighbor_agreement,
    pair_correlation,
    smooth_graph,
)
from benchmarks.graphs.quality import bench_movielens, neighbor_genres, recovered_groups, similarities_never_seen

GROUPS = np.repeat(np.arange(4), 15)  # of users and of items


@pytest.fixture(scope="module")
def known():
    return (GROUPS[:, None] == GROUPS).astype(float)


@pytest.fixture(scope="module")
def genres():
    return pd.DataFrame(GROUPS[:, None] == np.arange(4), index=range(100, 160)).assign(unknown=False)


@pytest.fixture(scope="module")
def rated(chosen):
    """Ratings at random of the pairs that were chosen."""
    users, items = np.nonzero(chosen)
    ratings = np.random.default_rng(0).integers(1, 6, users.size)
    return Interactions(users, items, ratings, range(60), range(100, 160))


@pytest.fixture(scope="module")
def chosen():
    """0/1 interactions, mostly within a group."""
    rng = np.random.default_rng(0)
    return (rng.random((60, 60)) < np.where(GROUPS[:, None] == GROUPS, 0.5, 0.05)).astype(float)


# ---------------------------------------------------------------- measures


def test_agreement_is_the_mean_over_random_orders_of_ties():
    rng = np.random.default_rng(1)
    scores, truth = rng.integers(0, 3, (9, 9)).astype(float), rng.random((9, 9))
    drawn = [neighbor_agreement(scores + 1e-6 * rng.random((9, 9)), truth, 3) for _ in range(3000)]
    assert neighbor_agreement(scores, truth, 3) == pytest.approx(np.mean(drawn, axis=0), abs=0.03)


def test_an_empty_graph_agrees_as_random_pairs_do(known):
    assert lift(np.zeros((60, 60)), known) == pytest.approx(1)


def test_the_truth_agrees_with_itself(known):
    assert neighbor_agreement(known, known) == pytest.approx(np.ones(60))
    assert pair_correlation(known, known) == pytest.approx(1)
    assert pair_correlation(-known, known) == pytest.approx(-1)


def test_order_of_the_nodes_does_not_matter(chosen, known):
    order = np.random.default_rng(2).permutation(60)
    similarity = chosen @ chosen.T
    moved = similarity[np.ix_(order, order)], known[np.ix_(order, order)]
    assert neighbor_agreement(*moved) == pytest.approx(neighbor_agreement(similarity, known)[order])
    assert pair_correlation(*moved) == pytest.approx(pair_correlation(similarity, known))


def test_jaccard_of_equal_and_of_no_flags():
    found = jaccard(np.array([[1, 0, 1], [1, 0, 1], [0, 1, 0], [0, 0, 0]], dtype=bool))
    assert found[0, 1] == 1
    assert found[0, 2] == found[3, 3] == 0


# ---------------------------------------------------------------- rivals


def test_ease_is_the_ridge_regression_of_each_row_on_the_others(chosen):
    weights = ease(chosen, 3.0)
    for row in (0, 17):
        others = np.delete(np.arange(60), row)
        expected = Ridge(3.0, fit_intercept=False).fit(chosen[others].T, chosen[row]).coef_
        assert weights[row, others] == pytest.approx(expected, abs=1e-6)


def test_cosine_and_gip(chosen):
    assert np.diag(gip(chosen)) == pytest.approx(np.ones(60))
    assert cosine(chosen)[0, 1] == pytest.approx(chosen[0] @ chosen[1] / np.sqrt(chosen[0].sum() * chosen[1].sum()))
    squared = np.square(chosen[0] - chosen[1]).sum()
    assert gip(chosen)[0, 1] == pytest.approx(np.exp(-squared / chosen.sum(axis=1).mean()))


def test_a_graph_of_smooth_signals_minimises_its_objective():
    rows = np.random.default_rng(0).normal(size=(6, 4))
    distances = euclidean_distances(rows, squared=True)
    costs = _scale(distances / distances.mean(), 2) * distances / distances.mean()
    upper = np.triu_indices(6, k=1)

    def objective(edges):
        graph = np.zeros((6, 6))
        graph[upper] = edges
        graph += graph.T
        return (graph * costs).sum() - np.log(graph.sum(axis=1)).sum() + np.square(graph).sum() / 2

    found = smooth_graph(rows, n_neighbors=2, n_iterations=5000)[upper]
    best = minimize(objective, np.full(15, 0.3), bounds=[(1e-9, None)] * 15)
    assert objective(found) == pytest.approx(best.fun, abs=1e-4)
    assert found == pytest.approx(best.x, abs=0.01)


# ---------------------------------------------------------------- reports


def test_syn_netflix_has_a_row_for_every_rate_and_system():
    data = make_syn_netflix(40, 40, 3, 3, random_state=0)
    found = recovered_groups(data, seeds=2, settings={"n_epochs": 800, "device": "cpu"}, missing=[0.3])
    means, single = found.tables
    assert len(single) == 2 * len(means)
    rows = {row["system"]: row for row in means}
    assert {"AIR", "cosine", "GIP", "smooth signals"} < set(rows)
    assert min(rows["AIR"]["user_nmi"], rows["AIR"]["item_nmi"]) > 0.9


def test_movielens_finds_the_genres_of_groups(rated, genres):
    by_adam = {"n_epochs": 20}
    found = neighbor_genres(rated, genres.sample(frac=1, random_state=0), settings={"device": "cpu"}, by_adam=by_adam)
    rows = {row["system"]: row["all rated items"] for row in found.tables[0]}
    assert rows["random"] == pytest.approx(14 / 59)
    assert rows["AIR, learned graph with the pattern"] > 0.9
    assert rows["AIR, learned graph"] > 0.8
    assert rows["AIR trained by Adam, learned graph"] < 0.6  # ratings at random: only the pattern knows
    assert found.facts["by_adam"] == "random_state=0, device=cpu, solver=adam, n_epochs=20"


def test_drug_target_reports_both_sides_and_leaves_out_what_is_not_known(chosen, known):
    data = Interactions.from_dense(chosen)
    frame = pd.DataFrame(known)
    sets = {"nr": DrugTargetData(data, frame, frame), "e": DrugTargetData(data, frame, None)}
    rows = similarities_never_seen(sets, {"n_epochs": 20, "device": "cpu"}).tables[0]
    assert {(row["set"], row["side"]) for row in rows} == {("NR", "drugs"), ("NR", "targets"), ("E", "drugs")}
    ours = [row for row in rows if row["system"] == "AIR, learned graph with the pattern"]
    assert min(row["top_10"] for row in ours) > 3.5  # of at most 59 / 14


@pytest.mark.data
def test_the_learned_item_graph_of_movielens_is_above_cosine_ease_and_the_pattern(data_root):
    found = bench_movielens(data_root, settings={"device": "cpu"}, by_adam={})
    rows = {row["system"]: row for row in found.tables[0]}
    ours = rows.pop("AIR, learned graph with the pattern")
    rivals = [row for name, row in rows.items() if name.startswith(("cosine", "EASE", "smooth"))]
    for measure in ("all rated items", "items with 20 ratings or more"):
        assert ours[measure] > max(row[measure] for row in rivals)
    assert rows["AIR, learned graph"]["items with 20 ratings or more"] > 0.395  # by the pattern alone 0.390
