"""Further transformations of the matrix: names, what they learn, what is refused, what a file keeps."""

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from model_cases import CPU, N_ITEMS, N_USERS, USERS, all_scores, by_paper, dense, frame
from sklearn.base import clone

from air_recsys import AIR
from air_recsys.exceptions import NotFittedError, ParameterError
from air_recsys.models import RDMF, Recommender
from air_recsys.models.engines.transforms import parse_transforms

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
    assert torch.equal(rows_of("rows"), matrix)
    assert torch.equal(rows_of("columns"), matrix.T)
    assert torch.equal(rows_of("blocks:1x6"), matrix)
    assert torch.equal(rows_of("blocks:4x1"), matrix.T)


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 8))
def test_names_of_blocks_say_height_width_and_distance(height, width, stride):
    matrix = torch.arange(24.0).view(SHAPE)
    down, right = min(stride, height), min(stride, width)
    assume((4 - height) % down == 0 and (6 - width) % right == 0)
    assume(height * width < 24)
    corners = [(i, j) for i in range(0, 5 - height, down) for j in range(0, 7 - width, right)]
    expected = torch.stack([matrix[i : i + height, j : j + width].flatten() for i, j in corners])
    assert torch.equal(rows_of(f"blocks:{height}x{width}/{stride}"), expected)


@pytest.mark.parametrize(
    ("short_name", "long_name"),
    [("blocks:2", "blocks:2x2/2"), ("blocks:2/1", "blocks:2x2/1"), ("blocks:2x3", "blocks:2x3/3")],
)
def test_blocks_are_square_and_side_by_side_where_nothing_else_is_said(short_name, long_name):
    assert torch.equal(rows_of(short_name), rows_of(long_name))


@pytest.mark.parametrize("name", ["blocks:2", "blocks:3x5/2"])
def test_blocks_see_every_entry_or_are_refused(name):
    """An entry in no block would be tied to nothing, and nobody would know."""
    try:
        seen = rows_of(name, (5, 6))
    except ParameterError:
        return
    assert set(seen.flatten().tolist()) == set(range(30))


def test_entries_come_back_in_order_with_their_numbers():
    found = parse_transforms((("rows", 1), ["columns", 0.5, 3], (differences, np.float32(0.25), None)), SHAPE)
    assert [(graph.strength, graph.n_neighbors) for graph in found] == [(1.0, None), (0.5, 3), (0.25, None)]
    assert found[2].transform is differences
    assert parse_transforms((), SHAPE) == ()


# -------------------------------------------------------------------- what is refused

FORM = "(transform, strength) or (transform, strength, n_neighbors)"
NAMES = "a transform must be 'rows', 'columns', 'blocks:H', 'blocks:HxW', 'blocks:HxW/S' or a function, found"
BAD = {
    "a name": ("rows", f"transforms must be a list of {FORM}, found 'rows'"),
    "none": (None, f"transforms must be a list of {FORM}, found None"),
    "a number": (3, f"transforms must be a list of {FORM}, found 3"),
    "a set": ({("rows", 1.0)}, f"transforms must be a list of {FORM}, found {{('rows', 1.0)}}"),
    "names": (["rows"], f"an entry of transforms must be {FORM}, found 'rows'"),
    "no strength": ([("rows",)], f"an entry of transforms must be {FORM}, found ('rows',)"),
    "too long": ([("rows", 1, 2, 3)], f"an entry of transforms must be {FORM}, found ('rows', 1, 2, 3)"),
    "not a pair": ([7], f"an entry of transforms must be {FORM}, found 7"),
    "zero": ([("rows", 0.0)], "the strength of a transform must be a number > 0, found 0.0"),
    "negative": ([("rows", -1)], "the strength of a transform must be a number > 0, found -1"),
    "auto": ([("rows", "auto")], "the strength of a transform must be a number > 0, found 'auto'"),
    "nan": ([("rows", np.nan)], "the strength of a transform must be a number > 0, found nan"),
    "no neighbours": ([("rows", 1.0, 0)], "the neighbours of a transform must be an integer >= 1, found 0"),
    "half": ([("rows", 1.0, 2.5)], "the neighbours of a transform must be an integer >= 1, found 2.5"),
    "no function": ([(5, 1.0)], "a transform must be a name or a function, found int"),
    "one axis": (
        [(torch.sum, 1.0)],
        f"transform {torch.sum!r} must return a tensor of two dimensions, found shape ()",
    ),
    "no tensor": ([(len, 1.0)], f"transform {len!r} must return a tensor of two dimensions, found int"),
    **{
        name: ([(name, 1.0)], f"{NAMES} {name!r}")
        for name in (
            *("", "Rows", "users", "blocks", "blocks:", "blocks:x2", "blocks:2x", "blocks:2x2x2", "blocks:2/"),
            *("blocks:2x2/", "blocks:-2", "blocks:2.5", "blocks: 2", "blocks:2/-1", "blocks:2\n", " rows"),
        )
    },
    **{
        name: ([(name, 1.0)], f"{name!r} does not fit a matrix of {N_USERS} x {N_ITEMS}")
        for name in (
            *("blocks:0", "blocks:0x2", "blocks:2x0", "blocks:2/0", "blocks:2x2/00"),
            *("blocks:13", "blocks:13x1", "blocks:1x10", "blocks:10/1"),
        )
    },
}


@pytest.mark.parametrize(("transforms", "message"), BAD.values(), ids=BAD)
def test_a_bad_entry_is_named_before_any_work(transforms, message):
    with refused(message):
        parse_transforms(transforms, (N_USERS, N_ITEMS))


@pytest.mark.parametrize("name", ["a name", "zero", "one axis", "Rows", "blocks:13"])
def test_a_model_refuses_bad_entries_before_any_work(name):
    transforms, message = BAD[name]
    model = AIR.for_completion(transforms=transforms, **CPU)
    with refused(message):
        model.fit(dense())
    assert not hasattr(model, "interactions_")


@pytest.mark.parametrize(("options", "width"), [({"transforms": [("rows", 1.0)]}, 1), ({"tv_reg": 0.1}, N_ITEMS - 1)])
def test_further_terms_need_full_width(options, width):
    (name,) = options
    with pytest.raises(ParameterError, match=f"^{name} needs? full width, n_factors=None, found n_factors={width}"):
        AIR.for_completion(n_factors=width, **options, **CPU).fit(dense())
    short(n_factors=N_ITEMS, n_epochs=2, **options).fit(dense())


@pytest.mark.parametrize(
    ("kind", "others", "value"),
    [(AIR.for_completion, "'auto' or ", np.nan), (by_paper, "'auto' or ", "1"), (RDMF, "", None), (RDMF, "", -1)],
)
def test_a_bad_total_variation_is_named(kind, others, value):
    with refused(f"tv_reg must be {others}a number >= 0, found {value!r}"):
        kind(tv_reg=value, **CPU).fit(dense())


def test_sparse_graphs_of_transforms_need_the_row_softmin_too():
    with pytest.raises(ParameterError, match="row_softmin"):
        AIR.for_completion(adjacency="global_sum", transforms=[("rows", 1.0, 2)], n_epochs=2, **CPU).fit(dense())


# -------------------------------------------------------------------- what they learn


@pytest.mark.parametrize("neighbors", [None, 3])
@pytest.mark.parametrize(
    ("side", "names"), [("user", ("rows", f"blocks:1x{N_ITEMS}")), ("item", ("columns", f"blocks:{N_USERS}x1"))]
)
def test_rows_and_columns_as_transforms_are_the_graphs_of_users_and_items(side, names, neighbors):
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


def test_every_transform_has_a_graph_over_its_rows():
    transforms = [("blocks:2x3", 1e-3), (differences, 1e-3, 2), ("blocks:3/1", 1e-3, 4)]
    model = short(transforms=transforms).fit(dense())
    assert [len(graph) for graph in model.transform_graphs_] == [6 * 3, N_ITEMS - 1, 10 * 7]
    for graph, most in zip(model.transform_graphs_, (17, 2, 4), strict=True):
        weights = graph.to_scipy()
        assert graph.ids.tolist() == list(range(len(graph)))
        assert abs(weights - weights.T).max() < 1e-12
        assert not weights.diagonal().any()
        assert 0 < graph.n_edges <= len(graph) * most
    assert model.user_graph_ is not None
    assert model.item_graph_ is not None


def test_a_function_is_the_name_that_does_the_same():
    by_name = short(transforms=[("columns", 1e-2)], **PLAIN).fit(frame())
    by_function = short(transforms=[(lambda completed: completed.T.clone(), 1e-2)], **PLAIN).fit(frame())
    np.testing.assert_allclose(all_scores(by_function), all_scores(by_name), rtol=1e-8)


def test_an_energy_pulls_what_it_ties_together():
    """A large strength makes neighbouring columns differ alike."""
    free, tied = (short(n_epochs=300, transforms=extra, **PLAIN).fit(frame()) for extra in ([], [(differences, 1.0)]))

    def spread(model):
        steps = np.diff(all_scores(model).reshape(N_USERS, N_ITEMS), axis=1)
        return steps.std(axis=1).mean()

    assert spread(tied) < 0.5 * spread(free)


def test_total_variation_flattens():
    free, flat = (short(n_epochs=300, tv_reg=strength, **PLAIN).fit(frame()) for strength in (0.0, 1.0))
    steps = [np.abs(np.diff(all_scores(model).reshape(N_USERS, N_ITEMS), axis=1)).sum() for model in (free, flat)]
    assert steps[1] < 0.5 * steps[0]


def test_graphs_stay_in_step_with_transforms():
    """A transform of one row has nothing to tie: refused, or it keeps its place."""
    transforms = [(f"blocks:{N_USERS}x{N_ITEMS}", 1e-3), ("rows", 1e-3)]
    try:
        model = short(n_epochs=2, transforms=transforms).fit(dense())
    except ParameterError:
        return
    assert [len(graph) for graph in model.transform_graphs_] == [1, N_USERS]


# -------------------------------------------------------------------- files and copies


def test_a_file_keeps_predictions_graphs_and_names(tmp_path):
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
    assert again.snapshots_ == {}
    with pytest.raises(NotFittedError):
        again.current_factors()


def test_a_loaded_model_with_a_function_is_fitted_only_once_it_has_it_again(tmp_path):
    model = short(transforms=[(differences, 1e-3)]).fit(frame())
    again = AIR.load(model.save(tmp_path / "model.air"))
    with pytest.raises(ParameterError, match=r"or a function, found '.*differences'"):
        again.fit(frame())
    np.testing.assert_array_equal(all_scores(again), all_scores(model))  # refused before any work
    again.set_params(solver__transforms=[(differences, 1e-3)]).fit(frame())
    np.testing.assert_array_equal(all_scores(again), all_scores(model))


def test_a_loaded_model_never_takes_a_function_for_a_built_in_name(tmp_path):
    def columns(completed):
        return completed.diff(dim=0).T

    columns.__qualname__ = "columns"  # as that of a function at the top of a module
    again = AIR.load(short(transforms=[(columns, 1e-3)]).fit(frame()).save(tmp_path / "model.air"))
    with pytest.raises(ParameterError, match="columns"):
        again.fit(frame())


def test_numbers_of_numpy_in_an_entry_can_be_saved(tmp_path):
    model = short(transforms=[("columns", np.float32(1e-3), np.int64(2))]).fit(frame())
    again = AIR.load(model.save(tmp_path / "model.air"))
    np.testing.assert_array_equal(all_scores(again.fit(frame())), all_scores(model))


def test_parameters_round_trip_through_clone():
    transforms = [("columns", 1e-3, 2), (differences, 1e-3)]
    model = short(transforms=transforms, tv_reg=0.1, snapshot_epochs=[0, 5])
    assert model.get_params()["solver__transforms"] is transforms
    copy: Any = clone(model)
    assert repr(copy.get_params()) == repr(model.get_params())
    np.testing.assert_array_equal(all_scores(copy.fit(frame())), all_scores(model.fit(frame())))
    assert model.solver.transforms is transforms
    assert transforms == [("columns", 1e-3, 2), (differences, 1e-3)]


def test_a_second_fit_without_transforms_forgets_their_graphs():
    model = short(transforms=[("rows", 1e-3)]).fit(frame())
    assert model.set_params(solver__transforms=()).fit(frame()).transform_graphs_ == []
    assert model.similar_users(USERS[0], 3).shape == (3, 2)
