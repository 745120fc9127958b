"""`graph_neighbors="auto"`: form and number of edges by size."""

import numpy as np
import pytest

from air_recsys import AIR, Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.solvers import Adam

CPU = {"device": "cpu", "random_state": 0}
SMALL = CPU | {"n_epochs": 3}


@pytest.mark.parametrize(
    ("options", "edges", "words"),
    [
        ({}, 10, "10 edges a node"),
        ({"n_factors": 5}, 10, "10 edges a node"),
        ({"n_factors": 5, "weight_decay": 1.0}, None, "all pairs"),
    ],
)
def test_exact_data_take_ten_edges_and_small_noisy_ones_all_pairs(options, edges, words, capfd):
    ratings = np.random.default_rng(0).uniform(1, 5, (60, 50))
    fixed = {"graph_neighbors": "auto", "settings": "fixed", "verbose": True}
    model = AIR.for_completion(**SMALL | fixed | options).fit(ratings)
    assert f"graphs of {words}" in capfd.readouterr().err
    assert model.user_graph_.n_edges <= 60 * (edges or 59 / 2)
    assert model.graph_neighbors == "auto"  # parameters stay as they were given
    assert model.settings_["graph_neighbors"] == edges


@pytest.mark.parametrize(("n_rows", "edges"), [(1000, None), (1001, 20)])
@pytest.mark.parametrize("of_users", [True, False])
def test_the_larger_side_decides_on_all_pairs(n_rows, edges, of_users):
    data = Interactions.from_dense(np.eye(n_rows, 3) if of_users else np.eye(3, n_rows))
    assert AIR.for_interactions(**SMALL).engine().values(data)["graph_neighbors"] == edges


def test_a_posterior_takes_twenty_edges_at_every_size():
    data = Interactions.from_dense(np.eye(30))
    assert AIR.for_ratings(graph_neighbors="auto", **CPU).engine().values(data)["graph_neighbors"] == 20


def test_other_words_are_refused():
    with pytest.raises(ParameterError, match="graph_neighbors must be 'auto', None or an integer"):
        AIR.for_completion(graph_neighbors="many", **SMALL).fit(np.eye(4))


def test_sparse_graphs_need_the_row_softmin():
    with pytest.raises(ParameterError, match="graph_neighbors needs adjacency='row_softmin'"):
        AIR.for_completion(graph_neighbors=3, adjacency="global_sum", **SMALL).fit(np.eye(4))


def test_graphs_stepped_seldom_learn_as_fast():
    ratings = np.kron(np.random.default_rng(0).uniform(1, 5, (4, 3)), np.ones((6, 6)))
    ratings[np.random.default_rng(1).random(ratings.shape) < 0.4] = np.nan
    start = {"n_epochs": 1500, "init_std": 0.1}
    often, seldom = (
        AIR(solver=Adam(schedule="cooldown", graph_every=every, **start), device="cpu", random_state=0).fit(ratings)
        for every in (1, 10)
    )
    pairs = np.nonzero(np.isnan(ratings))
    gap = seldom.predict(*pairs) - often.predict(*pairs)
    assert np.sqrt(np.mean(gap**2)) < 0.1
    degrees = [model.user_adjacency_.sum(axis=1).mean() for model in (often, seldom)]
    assert degrees[1] == pytest.approx(degrees[0], rel=0.1)


@pytest.mark.parametrize("options", [{"graph_neighbors": 3}, {"transforms": [("blocks:2", 1e-4)]}])
def test_graphs_stepped_seldom_are_those_of_all_pairs(options):
    with pytest.raises(ParameterError, match="graph_every needs graphs of all pairs"):
        AIR.for_completion(graph_every=2, **SMALL, **options).fit(np.eye(6))
