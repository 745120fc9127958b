import pytest

from air_recsys.datasets import load_implicit_lists
from air_recsys.exceptions import DataFileError, ParameterError


@pytest.fixture
def gowalla(tmp_path):
    """A data root with a gowalla folder: 3 users (one without training items), 5 items."""
    folder = tmp_path / "root" / "implicit" / "gowalla"
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text("0 3 1 \n1 0 1 1\n2\n")
    (folder / "test.txt").write_text("0 4\n2 2 0\n")
    return folder.parents[1]


def test_lists_become_pairs_over_common_ids(gowalla):
    train, test = load_implicit_lists(gowalla, "gowalla")
    assert train.to_csr().toarray().tolist() == [[0, 1, 0, 1, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert test.to_csr().toarray().tolist() == [[0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [1, 0, 1, 0, 0]]
    assert train.user_ids.tolist() == test.user_ids.tolist() == [0, 1, 2]


def test_places_in_the_lines_are_times_where_the_order_is_asked_for(gowalla):
    train, test = load_implicit_lists(gowalla, "gowalla", order=True)
    times = dict(
        zip(zip(train.user_index.tolist(), train.item_index.tolist(), strict=True), train.timestamps, strict=True)
    )
    assert times == pytest.approx(
        {(0, 3): 1 / 2, (0, 1): 1, (1, 0): 1 / 3, (1, 1): 2 / 3}
    )  # the first of a repeated one
    assert test.timestamps is None
    assert load_implicit_lists(gowalla, "gowalla")[0].timestamps is None


@pytest.mark.parametrize("content", ["0 1 3\n1 0 1 1\n2\n", "0 4\n1 2\n", "1 3 4\n0 1 2\n"])
def test_a_copy_that_lost_the_order_is_refused(gowalla, content):
    (gowalla / "implicit" / "gowalla" / "train.txt").write_text(content)
    load_implicit_lists(gowalla, "gowalla")
    with pytest.raises(
        DataFileError, match=r"train.txt: expected .* order of the published file, found all 2 lines in asc"
    ):
        load_implicit_lists(gowalla, "gowalla", order=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0 1\n1 x\n", "train.txt, line 2: expected a user id and item ids"),
        ("0 1\n\n1 2\n", "train.txt, line 2"),
        ("0 1.5\n", "train.txt, line 1"),
        ("0\n", "train.txt: expected at least one rating"),
        (f"0 {10**30}\n", "below 2"),
    ],
)
def test_malformed_lists(gowalla, content, message):
    (gowalla / "implicit" / "gowalla" / "train.txt").write_text(content)
    with pytest.raises(DataFileError, match=message):
        load_implicit_lists(gowalla, "gowalla")


def test_missing_set_says_where_to_get_it(gowalla):
    with pytest.raises(DataFileError, match=r"'train.txt' of Yelp 2018.*get it from https"):
        load_implicit_lists(gowalla, "yelp2018")
    with pytest.raises(ParameterError, match="'gowalla', 'yelp2018'"):
        load_implicit_lists(gowalla, "amazon")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "users", "items", "n_train", "n_test"),
    [("gowalla", 29_858, 40_981, 810_128, 217_242), ("yelp2018", 31_668, 38_048, 1_237_259, 324_147)],
)
def test_published_counts(data_root, name, users, items, n_train, n_test):
    train, test = load_implicit_lists(data_root, name)
    assert (train.n_users, train.n_items) == (test.n_users, test.n_items) == (users, items)
    assert (train.n_ratings, test.n_ratings) == (n_train, n_test)
    assert (train.to_csr() * test.to_csr()).nnz == 0
    assert train.item_ids.tolist() == list(range(items))
