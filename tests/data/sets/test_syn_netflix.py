import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.datasets import load_syn_netflix, make_syn_netflix
from air_recsys.exceptions import DataFileError, ParameterError


def assert_consistent(data):
    """Groups are exactly the classes of identical rows and columns; masks are disjoint; graphs fit the matrix."""
    for matrix, groups in ((data.matrix, data.user_groups), (data.matrix.T, data.item_groups)):
        identical = (matrix[:, None] == matrix[None]).all(axis=2)
        assert (identical == (groups[:, None] == groups)).all()
        assert np.unique(groups).tolist() == list(range(groups.max() + 1))
        first = [np.flatnonzero(groups == group)[0] for group in range(groups.max() + 1)]
        assert first == sorted(first)
    assert not (data.train_mask & data.test_mask).any()
    assert data.train_mask.dtype == data.test_mask.dtype == bool
    for graph, size in ((data.user_graph, data.matrix.shape[0]), (data.item_graph, data.matrix.shape[1])):
        assert sp.issparse(graph)
        assert graph.shape == (size, size)
        assert abs(graph - graph.T).nnz == 0


def test_default_has_the_structure_of_the_file():
    data = make_syn_netflix()
    assert_consistent(data)
    assert data.matrix.shape == (150, 200)
    assert (data.user_groups.max() + 1, data.item_groups.max() + 1) == (15, 12)
    assert np.linalg.matrix_rank(data.matrix) == 12
    assert (data.matrix.min(), data.matrix.max()) == (1, 5)
    assert data.train_mask.sum() == data.test_mask.sum() == 4500
    assert np.bincount(data.user_groups).min() >= 8
    assert np.bincount(data.item_groups).min() >= 13


@pytest.mark.parametrize("seed", range(5))
def test_distinct_groups_are_really_distinct(seed):
    data = make_syn_netflix(random_state=seed)
    for matrix in (data.matrix, data.matrix.T):
        kinds = np.unique(matrix, axis=0)
        apart = np.sqrt(((kinds[:, None] - kinds[None]) ** 2).mean(axis=2))
        assert apart[np.triu_indices(len(kinds), 1)].min() > 0.15


def test_graphs_join_all_pairs_of_a_group_and_no_others():
    data = make_syn_netflix(random_state=3)
    for graph, groups in ((data.user_graph, data.user_groups), (data.item_graph, data.item_groups)):
        expected = (groups[:, None] == groups) & ~np.eye(groups.size, dtype=bool)
        assert (graph.toarray() == expected).all()


@settings(max_examples=30)
@given(st.data())
def test_any_sizes(data):
    n_users, n_items = data.draw(st.integers(2, 30)), data.draw(st.integers(2, 30))
    groups = data.draw(st.integers(2, n_users)), data.draw(st.integers(2, n_items))
    made = make_syn_netflix(n_users, n_items, *groups, random_state=data.draw(st.integers(0, 100)))
    assert_consistent(made)
    assert made.matrix.shape == (n_users, n_items)
    assert (made.user_groups.max() + 1, made.item_groups.max() + 1) == groups


def test_seed_decides_and_global_state_is_untouched():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    same = [make_syn_netflix(random_state=1) for _ in range(2)]
    assert (same[0].matrix == same[1].matrix).all()
    assert (same[0].train_mask == same[1].train_mask).all()
    assert (make_syn_netflix(random_state=2).matrix != same[0].matrix).any()
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


@pytest.mark.parametrize("wrong", [{"n_user_groups": 1}, {"n_item_groups": 201}, {"n_users": 1}, {"n_items": 2.5}])
def test_impossible_sizes(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        make_syn_netflix(**wrong)


@pytest.fixture
def small(tmp_path, write_matlab):
    """A file of the layout, with 3 users in 2 groups and 4 items in 3 groups out of order."""
    matrix = np.array([[2, 1, 2, 3], [1, 5, 1, 1], [2, 1, 2, 3]])
    dense = {"M": matrix, "Otraining": matrix == 1, "Otest": matrix == 2}
    sparse = {"Wrow": sp.csc_array(np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]])), "Wcol": sp.csc_array((4, 4))}
    path = tmp_path / "root" / "monti" / "synthetic_netflix" / "synthetic_netflix.mat"

    def write(**changes):
        write_matlab(path, {**dense, **changes}, sparse)
        return path

    write()
    return write


def test_file_is_read_in_the_right_orientation(small):
    data = load_syn_netflix(small())
    assert data.matrix.tolist() == [[2, 1, 2, 3], [1, 5, 1, 1], [2, 1, 2, 3]]
    assert data.user_groups.tolist() == [0, 1, 0]
    assert data.item_groups.tolist() == [0, 1, 0, 2]
    assert data.train_mask.sum() == 5
    assert data.user_graph.toarray().tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert_consistent(data)


def test_path_may_be_the_file_or_any_folder_above(small):
    path = small()
    for given_path in (path, path.parent, path.parents[1], str(path.parents[2])):
        assert load_syn_netflix(given_path).matrix.shape == (3, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Otraining": np.full((3, 4), 2)}, "expected masks of 0 and 1"),
        ({"Otraining": np.zeros((3, 3))}, r"shape \(3, 4\), found shape \(3, 3\)"),
        ({"Otest": np.ones((3, 4))}, "expected disjoint masks, found 5"),
        ({"M": np.full((3, 4), np.nan)}, "expected finite ratings"),
        ({"M": np.ones(3)}, "1 dimension"),
    ],
)
def test_file_that_breaks_its_promises(small, changes, message):
    with pytest.raises(DataFileError, match=message):
        load_syn_netflix(small(**changes))


def test_file_that_is_none(tmp_path, small, write_matlab):
    foreign = tmp_path / "foreign.mat"
    foreign.write_bytes(b"MATLAB 5.0 MAT-file" + bytes(200))
    with pytest.raises(DataFileError, match=r"expected a MATLAB 7\.3"):
        load_syn_netflix(foreign)
    whole = small().read_bytes()
    foreign.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataFileError, match=r"expected a MATLAB 7\.3"):
        load_syn_netflix(foreign)
    write_matlab(foreign, {"M": np.ones((2, 2))})
    with pytest.raises(DataFileError, match=r"\['Otraining', 'Otest', 'Wrow', 'Wcol'\], found \['M'\]"):
        load_syn_netflix(foreign)


@pytest.mark.data
def test_published_file(data_root):
    data = load_syn_netflix(data_root)
    assert_consistent(data)
    assert data.matrix.shape == (150, 200)
    assert (data.user_groups.max() + 1, data.item_groups.max() + 1) == (15, 12)
    assert np.linalg.matrix_rank(data.matrix) == 12
    assert (data.matrix.min(), data.matrix.max()) == (1, 5)
    assert data.train_mask.sum() == data.test_mask.sum() == 4500
