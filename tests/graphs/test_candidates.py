"""The search for the nearest rows against brute force, across block boundaries."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from air_recsys.graphs import candidates
from air_recsys.graphs.candidates import least, nearest_rows

fast = settings(max_examples=25)


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def brute_force(points, k):
    found = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points.numpy()).kneighbors(return_distance=False)
    return np.sort(found, axis=1)


@fast
@given(st.integers(2, 12), st.data())
def test_rows_are_those_of_brute_force(size, data):
    k = data.draw(st.integers(1, size - 1))
    points = normal(size, 3, seed=data.draw(st.integers(0, 2**16)))
    np.testing.assert_array_equal(nearest_rows(points, points, k).numpy(), brute_force(points, k))


@pytest.mark.parametrize("k", [1, 9, 100, 300])
def test_of_many_rows_the_nearest_are_those_of_brute_force(k):
    points = normal(700, 3)
    np.testing.assert_array_equal(nearest_rows(points, points, k).numpy(), brute_force(points, k))


@pytest.mark.parametrize("entries", [1, 23, 46, 23 * 7, 23 * 22, 23 * 23])
def test_blocks_change_nothing(monkeypatch, entries):
    points = normal(23, 4)
    monkeypatch.setattr(candidates, "_BLOCK_ENTRIES", entries)
    np.testing.assert_array_equal(nearest_rows(points, points, 5).numpy(), brute_force(points, 5))


def test_gram_metric_gives_the_nearest_rows_of_the_product():
    left, right = normal(15, 3), normal(9, 3, seed=1)
    found = nearest_rows(left, left @ (right.T @ right), 4)
    np.testing.assert_array_equal(found.numpy(), brute_force(left @ right.T, 4))


@pytest.mark.parametrize("points", [torch.zeros(6, 2), torch.ones(6, 2).cumsum(0) // 2])
def test_equal_rows_never_make_a_row_its_own_neighbor(points):
    for k in (1, 3, 5):
        found = nearest_rows(points, points, k)
        assert found.shape == (6, k)
        assert not (found == torch.arange(6)[:, None]).any()
        assert (found.diff(dim=1) > 0).all()  # ascending, so distinct


def test_all_other_rows_are_found_where_k_is_m_minus_one():
    points = normal(5, 2)
    expected = [[other for other in range(5) if other != row] for row in range(5)]
    assert nearest_rows(points, points, 4).tolist() == expected


@fast
@given(st.data())
def test_the_least_of_a_row_are_those_of_a_whole_selection(data):
    width = data.draw(st.integers(1, 300))
    k = data.draw(st.integers(1, min(width, 12)))
    values = normal(4, width, seed=data.draw(st.integers(0, 2**16)))
    found, columns = least(values, k)
    assert torch.equal(values.gather(1, columns), found)
    assert torch.equal(found.sort(dim=1).values, values.sort(dim=1).values[:, :k])


def test_the_least_of_equal_values_are_distinct_columns_and_always_the_same():
    values = torch.randint(3, (5, 400), generator=torch.Generator().manual_seed(0)).float()
    found, columns = least(values, 10)
    assert (columns.sort(dim=1).values.diff(dim=1) > 0).all()
    assert torch.equal(found.sort(dim=1).values, values.sort(dim=1).values[:, :10])
    assert torch.equal(least(values, 10)[1], columns)


@pytest.mark.parametrize(("rows", "columns"), [(1, 100), (7, 60), (250, 100), (250, 1000)])
@pytest.mark.parametrize("k", [1, 4, 30])
def test_tiles_and_groups_change_nothing(monkeypatch, rows, columns, k):
    points = normal(250, 3)
    monkeypatch.setattr(candidates, "_TILE_COLUMNS", columns)
    monkeypatch.setattr(candidates, "_BLOCK_ENTRIES", rows * columns)
    np.testing.assert_array_equal(nearest_rows(points, points, k).numpy(), brute_force(points, k))


def test_rows_that_are_no_numbers_still_get_places_of_rows():
    points = normal(200, 3)
    points[::2] = torch.nan
    found = nearest_rows(points, points, 4)
    assert ((found >= 0) & (found < 200)).all()


def test_memory_stays_at_a_tile(monkeypatch):
    monkeypatch.setattr(candidates, "_BLOCK_ENTRIES", 5_000)
    monkeypatch.setattr(candidates, "_TILE_COLUMNS", 500)
    shapes, points = [], normal(2_000, 3)
    original = candidates.least
    monkeypatch.setattr(candidates, "least", lambda values, k: shapes.append(values.shape) or original(values, k))
    nearest_rows(points, points, 5)
    assert set(shapes) == {(10, 500)}
