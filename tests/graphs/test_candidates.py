"""The search for the nearest rows against brute force, across block boundaries."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors
from torch.utils._python_dispatch import TorchDispatchMode

from air_recsys.graphs.candidates import least, near_rows, nearest_among, nearest_rows

fast = settings(max_examples=25)


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def brute_force(points, k, rows=slice(None)):
    found = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(points.numpy())
    nearest = found.kneighbors(points[rows].numpy(), return_distance=False)  # each row before the others
    return np.sort(nearest[:, 1:], axis=1)


def are_lists(found, size, k):
    """Whether every row has a list of k other rows, each once and in ascending order."""
    own = torch.arange(size)[:, None]
    assert found.shape == (size, k)
    return (found.diff(dim=1) > 0).all() and not (found == own).any() and ((found >= 0) & (found < size)).all()


class Products(TorchDispatchMode):
    """The numbers of entries of the products with an addend, as those that distances are made of."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket is torch.ops.aten.addmm:
            self.sizes.append(result.numel())
        return result


# -------------------------------------------------------------------- the exact search


@fast
@given(st.integers(2, 12), st.data())
def test_rows_are_those_of_brute_force(size, data):
    k = data.draw(st.integers(1, size - 1))
    points = normal(size, 3, seed=data.draw(st.integers(0, 2**16)))
    np.testing.assert_array_equal(nearest_rows(points, points, k).numpy(), brute_force(points, k))


@pytest.mark.parametrize(
    ("size", "entries", "k"),
    [(700, None, 1), (700, None, 100), (700, None, 300), (23, 1, 5), (23, 46, 5), (23, 23 * 22, 5), (250, 1750, 30)],
)
def test_of_many_rows_and_in_blocks_the_nearest_are_those_of_brute_force(blocks_of, size, entries, k):
    points = normal(size, 3)
    if entries is not None:
        blocks_of(entries)
    np.testing.assert_array_equal(nearest_rows(points, points, k).numpy(), brute_force(points, k))


@pytest.mark.parametrize("k", [4, 30])
def test_some_rows_are_compared_with_all_tile_by_tile(k):
    points, rows = normal(41_000, 3), slice(19_990, 20_010)  # of three tiles; the rows are in two of them
    norms = points.square().sum(dim=1)
    found = nearest_among(points[rows], points, norms, rows.start, k)
    np.testing.assert_array_equal(found.numpy(), brute_force(points, k, rows))


def test_memory_stays_at_a_tile():
    points = normal(2_000, 3)
    with Products() as products:
        nearest_rows(points, points, 5)
    assert max(products.sizes) == 1_300_000
    assert sum(products.sizes) == 2_000**2


def test_gram_metric_gives_the_nearest_rows_of_the_product():
    left, right = normal(15, 3), normal(9, 3, seed=1)
    found = nearest_rows(left, left @ (right.T @ right), 4)
    np.testing.assert_array_equal(found.numpy(), brute_force(left @ right.T, 4))


@pytest.mark.parametrize("points", [torch.zeros(6, 2), torch.ones(6, 2).cumsum(0) // 2])
def test_equal_rows_never_make_a_row_its_own_neighbor(points):
    for k in (1, 3, 5):
        assert are_lists(nearest_rows(points, points, k), 6, k)


def test_rows_that_are_no_numbers_still_get_places_of_rows():
    points = normal(200, 3)
    points[::2] = torch.nan
    found = nearest_rows(points, points, 4)
    assert ((found >= 0) & (found < 200)).all()


@fast
@given(st.data())
def test_the_least_of_a_row_are_those_of_a_whole_selection_in_columns_that_are_always_the_same(data):
    width = data.draw(st.integers(1, 300))
    k = data.draw(st.integers(1, min(width, 12)))
    values = normal(4, width, seed=data.draw(st.integers(0, 2**16)))
    values = values.round() if data.draw(st.booleans()) else values  # many equal ones
    found, columns = least(values, k)
    assert torch.equal(columns, least(values, k)[1])
    assert (columns.sort(dim=1).values.diff(dim=1) > 0).all()
    assert torch.equal(values.gather(1, columns), found)
    assert torch.equal(found.sort(dim=1).values, values.sort(dim=1).values[:, :k])


# -------------------------------------------------------------------- the search in clusters, of 256 rows each


def groups(size, n_groups, width=8, seed=0):
    """Rows around centres, in a metric of their own."""
    generator = torch.Generator().manual_seed(seed)
    centres = 3 * normal(n_groups, width, seed=seed + 1)
    points = centres[torch.randint(n_groups, (size,), generator=generator)] + normal(size, width, seed=seed + 2)
    root = normal(width, width, seed=seed + 3)
    return points, points @ (root @ root.T)


def recall(found, expected):
    return sum(len(set(a) & set(b)) for a, b in zip(found.tolist(), expected.tolist(), strict=True)) / found.numel()


@pytest.mark.parametrize(
    ("size", "k", "n_alike"), [(2, 1, 0), (300, 299, 0), (600, 5, 0), (1100, 400, 0), (1300, 3, 500), (1300, 3, 1300)]
)
def test_lists_are_lists_of_other_rows_also_where_rows_that_are_alike_leave_clusters_empty(size, k, n_alike):
    points = normal(size, 3)
    points[:n_alike] = 1
    assert are_lists(near_rows(points, points, k, n_probes=2), size, k)


@pytest.mark.parametrize("k", [1, 40])
def test_all_clusters_probed_is_the_exact_search(k):
    points, weighted = groups(1500, 5)
    assert torch.equal(near_rows(points, weighted, k, n_probes=1500), nearest_rows(points, weighted, k))


def test_few_distances_find_most_neighbors_and_always_the_same():
    points, weighted = groups(6000, 40)
    exact = nearest_rows(points, weighted, 10)
    few, more = (near_rows(points, weighted, 10, n_probes=probes) for probes in (1, 6))
    assert recall(few, exact) < recall(more, exact)
    assert recall(more, exact) > 0.9  # of about a quarter of the rows compared
    assert torch.equal(near_rows(points, weighted, 10), near_rows(points, weighted, 10, n_probes=16))


def villages(*sizes):
    """Groups of rows along a line; each row's group. Of rows at even distances each is of another group."""
    home, n = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes)), len(sizes)
    order = torch.full((sum(sizes),), -1)
    order[torch.arange(n) * len(home) // n] = torch.tensor(sizes).cumsum(0) - 1
    order[order < 0] = torch.arange(len(home))[~torch.isin(torch.arange(len(home)), order)]
    home = home[order]
    return (10 * home + 1e-3 * torch.arange(len(home)))[:, None].double(), home


@pytest.mark.parametrize(("k", "n_probes", "reach"), [(767, 3, 1), (255, 1, 0), (3 * 256 - 1, 1, 1)])
def test_rows_are_compared_with_those_of_the_nearest_clusters_and_of_as_many_as_the_list_needs(k, n_probes, reach):
    points, home = villages(*[256] * 12)
    found = near_rows(points, points, k, n_probes=n_probes)
    for row in range(0, len(home), 7):
        middle = min(max(int(home[row]), reach), 11 - reach)
        others = ((home - middle).abs() <= reach) & (torch.arange(len(home)) != row)
        assert torch.equal(found[row], others.nonzero().flatten())


def test_one_large_cluster_is_cut_into_pieces():
    points = torch.cat([1e-3 * normal(5000, 4), 10 * normal(100, 4, seed=1)])  # all but 100 rows lie together
    with Products() as products:
        found = near_rows(points, points, 5, n_probes=2)
    assert sum(products.sizes) < 5100 * 2 * 512 * 1.1 + 3 * 5100 * 20
    assert (found[:5000] < 5000).float().mean() > 0.99
