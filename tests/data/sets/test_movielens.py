"""MovieLens in its published layouts, and the folder that data sets lie in."""

import gzip

import numpy as np
import pandas as pd
import pytest

from air_recsys import SimilarityGraph
from air_recsys.datasets import (
    data_root,
    load_movielens,
    load_movielens_fold,
    load_movielens_genres,
    load_movielens_items,
    load_movielens_titles,
    load_movielens_users,
)
from air_recsys.exceptions import DataFileError, ParameterError

GENRES = ["unknown", *(f"Genre {letter}" for letter in "ABCDEFGHIJKLMNOPQR")]
RATINGS_100K = [(1, 1, 5, 874000001), (1, 2, 3, 874000002), (2, 1, 4, 874000003), (3, 3, 1, 874000004)]


def tab_lines(rows):
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


@pytest.fixture
def ml100k(tmp_path):
    """A data root with an ml-100k folder: 3 users, 3 items, 4 ratings."""
    folder = tmp_path / "root" / "ml-100k"
    folder.mkdir(parents=True)
    (folder / "u.data").write_text(tab_lines(RATINGS_100K))
    (folder / "u1.base").write_text(tab_lines(RATINGS_100K[:2]))
    (folder / "u1.test").write_text(tab_lines(RATINGS_100K[2:]))
    titles = ["Äpfel (1990)", "Plums (1991)", "unknown"]
    flags = [[0] * 19 for _ in titles]
    flags[0][1] = flags[0][3] = flags[2][0] = 1
    items = [f"{k + 1}|{title}|||{'|'.join(map(str, flags[k]))}\n" for k, title in enumerate(titles)]
    items = [line.replace("|||", "|01-Jan-1990||http://x|", 1) for line in items]
    (folder / "u.item").write_text("".join(items), encoding="iso-8859-1")
    (folder / "u.genre").write_text("".join(f"{name}|{k}\n" for k, name in enumerate(GENRES)) + "\n")
    return folder.parent


@pytest.fixture
def ml1m(tmp_path):
    """A data root with an ml-1m folder in the original layout, with a gap in the item ids."""
    folder = tmp_path / "root1m" / "ml-1m"
    folder.mkdir(parents=True)
    (folder / "ratings.dat").write_text("1::10::5::978300001\n1::30::3::978300002\n2::10::4::978300003\n")
    movies = "10::Äpfel: Part Two (1990)::Comedy|Children's\n20::Unrated (1991)::Drama\n30::Plums (1991)::Drama\n"
    (folder / "movies.dat").write_text(movies, encoding="iso-8859-1")
    return folder.parent


def test_ratings_of_100k_keep_ids_values_and_times(ml100k):
    expected = [[1, 1, 5, 874000001], [1, 2, 3, 874000002], [2, 1, 4, 874000003], [3, 3, 1, 874000004]]
    for root in (ml100k, str(ml100k), ml100k / "ml-100k"):
        data = load_movielens(root)
        assert data.to_frame().values.tolist() == expected
        assert data.user_ids.dtype == data.item_ids.dtype == np.int64
    path = ml100k / "ml-100k" / "u.data"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_movielens(ml100k).to_frame().values.tolist() == expected


def test_ratings_of_1m_with_and_without_times(ml1m):
    data = load_movielens(ml1m, variant="1m")
    assert data.item_ids.tolist() == [10, 30]
    assert data.timestamps.tolist() == [978300001, 978300002, 978300003]
    original, gzipped = (ml1m / "ml-1m" / name for name in ("ratings.dat", "ratings_no_timestamps.dat.gz"))
    content = gzip.compress("\n".join(line.rpartition("::")[0] for line in original.read_text().splitlines()).encode())
    original.unlink()
    gzipped.write_bytes(content)
    without = load_movielens(ml1m, variant="1m")
    assert without.timestamps is None
    np.testing.assert_array_equal(without.to_dense(), data.to_dense())
    gzipped.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataFileError, match="expected a readable file"):
        load_movielens(ml1m, "1m")


def test_parts_of_a_fold_know_all_ids(ml100k):
    train, test = load_movielens_fold(ml100k, "u1")
    for part in (train, test):
        assert part.user_ids.tolist() == part.item_ids.tolist() == [1, 2, 3]
    assert train.ratings.tolist() == [5, 3]
    assert test.ratings.tolist() == [4, 1]
    assert test.timestamps.tolist() == [874000003, 874000004]


def test_titles_years_and_genres_are_decoded(ml100k, ml1m):
    assert load_movielens_titles(ml100k).to_dict() == {1: "Äpfel (1990)", 2: "Plums (1991)", 3: "unknown"}
    genres = load_movielens_genres(ml100k)
    assert genres.shape == (3, 19)
    assert genres.columns[genres.loc[1]].tolist() == ["Genre A", "Genre C"]
    genres = load_movielens_genres(ml1m, "1m")
    assert genres.columns.tolist() == ["Children's", "Comedy", "Drama"]
    assert genres.to_numpy().tolist() == [[True, True, False], [False, False, True], [False, False, True]]
    found, other = load_movielens_items(ml100k), load_movielens_items(ml1m, "1m")
    assert found["title"].equals(load_movielens_titles(ml100k))
    assert found["year"].tolist() == [1990, 1991, pd.NA]
    assert found["genres"].tolist() == ["Genre A|Genre C", "", "unknown"]
    assert other["title"].tolist() == ["Äpfel: Part Two (1990)", "Unrated (1991)", "Plums (1991)"]
    assert other["year"].tolist() == [1990, 1991, 1991]
    assert other["genres"].tolist() == ["Children's|Comedy", "Drama", "Drama"]
    named = SimilarityGraph(np.ones((2, 2)), [30, 10], "item").with_attributes(other, label="title")
    assert named.neighbors(30)["label"].tolist() == ["Äpfel: Part Two (1990)"]


def test_the_year_is_the_last_one_in_brackets(ml1m):
    path = ml1m / "ml-1m" / "movies.dat"
    path.write_text("1::2001 (1968)::Drama\n2::(1984) again (2010) (V)::Drama\n3::No (12345) year::Drama\n")
    found = load_movielens_items(ml1m, "1m")["year"]
    assert found[[1, 2]].tolist() == [1968, 2010]
    assert found.isna().tolist() == [False, False, True]


def test_users_of_100k_and_1m(tmp_path):
    for folder, name, text in (
        ("ml-100k", "u.user", "1|24|M|technician|85711\n2|53|F|other|94043\n"),
        ("ml-1m", "users.dat", "1::M::24::10::48067\n2::F::53::16::70072\n"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    found, other = load_movielens_users(tmp_path), load_movielens_users(tmp_path, "1m")
    assert found.columns.tolist() == other.columns.tolist() == ["age", "gender", "occupation"]
    assert found["age"].tolist() == other["age"].tolist() == [24, 53]
    assert other["occupation"].tolist() == ["10", "16"]
    (tmp_path / "ml-100k" / "u.user").write_text("1|24|M|technician|85711\n1|53|F|other|94043\n")
    with pytest.raises(DataFileError, match="a user id of its own"):
        load_movielens_users(tmp_path)


# -------------------------------------------------------------------- bad input


END = b"3\t3\t1\t874000004\n"  # of the ratings


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("u.data", END, END + b"1\t3\t4\n", r"line 5: expected 4 fields \(user, item, rating, timestamp\)"),
        ("u.data", END, END + b"\n2\t2\t2\t2\n", "line 5: expected 4 fields"),
        ("u.data", END, END + b"x\t3\t4\t5\n", "line 5: expected an integer as user, found 'x'"),
        ("u.data", END, END + b"1\t3\t4.5\t5\n", "line 5: expected an integer as rating, found '4.5'"),
        ("u.data", END, END + b"1\t3\t6\t5\n", "line 5: expected a rating 1..5, found 6"),
        ("u.data", END, END + b"0\t3\t4\t5\n", r"line 5: expected ids that are 1 or more, found \[0, 3\]"),
        ("u.data", END, END + b"1\t1\t4\t5\n", "u.data: expected one rating per pair, found 1 duplicate"),
        ("u.data", None, b"", "empty file"),
        ("u.data", None, b"\xff\xfe1\t2", "encoded in utf-8"),
        ("u.item", b"|1|", b"|2|", "line 1: expected 19 genre flags"),
        ("u.item", b"2|Plums", b"1|Plums", "line 2: expected an item id of its own, found 1"),
        ("u.genre", None, b"unknown|0\nAction|1\n", "expected 19 genres, found 2"),
    ],
)
def test_damaged_files_are_refused_with_their_line(ml100k, name, old, new, message):
    path = ml100k / "ml-100k" / name
    path.write_bytes(new if old is None else path.read_bytes().replace(old, new, 1))
    with pytest.raises(DataFileError, match=message) as caught:
        (load_movielens if name == "u.data" else load_movielens_items)(ml100k)
    assert str(path) in str(caught.value)


def test_unknown_variants_folds_and_absent_files_are_named(ml100k, tmp_path):
    for load, wrong, name in (
        (load_movielens, "10m", "variant"),
        (load_movielens_items, "10m", "variant"),
        (load_movielens_fold, "u6", "fold"),
    ):
        with pytest.raises(ParameterError, match=name):
            load(ml100k, wrong)
    for part in ("'movies.dat'", str(tmp_path), "'ml-1m'", "air-recsys datasets fetch ml-1m"):
        with pytest.raises(DataFileError, match=part):
            load_movielens_items(tmp_path, "1m")
    with pytest.raises(DataFileError, match="not a folder"):
        load_movielens(tmp_path / "absent")


def test_the_folder_is_the_named_one_the_shared_one_or_that_of_downloads(tmp_path, monkeypatch):
    work = tmp_path / "project" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    monkeypatch.delenv("AIR_RECSYS_DATA", raising=False)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda project: tmp_path / "cache" / project)
    with pytest.raises(DataFileError, match="set the environment variable AIR_RECSYS_DATA"):
        data_root()
    (tmp_path / "cache" / "air-recsys").mkdir(parents=True)
    assert data_root() == tmp_path / "cache" / "air-recsys"
    (tmp_path / "project" / "shared" / "data").mkdir(parents=True)
    assert data_root().resolve() == tmp_path / "project" / "shared" / "data"
    (tmp_path / "named").mkdir()
    monkeypatch.setenv("AIR_RECSYS_DATA", str(tmp_path / "named"))
    assert data_root() == tmp_path / "named"
    assert data_root(str(tmp_path)) == tmp_path
    with pytest.raises(DataFileError, match="expected path to name a folder"):
        data_root(tmp_path / "absent")
    monkeypatch.setenv("AIR_RECSYS_DATA", str(tmp_path / "absent"))
    with pytest.raises(DataFileError, match=r"expected AIR_RECSYS_DATA to name .*absent"):
        data_root()


# -------------------------------------------------------------------- as published


@pytest.mark.data
@pytest.mark.parametrize(
    ("variant", "sizes", "stars", "films", "n_genres", "without_year"),
    [
        ("100k", (943, 1682, 100_000), [6110, 11370, 27145, 34174, 21201], 1682, 19, 1),
        ("1m", (6040, 3706, 1_000_209), [56174, 107557, 261197, 348971, 226310], 3883, 18, 0),
    ],
)
def test_published_ratings_and_films(data_root, variant, sizes, stars, films, n_genres, without_year):
    data, items = load_movielens(data_root, variant), load_movielens_items(data_root, variant)
    assert (data.n_users, data.n_items, data.n_ratings) == sizes
    assert np.bincount(data.ratings.astype(int))[1:].tolist() == stars
    assert np.bincount(data.user_index).min() == 20
    assert set(data.item_ids) <= set(items.index)
    assert items["year"].isna().sum() == without_year
    assert items["year"].dropna().between(1915, 2000).all()
    flags, expected = items["genres"].str.get_dummies(sep="|"), load_movielens_genres(data_root, variant)
    assert expected.shape == (films, n_genres)
    pd.testing.assert_frame_equal(flags.astype(bool), expected[sorted(expected.columns)])


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
