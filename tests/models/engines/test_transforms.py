"""Further transformations of the matrix: names, what they learn, what is refused, what a file keeps."""

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from model_cases import CPU, N_ITEMS, N_USERS, USERS, by_paper, dense, frame

from air_recsys import AIR
from air_recsys.exceptions import ParameterError
from air_recsys.models import Recommender
from air_recsys.models.engines.transforms import parse_transforms
from air_recsys.nn.terms import blocks
from air_recsys.testing import all_scores

SHAPE = (4, 6)
PLAIN: dict[str, Any] = {"user_graph_reg": 0.0, "item_graph_reg": 0.0}
short = partial(by_paper, n_epochs=60, init_std=0.1, dtype="float64", **CPU)


def refused(message):
    return pytest.raises(ParameterError, match=f"^{re.escape(message)}")


def differences(completed):
    """A transform of a user: the differences of neighbouring columns, one a row."""
    return completed.diff(dim=1).T


def rows_of(name, shape=SHAPE):
    """T(X) of a named transform at X = 0, 1, 2, ..."""
    (graph,) = parse_transforms([(name, 1.0)], shape)
    return graph.transform(torch.arange(float(np.prod(shape))).view(shape))


# -------------------------------------------------------------------- names


def test_rows_and_columns_are_the_matrix_and_its_transpose():
    matrix = torch.arange(24.0).view(SHAPE)
    for name in ("rows", "blocks:1x6"):
        assert torch.equal(rows_of(name), matrix)
    for name in ("columns", "blocks:4x1"):
        assert torch.equal(rows_of(name), matrix.T)


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("blocks:2", (2, 2, 2)),
        ("blocks:2/1", (2, 2, 1)),
        ("blocks:2x3", (2, 3, 3)),
        ("blocks:3x2/1", (3, 2, 1)),
        ("blocks:2x4/2", (2, 4, 2)),
    ],
)
def test_names_of_blocks_say_height_width_and_distance(name, block):
    assert torch.equal(rows_of(name), blocks(*block)(torch.arange(24.0).view(SHAPE)))


def test_entries_come_back_in_order_with_their_numbers():
    found = parse_transforms((("rows", 1), ["columns", 0.5, 3], (differences, np.float32(0.25), None)), SHAPE)
    assert [(graph.strength, graph.n_neighbors) for graph in found] == [(1.0, None), (0.5, 3), (0.25, None)]
    assert found[2].transform is differences
    assert parse_transforms((), SHAPE) == ()


# -------------------------------------------------------------------- what is refused

FORM = "(transform, strength) or (transform, strength, n_neighbors)"
NAMES = "a transform must be 'rows', 'columns', 'blocks:H', 'blocks:HxW', 'blocks:HxW/S' or a function, found"
BAD: list[tuple[Any, str]] = [
    *((bad, f"transforms must be a list of {FORM}, found {bad!r}") for bad in ("rows", None, 3, {("rows", 1.0)})),
    *(
        ([bad], f"an entry of transforms must be {FORM}, found {bad!r}")
        for bad in ("rows", ("rows",), ("rows", 1, 2, 3), 7)
    ),
    *(
        ([("rows", bad)], f"the strength of a transform must be a number > 0, found {bad!r}")
        for bad in (0.0, -1, "auto", np.nan)
    ),
    *(
        ([("rows", 1.0, bad)], f"the neighbours of a transform must be an integer >= 1, found {bad!r}")
        for bad in (0, 2.5)
    ),
    ([(5, 1.0)], "a transform must be a name or a function, found int"),
    ([(torch.sum, 1.0)], f"transform {torch.sum!r} must return a tensor of two dimensions, found shape ()"),
    ([(len, 1.0)], f"transform {len!r} must return a tensor of two dimensions, found int"),
    *(
        ([(name, 1.0)], f"{NAMES} {name!r}")
        for name in (
            *("", "Rows", "users", "blocks", "blocks:", "blocks:x2", "blocks:2x", "blocks:2x2x2", "blocks:2/"),
            *("blocks:2x2/", "blocks:-2", "blocks:2.5", "blocks: 2", "blocks:2/-1", "blocks:2\n", " rows"),
        )
    ),
    *(
        ([(name, 1.0)], f"{name!r} does not fit a matrix of {N_USERS} x {N_ITEMS}")
        for name in (
            *("blocks:0", "blocks:0x2", "blocks:2x0", "blocks:2/0", "blocks:2x2/00"),
            *("blocks:13", "blocks:13x1", "blocks:1x10", "blocks:10/1"),
        )
    ),
]


def test_a_bad_entry_is_named_before_any_work():
    for transforms, message in BAD:
        with refused(message):
            parse_transforms(transforms, (N_USERS, N_ITEMS))
    model = AIR.for_completion(transforms=BAD[0][0], **CPU)
    with refused(BAD[0][1]):
        model.fit(dense())
    assert not hasattr(model, "interactions_")


# -------------------------------------------------------------------- what they learn


@pytest.mark.parametrize(
    ("side", "neighbors", "names"),
    [("user", None, ("rows", lambda completed: completed.clone())), ("item", 3, ("columns", f"blocks:{N_USERS}x1"))],
)
def test_rows_and_columns_as_transforms_are_the_graphs_of_users_and_items(side, neighbors, names):
    strengths = {f"{other}_graph_reg": 1e-2 if other == side else 0.0 for other in ("user", "item")}
    refresh = {} if neighbors is None else {"graph_refresh": 20}
    plain = short(graph_neighbors=neighbors, **refresh, **strengths).fit(frame())
    expected = getattr(plain, f"{side}_adjacency_").toarray()
    for name in names:
        model = short(transforms=[(name, 1e-2, neighbors)], **refresh, **PLAIN).fit(frame())
        assert model.user_graph_ is model.item_graph_ is None
        np.testing.assert_allclose(all_scores(model), all_scores(plain), rtol=1e-8)
        (graph,) = model.transform_graphs_
        np.testing.assert_allclose(graph.to_scipy().toarray(), expected, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(model.history_["objective"], plain.history_["objective"], rtol=1e-8)
        weighted = 1e-2 * plain.history_[f"{side}_energy"]
        np.testing.assert_allclose(model.history_["further"], weighted, rtol=1e-8)


def test_every_transform_has_a_graph_over_its_rows_until_a_fit_without_them():
    """A transform of one row has nothing to tie, and keeps its place."""
    transforms = [("blocks:2x3", 1e-3), (differences, 1e-3, 2), ("blocks:3/1", 1e-3, 4)]
    model = short(transforms=[*transforms, (f"blocks:{N_USERS}x{N_ITEMS}", 1e-3)], n_factors=N_ITEMS).fit(dense())
    assert [len(graph) for graph in model.transform_graphs_] == [6 * 3, N_ITEMS - 1, 10 * 7, 1]
    for graph, most in zip(model.transform_graphs_[:3], (17, 2, 4), strict=True):
        weights = graph.to_scipy()
        assert graph.ids.tolist() == list(range(len(graph)))
        assert abs(weights - weights.T).max() < 1e-12
        assert not weights.diagonal().any()
        assert 0 < graph.n_edges <= len(graph) * most
    assert model.user_graph_ is not None
    assert model.item_graph_ is not None
    assert model.set_params(solver__transforms=()).fit(frame()).transform_graphs_ == []
    assert model.similar_users(USERS[0], 3).shape == (3, 2)


# -------------------------------------------------------------------- files


def test_a_file_keeps_predictions_graphs_and_names_and_a_function_has_to_be_given_again(tmp_path):
    transforms = [("columns", 1e-3, 2), ("blocks:2x3", 1e-3), (differences, 1e-3)]
    model = short(transforms=transforms).fit(frame())
    again = Recommender.load(model.save(tmp_path / "model.air"))
    assert isinstance(again, AIR)
    np.testing.assert_array_equal(all_scores(again), all_scores(model))
    assert again.solver.transforms[:2] == (("columns", 1e-3, 2), ("blocks:2x3", 1e-3))
    assert "differences" in again.solver.transforms[2][0]
    assert again.solver.transforms[2][1] == 1e-3
    for found, expected in zip(again.transform_graphs_, model.transform_graphs_, strict=True):
        assert found.ids.tolist() == expected.ids.tolist()
        np.testing.assert_array_equal(found.to_scipy().toarray(), expected.to_scipy().toarray())
    with pytest.raises(ParameterError, match=r"or a function, found '.*differences'"):
        again.fit(frame())
    np.testing.assert_array_equal(all_scores(again), all_scores(model))  # refused before any work
    again.set_params(solver__transforms=transforms).fit(frame())
    np.testing.assert_array_equal(all_scores(again), all_scores(model))


def test_a_loaded_model_never_takes_a_function_for_a_built_in_name(tmp_path):
    def columns(completed):
        return completed.diff(dim=0).T

    columns.__qualname__ = "columns"  # as that of a function at the top of a module
    again = AIR.load(short(transforms=[(columns, 1e-3)]).fit(frame()).save(tmp_path / "model.air"))
    with pytest.raises(ParameterError, match="columns"):
        again.fit(frame())
