"""The search for the nearest rows against brute force, across block boundaries."""

from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from air_recsys.graphs import candidates
from air_recsys.graphs.candidates import least, near_rows, nearest_rows

fast = settings(max_examples=25)


@contextmanager
def clusters_of(size):
    """Clusters of so many rows on average, as those of large data."""
    with mock.patch.object(candidates, "_CLUSTER", size):
        yield


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


@pytest.mark.parametrize("entries", [1, 46, 23 * 22, 23 * 23])
def test_blocks_change_nothing(blocks_of, entries):
    points = normal(23, 4)
    blocks_of(entries)
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


@pytest.mark.parametrize(
    ("rows", "columns", "k"), [(1, 100, 30), (7, 60, 4), (7, 60, 1), (250, 100, 30), (250, 1000, 4)]
)
def test_tiles_and_groups_change_nothing(monkeypatch, blocks_of, rows, columns, k):
    points = normal(250, 3)
    monkeypatch.setattr(candidates, "_TILE_COLUMNS", columns)
    blocks_of(rows * columns)
    np.testing.assert_array_equal(nearest_rows(points, points, k).numpy(), brute_force(points, k))


def test_rows_that_are_no_numbers_still_get_places_of_rows():
    points = normal(200, 3)
    points[::2] = torch.nan
    found = nearest_rows(points, points, 4)
    assert ((found >= 0) & (found < 200)).all()


def test_memory_stays_at_a_tile(monkeypatch, blocks_of):
    blocks_of(5_000)
    monkeypatch.setattr(candidates, "_TILE_COLUMNS", 500)
    shapes, points = [], normal(2_000, 3)
    original = candidates.least
    monkeypatch.setattr(candidates, "least", lambda values, k: shapes.append(values.shape) or original(values, k))
    nearest_rows(points, points, 5)
    assert set(shapes) == {(10, 500)}


def groups(size, n_groups, width=8, seed=0):
    """Rows around centres, in a metric of their own."""
    generator = torch.Generator().manual_seed(seed)
    centres = 3 * normal(n_groups, width, seed=seed + 1)
    points = centres[torch.randint(n_groups, (size,), generator=generator)] + normal(size, width, seed=seed + 2)
    root = normal(width, width, seed=seed + 3)
    return points, points @ (root @ root.T)


def recall(found, expected):
    return sum(len(set(a) & set(b)) for a, b in zip(found.tolist(), expected.tolist(), strict=True)) / found.numel()


@settings(max_examples=30)
@given(st.integers(2, 60), st.integers(1, 59), st.integers(1, 20), st.integers(0, 5))
def test_lists_are_lists_of_other_rows(size, k, cluster, seed):
    k = min(k, size - 1)
    points = normal(size, 3, seed=seed)
    with clusters_of(cluster):
        found = near_rows(points, points, k, n_probes=2)
    assert found.shape == (size, k)
    assert (found.diff(dim=1) > 0).all()  # ascending, so distinct
    assert not (found == torch.arange(size)[:, None]).any()
    assert 0 <= int(found.min()) <= int(found.max()) < size


@pytest.mark.parametrize("k", [1, 7, 40])
def test_all_clusters_probed_is_the_exact_search(k):
    points, weighted = groups(700, 5)
    assert torch.equal(near_rows(points, weighted, k, n_probes=700), nearest_rows(points, weighted, k))


@clusters_of(20)
def test_few_distances_find_most_neighbors():
    points, weighted = groups(4000, 40)
    exact = nearest_rows(points, weighted, 10)
    few, more = (recall(near_rows(points, weighted, 10, n_probes=probes), exact) for probes in (4, 32))
    assert few < more
    assert more > 0.95  # of 640 rows compared in 4,000


def test_rows_that_are_all_alike():
    points = torch.ones(50, 2)
    found = near_rows(points, points, 3)
    assert found.shape == (50, 3)
    assert not (found == torch.arange(50)[:, None]).any()


@pytest.mark.parametrize("others", [0, 20])
@clusters_of(10)
def test_rows_that_are_alike_leave_clusters_without_rows(others):
    points = torch.ones(50, 2)
    points[:others] = 0
    found = near_rows(points, points, 3)
    assert (found.diff(dim=1) > 0).all()
    assert not (found == torch.arange(50)[:, None]).any()


@clusters_of(1)
def test_clusters_of_one_row_each_are_the_exact_search():
    points = normal(90, 4)
    for k in (1, 6):
        assert torch.equal(near_rows(points, points, k, n_probes=k + 1), nearest_rows(points, points, k))


def villages(*sizes):
    """Groups of rows along a line; each row's group. Of rows at even distances each is of another group."""
    home, n = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes)), len(sizes)
    order = torch.full((sum(sizes),), -1)
    order[torch.arange(n) * len(home) // n] = torch.tensor(sizes).cumsum(0) - 1
    order[order < 0] = torch.arange(len(home))[~torch.isin(torch.arange(len(home)), order)]
    home = home[order]
    return (10 * home + 1e-3 * torch.arange(len(home)))[:, None].double(), home


@pytest.fixture
def compared(monkeypatch):
    """How many rows each cluster's rows are compared with, where clusters have 20 rows."""
    shapes, least = [], candidates.least
    monkeypatch.setattr(candidates, "least", lambda values, k: shapes.append(tuple(values.shape)) or least(values, k))
    with clusters_of(20):
        yield shapes


def test_rows_are_compared_with_those_of_the_nearest_clusters(compared):
    points, home = villages(*[20] * 12)
    found = near_rows(points, points, 59, n_probes=3)
    assert compared == [(20, 60)] * 12
    for row, own in enumerate(home.tolist()):
        middle = min(max(own, 1), 10)
        others = ((home - middle).abs() <= 1) & (torch.arange(240) != row)
        assert torch.equal(found[row], others.nonzero().flatten())


@pytest.mark.parametrize(("k", "width"), [(19, 20), (20, 40), (59, 60), (60, 80), (239, 240)])
def test_as_many_clusters_are_probed_as_the_list_needs(compared, k, width):
    points, _ = villages(*[20] * 12)
    found = near_rows(points, points, k, n_probes=1)
    assert compared == [(20, width)] * 12
    assert not (found == torch.arange(240)[:, None]).any()


def test_sixteen_clusters_are_probed_where_nothing_else_is_asked_for(compared):
    points, _ = villages(*[20] * 30)
    near_rows(points, points, 5)
    assert compared == [(20, 320)] * 30


@pytest.mark.parametrize(
    ("sizes", "pieces"),
    [
        ([39, 1, 20], [39, 1, 20]),
        ([40, 20, 19, 1], [20, 20, 20, 19, 1]),
        ([99, 1, 10, 8, 1, 1], [33, 33, 33, 1, 10, 8, 1, 1]),
    ],
)
def test_a_cluster_of_twice_the_usual_size_is_cut(compared, sizes, pieces):
    points, _ = villages(*sizes)
    near_rows(points, points, 5, n_probes=1)
    assert [rows for rows, _ in compared] == pieces


def test_the_same_rows_give_the_same_lists():
    points, weighted = groups(3000, 10)
    assert torch.equal(near_rows(points, weighted, 5), near_rows(points, weighted, 5))


@clusters_of(20)
def test_one_large_cluster_is_cut_into_pieces(monkeypatch):
    points = torch.cat([1e-3 * normal(2000, 4), 10 * normal(40, 4, seed=1)])  # all but 40 rows lie together
    compared = []
    least = candidates.least

    def watched(values, k):
        compared.append(values.numel())
        return least(values, k)

    monkeypatch.setattr(candidates, "least", watched)
    found = near_rows(points, points, 5, n_probes=4)
    assert sum(compared) < 2040 * 4 * 40 * 1.1
    assert (found[:2000] < 2000).float().mean() > 0.99
