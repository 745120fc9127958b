"""`graph_neighbors="auto"`: form and number of edges by size."""

import numpy as np
import pytest

from air_recsys import AIR
from air_recsys.exceptions import ParameterError

SMALL = {"n_epochs": 3, "device": "cpu", "random_state": 0}


def test_small_data_at_full_width_weigh_all_pairs(capfd):
    ratings = np.random.default_rng(0).uniform(1, 5, (40, 30))
    model = AIR.for_completion(graph_neighbors="auto", verbose=True, **SMALL).fit(ratings)
    assert model.user_graph_.n_edges == 40 * 39 / 2
    assert "graphs of all pairs" in capfd.readouterr().err
    assert model.graph_neighbors == "auto"  # parameters stay as they were given


@pytest.mark.parametrize(("shape", "n_factors"), [((60, 50), 5), ((1100, 30), None)])
def test_narrow_factors_or_many_rows_take_twenty_edges(shape, n_factors, capfd):
    ratings = np.random.default_rng(0).uniform(1, 5, shape)
    settings = SMALL | {"graph_neighbors": "auto", "n_factors": n_factors, "verbose": True}
    model = AIR.for_completion(**settings).fit(ratings)
    assert "graphs of 20 edges a node" in capfd.readouterr().err
    assert shape[0] * 10 <= model.user_graph_.n_edges <= shape[0] * 20


def test_other_words_are_refused():
    with pytest.raises(ParameterError, match="graph_neighbors must be 'auto', None or an integer"):
        AIR.for_completion(graph_neighbors="many", **SMALL).fit(np.eye(4))


def test_auto_needs_the_row_softmin():
    with pytest.raises(ParameterError, match="graph_neighbors needs adjacency='row_softmin'"):
        AIR.for_completion(graph_neighbors="auto", adjacency="global_sum", **SMALL).fit(np.eye(4))


def test_graphs_stepped_seldom_learn_as_fast():
    ratings = np.kron(np.random.default_rng(0).uniform(1, 5, (4, 3)), np.ones((6, 6)))
    ratings[np.random.default_rng(1).random(ratings.shape) < 0.4] = np.nan
    often, seldom = (
        AIR.for_completion(n_epochs=1500, init_std=0.1, graph_every=every, device="cpu", random_state=0).fit(ratings)
        for every in (1, 10)
    )
    pairs = np.nonzero(np.isnan(ratings))
    gap = seldom.predict(*pairs) - often.predict(*pairs)
    assert np.sqrt(np.mean(gap**2)) < 0.1
    degrees = [model.user_graph_.to_scipy().sum(axis=1).mean() for model in (often, seldom)]
    assert degrees[1] == pytest.approx(degrees[0], rel=0.1)


@pytest.mark.parametrize("options", [{"graph_neighbors": 3}, {"transforms": [("blocks:2", 1e-4)]}])
def test_graphs_stepped_seldom_are_those_of_all_pairs(options):
    with pytest.raises(ParameterError, match="graph_every needs graphs of all pairs"):
        AIR.for_completion(graph_every=2, **SMALL, **options).fit(np.eye(6))
