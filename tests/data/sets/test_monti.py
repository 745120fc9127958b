import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys.datasets import load_monti, load_monti_graphs, load_movielens_fold
from air_recsys.exceptions import DataFileError, ParameterError

RATINGS = np.array([[5, 0, 0], [0, 0, 0.5], [0, 3, 0], [0, 0, 0]])
GRAPH = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])


@pytest.fixture
def monti(tmp_path, write_matlab):
    """A data root with the three sets, each 4 users x 3 items with 2 train and 1 test rating."""
    root = tmp_path / "root"
    dense = {"M": RATINGS, "Otraining": RATINGS > 1, "Otest": RATINGS == 0.5}
    users = np.zeros((4, 4))
    write_matlab(root / "monti/flixster/training_test_dataset.mat", {**dense, "W_users": users, "W_movies": GRAPH})
    write_matlab(root / "monti/douban/training_test_dataset.mat", {**dense, "W_users": users})
    sparse = {"W_users": sp.csc_array(users), "W_movies": sp.csc_array(GRAPH)}
    write_matlab(root / "monti/movielens/split_1.mat", dense, sparse)
    return root


@pytest.mark.parametrize("name", ["flixster", "douban", "movielens"])
def test_both_parts_keep_every_row_and_column(monti, name):
    train, test = load_monti(monti, name)
    first = 1 if name == "movielens" else 0
    for part in (train, test):
        assert part.user_ids.tolist() == list(range(first, first + 4))
        assert part.item_ids.tolist() == list(range(first, first + 3))
    assert train.to_csr().toarray().tolist() == np.where(RATINGS > 1, RATINGS, 0).tolist()
    assert test.to_csr().toarray().tolist() == np.where(RATINGS == 0.5, RATINGS, 0).tolist()


def test_dense_and_sparse_graphs(monti):
    for name in ("flixster", "movielens"):
        graphs = load_monti_graphs(monti, name)
        assert graphs.user_graph.shape == (4, 4)
        assert graphs.item_graph.toarray().tolist() == GRAPH.tolist()
    assert load_monti_graphs(monti, "douban").item_graph is None


def test_original_name_of_the_flixster_file(monti):
    path = monti / "monti" / "flixster" / "training_test_dataset.mat"
    path.rename(path.with_name("training_test_dataset_10_NNs.mat"))
    assert load_monti(path.parent, "flixster")[0].n_ratings == 2


def test_broken_files(monti, write_matlab):
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


def test_sparse_group_with_impossible_indices(monti, write_matlab):
    import h5py

    path = monti / "monti" / "movielens" / "split_1.mat"
    with h5py.File(path, "r+") as file:
        file["W_users"].attrs["MATLAB_sparse"] = 2
        del file["W_movies"]["ir"]
        file["W_movies"]["ir"] = np.array([7, 9])
    with pytest.raises(DataFileError, match=r"expected a MATLAB 7\.3"):
        load_monti_graphs(monti, "movielens")


def test_unknown_name(monti):
    with pytest.raises(ParameterError, match="name must be one of 'flixster', 'douban', 'movielens'"):
        load_monti(monti, "netflix")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "counts", "rated"),
    [("flixster", (23_556, 2_617), (2341, 2956)), ("douban", (123_202, 13_689), (2999, 3000))],
)
def test_published_counts(data_root, name, counts, rated):
    train, test = load_monti(data_root, name)
    assert (train.n_ratings, test.n_ratings) == counts
    assert (train.n_users, train.n_items) == (test.n_users, test.n_items) == (3000, 3000)
    both = train.to_csr() + test.to_csr()
    assert both.nnz == sum(counts)
    assert ((both.sum(axis=1) > 0).sum(), (both.sum(axis=0) > 0).sum()) == rated


@pytest.mark.data
def test_movielens_is_the_split_u1(data_root):
    for ours, original in zip(load_monti(data_root, "movielens"), load_movielens_fold(data_root, "u1"), strict=True):
        assert ours.user_ids.tolist() == original.user_ids.tolist()
        assert ours.item_ids.tolist() == original.item_ids.tolist()
        assert abs(ours.to_csr() - original.to_csr()).nnz == 0


@pytest.mark.data
def test_published_graphs(data_root):
    graph = load_monti_graphs(data_root, "douban").user_graph
    assert graph.diagonal().sum() == 2
    assert (graph.sum(axis=1) == 0).sum() == 1831
