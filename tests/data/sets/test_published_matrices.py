"""The sets of Monti et al. and Syn-Netflix, which are MATLAB files, and published lists of likes."""

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.datasets import (
    load_implicit_lists,
    load_monti,
    load_monti_graphs,
    load_movielens_fold,
    load_syn_netflix,
    make_syn_netflix,
)
from air_recsys.exceptions import DataFileError, ParameterError

RATINGS = np.array([[5, 0, 0], [0, 0, 0.5], [0, 3, 0], [0, 0, 0]])
GRAPH = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])


def write_matlab(path, dense, sparse=None):
    """Write variables as MATLAB 7.3 does: dense ones transposed, sparse ones as groups in CSC form."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for name, array in dense.items():
            file[name] = np.asarray(array, dtype=float).T
        for name, matrix in (sparse or {}).items():
            group, csc = file.create_group(name), matrix.tocsc()
            group["data"] = csc.data.astype(float)
            group["ir"], group["jc"] = csc.indices.astype(np.uint64), csc.indptr.astype(np.uint64)
            group.attrs["MATLAB_sparse"] = np.uint64(csc.shape[0])


# -------------------------------------------------------------------- Monti et al.


@pytest.fixture
def monti(tmp_path):
    """A data root with the three sets, each 4 users x 3 items with 2 train and 1 test rating."""
    root = tmp_path / "root"
    dense = {"M": RATINGS, "Otraining": RATINGS > 1, "Otest": RATINGS == 0.5}
    users = np.zeros((4, 4))
    write_matlab(root / "monti/flixster/training_test_dataset.mat", {**dense, "W_users": users, "W_movies": GRAPH})
    write_matlab(root / "monti/douban/training_test_dataset.mat", {**dense, "W_users": users})
    sparse = {"W_users": sp.csc_array(users), "W_movies": sp.csc_array(GRAPH)}
    write_matlab(root / "monti/movielens/split_1.mat", dense, sparse)
    return root


@pytest.mark.parametrize(("name", "first"), [("flixster", 0), ("douban", 0), ("movielens", 1)])
def test_both_parts_keep_every_row_and_column_and_graphs_are_dense_or_sparse(monti, name, first):
    train, test = load_monti(monti, name)
    for part in (train, test):
        assert part.user_ids.tolist() == list(range(first, first + 4))
        assert part.item_ids.tolist() == list(range(first, first + 3))
    assert train.to_csr().toarray().tolist() == np.where(RATINGS > 1, RATINGS, 0).tolist()
    assert test.to_csr().toarray().tolist() == np.where(RATINGS == 0.5, RATINGS, 0).tolist()
    graphs = load_monti_graphs(monti, name)
    assert graphs.user_graph.shape == (4, 4)
    assert graphs.item_graph is None if name == "douban" else graphs.item_graph.toarray().tolist() == GRAPH.tolist()


def test_original_name_of_the_flixster_file_and_unknown_names(monti):
    path = monti / "monti" / "flixster" / "training_test_dataset.mat"
    path.rename(path.with_name("training_test_dataset_10_NNs.mat"))
    assert load_monti(path.parent, "flixster")[0].n_ratings == 2
    with pytest.raises(ParameterError, match="name must be one of 'flixster', 'douban', 'movielens'"):
        load_monti(monti, "netflix")


def test_broken_matrices_are_refused(monti):
    path = monti / "monti" / "douban" / "training_test_dataset.mat"
    nothing = np.zeros((4, 3))
    write_matlab(path, {"M": RATINGS, "Otraining": nothing, "Otest": nothing, "W_users": np.ones((2, 3))})
    with pytest.raises(DataFileError, match="at least one rating"):
        load_monti(monti, "douban")
    with pytest.raises(DataFileError, match="expected W_users to be symmetric, found 2 x 3"):
        load_monti_graphs(monti, "douban")
    write_matlab(path, {"M": RATINGS, "Otest": nothing}, {"Otraining": sp.csc_array(nothing)})
    with pytest.raises(DataFileError, match="expected dense matrices"):
        load_monti(monti, "douban")
    with h5py.File(monti / "monti" / "movielens" / "split_1.mat", "r+") as file:
        file["W_users"].attrs["MATLAB_sparse"] = 2
        del file["W_movies"]["ir"]
        file["W_movies"]["ir"] = np.array([7, 9])  # of no column
    with pytest.raises(DataFileError, match=r"expected a MATLAB 7\.3"):
        load_monti_graphs(monti, "movielens")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "counts", "rated"),
    [("flixster", (23_556, 2_617), (2341, 2956)), ("douban", (123_202, 13_689), (2999, 3000))],
)
def test_published_counts_of_monti(data_root, name, counts, rated):
    train, test = load_monti(data_root, name)
    assert (train.n_ratings, test.n_ratings) == counts
    assert (train.n_users, train.n_items) == (test.n_users, test.n_items) == (3000, 3000)
    both = train.to_csr() + test.to_csr()
    assert both.nnz == sum(counts)
    assert ((both.sum(axis=1) > 0).sum(), (both.sum(axis=0) > 0).sum()) == rated
    if name == "douban":
        graph = load_monti_graphs(data_root, name).user_graph
        assert (graph.diagonal().sum(), (graph.sum(axis=1) == 0).sum()) == (2, 1831)


@pytest.mark.data
def test_movielens_is_the_split_u1(data_root):
    for ours, original in zip(load_monti(data_root, "movielens"), load_movielens_fold(data_root, "u1"), strict=True):
        assert ours.user_ids.tolist() == original.user_ids.tolist()
        assert ours.item_ids.tolist() == original.item_ids.tolist()
        assert abs(ours.to_csr() - original.to_csr()).nnz == 0


# -------------------------------------------------------------------- Syn-Netflix


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


def assert_published(data):
    """The structure of the published file."""
    assert_consistent(data)
    assert data.matrix.shape == (150, 200)
    assert (data.user_groups.max() + 1, data.item_groups.max() + 1) == (15, 12)
    assert np.linalg.matrix_rank(data.matrix) == 12
    assert (data.matrix.min(), data.matrix.max()) == (1, 5)
    assert data.train_mask.sum() == data.test_mask.sum() == 4500


@pytest.mark.data
def test_published_syn_netflix(data_root):
    assert_published(load_syn_netflix(data_root))


@pytest.mark.parametrize("seed", [0, 3])
def test_a_made_one_has_the_structure_of_the_file_with_groups_apart(seed):
    data = make_syn_netflix(random_state=seed)
    assert_published(data)
    assert np.bincount(data.user_groups).min() >= 8
    assert np.bincount(data.item_groups).min() >= 13
    for matrix in (data.matrix, data.matrix.T):
        kinds = np.unique(matrix, axis=0)
        apart = np.sqrt(((kinds[:, None] - kinds[None]) ** 2).mean(axis=2))
        assert apart[np.triu_indices(len(kinds), 1)].min() > 0.15
    for graph, groups in ((data.user_graph, data.user_groups), (data.item_graph, data.item_groups)):
        expected = (groups[:, None] == groups) & ~np.eye(groups.size, dtype=bool)
        assert (graph.toarray() == expected).all()


@settings(max_examples=30)
@given(st.data())
def test_a_made_one_has_any_size(data):
    n_users, n_items = data.draw(st.integers(2, 30)), data.draw(st.integers(2, 30))
    groups = data.draw(st.integers(2, n_users)), data.draw(st.integers(2, n_items))
    made = make_syn_netflix(n_users, n_items, *groups, random_state=data.draw(st.integers(0, 100)))
    assert_consistent(made)
    assert made.matrix.shape == (n_users, n_items)
    assert (made.user_groups.max() + 1, made.item_groups.max() + 1) == groups


@pytest.fixture
def small(tmp_path):
    """A file of the layout, with 3 users in 2 groups and 4 items in 3 groups out of order."""
    matrix = np.array([[2, 1, 2, 3], [1, 5, 1, 1], [2, 1, 2, 3]])
    dense = {"M": matrix, "Otraining": matrix == 1, "Otest": matrix == 2}
    sparse = {"Wrow": sp.csc_array(np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]])), "Wcol": sp.csc_array((4, 4))}
    path = tmp_path / "root" / "monti" / "synthetic_netflix" / "synthetic_netflix.mat"

    def write(**changes):
        write_matlab(path, {**dense, **changes}, sparse)
        return path

    return write


def test_a_file_is_read_in_the_right_orientation_wherever_it_lies(small):
    path = small()
    for given_path in (path, path.parent, path.parents[1], str(path.parents[2])):
        data = load_syn_netflix(given_path)
        assert data.matrix.tolist() == [[2, 1, 2, 3], [1, 5, 1, 1], [2, 1, 2, 3]]
    assert data.user_groups.tolist() == [0, 1, 0]
    assert data.item_groups.tolist() == [0, 1, 0, 2]
    assert data.train_mask.sum() == 5
    assert data.user_graph.toarray().tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert_consistent(data)


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


def test_file_that_is_none(tmp_path, small):
    foreign, whole = tmp_path / "foreign.mat", small().read_bytes()
    for content in (b"MATLAB 5.0 MAT-file" + bytes(200), whole[: len(whole) // 2]):
        foreign.write_bytes(content)
        with pytest.raises(DataFileError, match=r"expected a MATLAB 7\.3"):
            load_syn_netflix(foreign)
    write_matlab(foreign, {"M": np.ones((2, 2))})
    with pytest.raises(DataFileError, match=r"\['Otraining', 'Otest', 'Wrow', 'Wcol'\], found \['M'\]"):
        load_syn_netflix(foreign)


# -------------------------------------------------------------------- lists of likes


@pytest.fixture
def gowalla(tmp_path):
    """A data root with a gowalla folder: 3 users (one without training items), 5 items."""
    folder = tmp_path / "root" / "implicit" / "gowalla"
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text("0 3 1 \n1 0 1 1\n2\n")
    (folder / "test.txt").write_text("0 4\n2 2 0\n")
    return folder.parents[1]


def test_lists_become_pairs_over_common_ids_and_places_are_times_where_asked_for(gowalla):
    for order in (False, True):
        train, test = load_implicit_lists(gowalla, "gowalla", order=order)
        assert train.to_csr().toarray().tolist() == [[0, 1, 0, 1, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]]
        assert test.to_csr().toarray().tolist() == [[0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [1, 0, 1, 0, 0]]
        assert train.user_ids.tolist() == test.user_ids.tolist() == [0, 1, 2]
        assert test.timestamps is None
        assert (train.timestamps is None) != order
    times = zip(train.user_index.tolist(), train.item_index.tolist(), train.timestamps, strict=True)
    expected = {(0, 3): 1 / 2, (0, 1): 1, (1, 0): 1 / 3, (1, 1): 2 / 3}  # the first of a repeated one
    assert {(user, item): time for user, item, time in times} == pytest.approx(expected)


@pytest.mark.parametrize("content", ["0 1 3\n1 0 1 1\n2\n", "0 4\n1 2\n"])
def test_a_copy_that_lost_the_order_is_refused(gowalla, content):
    (gowalla / "implicit" / "gowalla" / "train.txt").write_text(content)
    load_implicit_lists(gowalla, "gowalla")
    message = r"train.txt: expected .* order of the published file, found all 2 lines in asc"
    with pytest.raises(DataFileError, match=message):
        load_implicit_lists(gowalla, "gowalla", order=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0 1\n1 x\n", "train.txt, line 2: expected a user id and item ids"),
        ("0 1\n\n1 2\n", "train.txt, line 2"),
        ("0\n", "train.txt: expected at least one rating"),
        (f"0 {10**30}\n", "below 2"),
    ],
)
def test_malformed_lists_and_absent_sets_are_refused(gowalla, content, message):
    (gowalla / "implicit" / "gowalla" / "train.txt").write_text(content)
    with pytest.raises(DataFileError, match=message):
        load_implicit_lists(gowalla, "gowalla")
    with pytest.raises(DataFileError, match=r"'train.txt' of Yelp 2018.*get it from https"):
        load_implicit_lists(gowalla, "yelp2018")
    with pytest.raises(ParameterError, match="'gowalla', 'yelp2018'"):
        load_implicit_lists(gowalla, "amazon")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "users", "items", "n_train", "n_test"),
    [("gowalla", 29_858, 40_981, 810_128, 217_242), ("yelp2018", 31_668, 38_048, 1_237_259, 324_147)],
)
def test_published_counts_of_lists(data_root, name, users, items, n_train, n_test):
    train, test = load_implicit_lists(data_root, name)
    assert (train.n_users, train.n_items) == (test.n_users, test.n_items) == (users, items)
    assert (train.n_ratings, test.n_ratings) == (n_train, n_test)
    assert (train.to_csr() * test.to_csr()).nnz == 0
    assert train.item_ids.tolist() == list(range(items))
