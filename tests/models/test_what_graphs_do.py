"""What docs/graphs.md says of the graphs of each preset, held against the models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from air_recsys import AIR

FEW: dict[str, Any] = {"random_state": 0, "device": "cpu"}
SWEEPS = {"n_sweeps": 8, "n_factors": 3}


def table(binary=False):
    """60 users and 50 items in a few groups with noise, a third of it known."""
    rng = np.random.default_rng(0)
    full = rng.integers(1, 6, (6, 5)).repeat(10, axis=0).repeat(10, axis=1) + 0.5 * rng.standard_normal((60, 50))
    full = (full + rng.standard_normal(full.shape) > 3).astype(float) if binary else full.clip(0, 7)
    return np.where(rng.random(full.shape) < 0.3, full, np.nan)


def scores(model, data):
    return model.fit(data).predict(np.arange(60).repeat(50), np.tile(np.arange(50), 60))


@pytest.mark.parametrize(
    ("preset", "options", "by"),
    [
        ("completion", {"n_epochs": 200, "n_factors": 20}, 0.01),
        ("interactions", {"n_epochs": 400}, 0.01),
        ("ratings", {"solver": "adam"}, 1e-6),
    ],
)
def test_graphs_of_the_objective_move_the_scores(preset, options, by):
    data = table(binary=preset == "interactions")
    tied = scores(AIR.of_preset(preset, **FEW | options), data)
    free = scores(AIR.of_preset(preset, **FEW | options, user_graph_reg=0.0, item_graph_reg=0.0), data)
    assert np.abs(tied - free).max() > by


@pytest.mark.parametrize("solver", ["variational", "langevin"])
@pytest.mark.parametrize("without", [("user_graph_reg",), ("item_graph_reg",), ("user_graph_reg", "item_graph_reg")])
def test_graphs_of_a_posterior_are_a_reading(solver, without):
    data, options = table(), FEW | SWEEPS | {"solver": solver}
    read = AIR.for_ratings(**options)
    expected = scores(read, data)
    assert read.user_graph_ is not None
    assert read.item_graph_ is not None
    np.testing.assert_array_equal(scores(AIR.for_ratings(**options, **dict.fromkeys(without, 0)), data), expected)
    told = read.explain(3, 4)
    assert (told.items["by_graph"] == 0).all()


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_given_graphs_are_part_of_the_prior(solver):
    groups = np.arange(50) // 10
    alike, options = (groups[:, None] == groups).astype(float), FEW | SWEEPS | {"solver": solver}
    data, pairs = table(), (np.arange(60).repeat(50), np.tile(np.arange(50), 60))
    without, told, strong = (
        AIR.for_ratings(**options, item_graph_strength=strength).fit(data, item_similarity=alike)
        for strength in (0, "auto", 0.7)
    )
    assert (without.item_graph_strength_, strong.item_graph_strength_) == (0, 0.7)
    assert told.item_graph_strength_ == told.settings_["item_graph_strength"]
    np.testing.assert_array_equal(without.predict(*pairs), AIR.for_ratings(**options).fit(data).predict(*pairs))
    assert np.abs(strong.predict(*pairs) - without.predict(*pairs)).max() > 0.01
    assert strong.explain(3, 4).item_features.rows["feature"].tolist() == ["similarity"]
