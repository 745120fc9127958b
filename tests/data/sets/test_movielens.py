import gzip

import numpy as np
import pytest

from air_recsys.datasets import (
    load_movielens,
    load_movielens_fold,
    load_movielens_genres,
    load_movielens_titles,
)
from air_recsys.exceptions import DataFileError, ParameterError


def test_ratings_of_100k_keep_ids_values_and_times(ml100k):
    data = load_movielens(ml100k)
    assert data.to_frame().values.tolist() == [
        [1, 1, 5, 874000001],
        [1, 2, 3, 874000002],
        [2, 1, 4, 874000003],
        [3, 3, 1, 874000004],
    ]
    assert data.user_ids.dtype == data.item_ids.dtype == np.int64


@pytest.mark.parametrize("as_text", [False, True])
def test_root_may_be_the_folder_or_the_one_above(ml100k, as_text):
    for root in (ml100k, ml100k / "ml-100k"):
        assert load_movielens(str(root) if as_text else root).n_ratings == 4


def test_ratings_of_1m_with_and_without_times(ml1m):
    data = load_movielens(ml1m, variant="1m")
    assert data.item_ids.tolist() == [10, 30]
    assert data.timestamps.tolist() == [978300001, 978300002, 978300003]
    original = ml1m / "ml-1m" / "ratings.dat"
    lines = [line.rpartition("::")[0] for line in original.read_text().splitlines()]
    original.unlink()
    (ml1m / "ml-1m" / "ratings_no_timestamps.dat.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    without = load_movielens(ml1m, variant="1m")
    assert without.timestamps is None
    assert (without.to_dense() == data.to_dense())[~np.isnan(data.to_dense())].all()


def test_parts_of_a_fold_know_all_ids(ml100k):
    train, test = load_movielens_fold(ml100k, "u1")
    for part in (train, test):
        assert part.user_ids.tolist() == [1, 2, 3]
        assert part.item_ids.tolist() == [1, 2, 3]
    assert train.ratings.tolist() == [5, 3]
    assert test.ratings.tolist() == [4, 1]
    assert test.timestamps.tolist() == [874000003, 874000004]


def test_titles_and_genres_are_decoded(ml100k, ml1m):
    assert load_movielens_titles(ml100k).to_dict() == {1: "Äpfel (1990)", 2: "Plums (1991)", 3: "unknown"}
    genres = load_movielens_genres(ml100k)
    assert genres.shape == (3, 19)
    assert genres.columns[genres.loc[1]].tolist() == ["Genre A", "Genre C"]
    assert load_movielens_titles(ml1m, "1m")[10] == "Äpfel: Part Two (1990)"
    genres = load_movielens_genres(ml1m, "1m")
    assert genres.columns.tolist() == ["Children's", "Comedy", "Drama"]
    assert genres.to_numpy().tolist() == [[True, True, False], [False, False, True], [False, False, True]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1\t3\t4", r"line 5: expected 4 fields \(user, item, rating, timestamp\) separated by '\\t', found '1\\t3"),
        ("1\t3\t4\t5\t6", "line 5: expected 4 fields"),
        ("", "line 5: expected 4 fields"),
        ("x\t3\t4\t5", "line 5: expected an integer as user, found 'x'"),
        ("1\t3\t4.5\t5", "line 5: expected an integer as rating, found '4.5'"),
        ("1\t3\t99999999999999999999\t5", "line 5: expected an integer as rating"),
        ("1\t3\t6\t5", "line 5: expected a rating 1..5, found 6"),
        ("0\t3\t4\t5", r"line 5: expected ids that are 1 or more, found \[0, 3\]"),
        ("1\t1\t4\t5", "u.data: expected one rating per pair, found 1 duplicate"),
    ],
)
def test_malformed_line_is_reported_with_file_and_number(ml100k, line, message):
    path = ml100k / "ml-100k" / "u.data"
    path.write_text(f"{path.read_text()}{line}\n2\t2\t2\t2\n")
    with pytest.raises(DataFileError, match=message) as caught:
        load_movielens(ml100k)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "empty file"), (b"\n\n", "empty file"), (b"\xff\xfe1\t2", "encoded in utf-8")]
)
def test_file_that_is_no_table(ml100k, content, message):
    (ml100k / "ml-100k" / "u.data").write_bytes(content)
    with pytest.raises(DataFileError, match=message):
        load_movielens(ml100k)


def test_truncated_gzip(ml1m):
    (ml1m / "ml-1m" / "ratings.dat").unlink()
    whole = gzip.compress(b"1::2::3\n" * 100)
    (ml1m / "ml-1m" / "ratings_no_timestamps.dat.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataFileError, match="expected a readable file"):
        load_movielens(ml1m, "1m")


def test_windows_line_ends(ml100k):
    path = ml100k / "ml-100k" / "u.data"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_movielens(ml100k).n_ratings == 4


def test_damaged_item_and_genre_files(ml100k):
    path = ml100k / "ml-100k" / "u.item"
    whole = path.read_text(encoding="iso-8859-1")
    path.write_text(whole.replace("|1|", "|2|", 1), encoding="iso-8859-1")
    with pytest.raises(DataFileError, match="line 1: expected 19 genre flags"):
        load_movielens_genres(ml100k)
    path.write_text(whole.replace("2|Plums", "1|Plums"), encoding="iso-8859-1")
    with pytest.raises(DataFileError, match="line 2: expected an item id of its own, found 1"):
        load_movielens_titles(ml100k)
    path.write_text(whole, encoding="iso-8859-1")
    genres = ml100k / "ml-100k" / "u.genre"
    genres.write_text("unknown|0\nAction|1\n")
    with pytest.raises(DataFileError, match="expected 19 genres, found 2"):
        load_movielens_genres(ml100k)


def test_unknown_variant_and_fold(ml100k):
    with pytest.raises(ParameterError, match="variant"):
        load_movielens(ml100k, "10m")
    with pytest.raises(ParameterError, match="fold"):
        load_movielens_fold(ml100k, "u6")


@pytest.mark.data
def test_published_counts_of_100k(data_root):
    data = load_movielens(data_root)
    assert (data.n_users, data.n_items, data.n_ratings) == (943, 1682, 100_000)
    assert np.bincount(data.ratings.astype(int))[1:].tolist() == [6110, 11370, 27145, 34174, 21201]
    assert np.bincount(data.user_index).min() == 20
    assert len(load_movielens_titles(data_root)) == 1682
    assert load_movielens_genres(data_root).shape == (1682, 19)


@pytest.mark.data
def test_published_folds(data_root):
    whole = load_movielens(data_root).to_csr()
    covered = np.zeros(whole.shape)
    for fold in ("u1", "u2", "u3", "u4", "u5", "ua", "ub"):
        train, test = load_movielens_fold(data_root, fold)
        expected = (90_570, 9_430) if fold in ("ua", "ub") else (80_000, 20_000)
        assert (train.n_ratings, test.n_ratings) == expected
        assert abs(train.to_csr() + test.to_csr() - whole).nnz == 0
        if fold in ("ua", "ub"):
            assert set(np.bincount(test.user_index)) == {10}
        else:
            covered += test.to_csr().toarray() > 0
    assert (covered == (whole.toarray() > 0)).all()


@pytest.mark.data
def test_published_counts_of_1m(data_root):
    data = load_movielens(data_root, "1m")
    assert (data.n_users, data.n_items, data.n_ratings) == (6040, 3706, 1_000_209)
    assert np.bincount(data.ratings.astype(int))[1:].tolist() == [56174, 107557, 261197, 348971, 226310]
    titles = load_movielens_titles(data_root, "1m")
    assert len(titles) == 3883
    assert set(data.item_ids) <= set(titles.index)
    assert load_movielens_genres(data_root, "1m").shape == (3883, 18)
