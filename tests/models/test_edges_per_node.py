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
    model = AIR(**settings).fit(ratings)
    assert "graphs of 20 edges a node" in capfd.readouterr().err
    assert shape[0] * 10 <= model.user_graph_.n_edges <= shape[0] * 20


def test_other_words_are_refused():
    with pytest.raises(ParameterError, match="graph_neighbors must be an integer"):
        AIR(graph_neighbors="many", **SMALL).fit(np.eye(4))


def test_auto_needs_the_row_softmin():
    with pytest.raises(ParameterError, match="graph_neighbors needs adjacency='row_softmin'"):
        AIR(graph_neighbors="auto", adjacency="global_sum", **SMALL).fit(np.eye(4))
