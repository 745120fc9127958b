"""What similar_users and similar_items look at: the learned graphs, with the pattern of the ratings if wanted."""

import numpy as np
import pandas as pd
import pytest
from model_cases import CPU, N_ITEMS, USERS, frame

from air_recsys import AIR, Interactions
from air_recsys.graphs.postprocess import with_pattern
from air_recsys.graphs.pruning import strongest
from air_recsys.models.presets import PRESETS


def chosen_pairs(seed=0):
    """Users rate what is of their kind, and rate it at random: only the pattern knows the two groups."""
    rng = np.random.default_rng(seed)
    of_a_kind = (np.arange(40)[:, None] % 2) == (np.arange(30) % 2)
    rows, columns = np.nonzero(rng.random((40, 30)) < np.where(of_a_kind, 0.6, 0.05))
    return Interactions(rows, columns, rng.integers(1, 6, rows.size), range(40), range(30))


def small(**options):
    return AIR.for_ratings(**CPU | {"n_factors": 3, "graph_neighbors": 5} | options)


def test_the_pattern_is_in_the_presets_whose_pairs_people_chose():
    assert {name for name, preset in PRESETS.items() if preset.model.get("pattern_graphs")} == {
        "ratings",
        "interactions",
    }
    assert not AIR().pattern_graphs


@pytest.mark.parametrize(("solver", "share"), [("adam", 0.1), ("variational", 10.0)])
def test_similarities_are_the_learned_graph_joined_with_the_pattern(solver, share):
    model = small(solver=solver).fit(chosen_pairs())
    expected = with_pattern(model.item_graph_.to_scipy(), model.interactions_.to_csr().T, share=share)
    np.testing.assert_allclose(
        model.item_similarities_.to_scipy().toarray(), expected.toarray() / expected.max(), rtol=1e-6
    )
    pd.testing.assert_frame_equal(model.similar_items(3), model.item_similarities_.neighbors(3))
    pd.testing.assert_frame_equal(model.similar_users(3), model.user_similarities_.neighbors(3))


def test_a_graph_of_all_pairs_gives_the_strongest_edges_of_a_node():
    model = small(solver="adam", graph_neighbors=None).fit(chosen_pairs())
    learned = strongest(model.item_graph_.to_scipy(), 5)
    assert learned.nnz < model.item_graph_.to_scipy().nnz == 30 * 29
    expected = with_pattern(learned, model.interactions_.to_csr().T)
    np.testing.assert_allclose(
        model.item_similarities_.to_scipy().toarray(), expected.toarray() / expected.max(), rtol=1e-6
    )


def test_without_it_they_are_the_learned_graphs():
    model = small(pattern_graphs=False).fit(chosen_pairs())
    assert model.item_similarities_ is model.item_graph_
    assert model.user_similarities_ is model.user_graph_


@pytest.mark.parametrize(("side", "size"), [("user", 40), ("item", 30)])
def test_groups_that_only_the_pattern_knows_are_found(side, size):
    def purity(model):
        found = [getattr(model, f"similar_{side}s")(node, 5)[side].to_numpy() for node in range(size)]
        return np.mean([np.mean(others % 2 == node % 2) for node, others in enumerate(found)])

    with_it = small(solver="adam").fit(chosen_pairs())
    without = small(solver="adam", pattern_graphs=False).fit(chosen_pairs())
    assert purity(with_it) > 0.95 > purity(without) + 0.1
    assert purity(small(pattern_graphs=False).fit(chosen_pairs())) > 0.95  # a posterior's graph sees the pattern


def test_a_refit_and_a_file_have_similarities_of_their_own(tmp_path):
    model = small().fit(chosen_pairs())
    first = model.item_similarities_
    loaded = AIR.load(model.save(tmp_path / "model.air"))
    np.testing.assert_allclose(loaded.item_similarities_.to_scipy().data, first.to_scipy().data, rtol=1e-6)
    model.fit(chosen_pairs(seed=1))
    assert model.item_similarities_ is not first


def test_a_graph_that_is_not_learned_is_not_made_up():
    model = small(item_graph_reg=0.0).fit(chosen_pairs())
    assert model.item_similarities_ is None
    assert len(model.similar_items(3, 5)) == 5  # by the cosine of the factors


@pytest.mark.parametrize("solver", ["variational", "adam"])
def test_a_pair_has_one_weight_in_similar_and_explain(solver):
    model = AIR.for_ratings(solver=solver, n_factors=3, random_state=0, device="cpu").fit(frame())
    assert model.item_similarities_.to_scipy().max() == pytest.approx(1)
    similar = model.similar_items("i3", N_ITEMS).set_index("item")["weight"]
    told = model.explain(USERS[0], "i3", N_ITEMS).items.set_index("item")["weight"]
    pairs = similar.index.intersection(told.index)
    assert len(pairs) > 2
    np.testing.assert_array_equal(similar[pairs], told[pairs])
    assert (told.drop(pairs) == 0).all()
