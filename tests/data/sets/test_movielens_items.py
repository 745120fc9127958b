"""What is known about the films, as attributes of an item graph."""

import numpy as np
import pandas as pd
import pytest

from air_recsys import SimilarityGraph
from air_recsys.datasets import load_movielens_genres, load_movielens_items, load_movielens_titles
from air_recsys.exceptions import DataFileError, ParameterError


def test_titles_years_and_genres_of_100k(ml100k):
    found = load_movielens_items(ml100k)
    assert found.index.tolist() == [1, 2, 3]
    assert found["title"].tolist() == ["Äpfel (1990)", "Plums (1991)", "unknown"]
    assert found["year"].tolist() == [1990, 1991, pd.NA]
    assert found["genres"].tolist() == ["Genre A|Genre C", "", "unknown"]


def test_titles_years_and_genres_of_1m(ml1m):
    found = load_movielens_items(ml1m, "1m")
    assert found["title"].tolist() == ["Äpfel: Part Two (1990)", "Unrated (1991)", "Plums (1991)"]
    assert found["year"].tolist() == [1990, 1991, 1991]
    assert found["genres"].tolist() == ["Children's|Comedy", "Drama", "Drama"]
    assert found["year"].dtype == "Int64"


def test_the_year_is_the_last_one_in_brackets(ml1m):
    path = ml1m / "ml-1m" / "movies.dat"
    path.write_text("1::2001 (1968)::Drama\n2::(1984) again (2010) (V)::Drama\n3::No (12345) year::Drama\n")
    found = load_movielens_items(ml1m, "1m")["year"]
    assert found[[1, 2]].tolist() == [1968, 2010]
    assert found.isna().tolist() == [False, False, True]


def test_the_table_becomes_the_attributes_of_a_graph(ml1m):
    graph = SimilarityGraph(np.ones((2, 2)), [30, 10], "item")
    named = graph.with_attributes(load_movielens_items(ml1m, "1m"), label="title")
    assert named.neighbors(30)["label"].tolist() == ["Äpfel: Part Two (1990)"]


def test_a_missing_folder_and_an_unknown_variant_are_named(tmp_path):
    with pytest.raises(DataFileError, match=r"expected the file 'movies\.dat'"):
        load_movielens_items(tmp_path, "1m")
    with pytest.raises(ParameterError, match="variant"):
        load_movielens_items(tmp_path, "10m")


@pytest.mark.data
@pytest.mark.parametrize(("variant", "size", "without_year"), [("100k", 1682, 1), ("1m", 3883, 0)])
def test_published_films(data_root, variant, size, without_year):
    found = load_movielens_items(data_root, variant)
    assert len(found) == size
    assert found["year"].isna().sum() == without_year
    assert found["year"].dropna().between(1915, 2000).all()
    assert found["title"].equals(load_movielens_titles(data_root, variant))
    flags = found["genres"].str.get_dummies(sep="|").astype(bool)
    expected = load_movielens_genres(data_root, variant)
    pd.testing.assert_frame_equal(flags, expected[sorted(expected.columns)])
