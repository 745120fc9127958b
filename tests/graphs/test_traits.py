"""Traits of nodes: what a table of attributes says of each, yes or no."""

import numpy as np
import pandas as pd

from air_recsys.graphs.naming import traits_of


def holders(table, **options):
    return {trait.text: np.flatnonzero(trait.holders).tolist() for trait in traits_of(pd.DataFrame(table), **options)}


def test_parts_of_texts_and_entries_of_lists_are_alike():
    parts = holders({"genres": ["War|Drama", "War", " War |Comedy", "Drama", "Drama", ""]})
    assert parts == {"War": [0, 1, 2], "Drama": [0, 3, 4]}
    assert holders({"genres": [["War", "Drama"], ["War"], {"War"}, ["Drama"], ("Drama",), []]}) == parts


def test_a_year_is_in_its_decade_and_before_others():
    years = [1951, 1952, 1953, 1961, 1962, 1963, 1971, 1971, 1971]
    assert holders({"year": years}) == {
        "1950s": [0, 1, 2],
        "1960s": [3, 4, 5],
        "1970s": [6, 7, 8],
        "1971": [6, 7, 8],
        "before 1970": [0, 1, 2, 3, 4, 5],
    }


def test_many_numbers_fall_into_quarters():
    quarters = holders({"age": np.arange(40) + 0.5})
    assert [len(rows) for rows in quarters.values()] == [10] * 4
    assert sorted(row for rows in quarters.values() for row in rows) == list(range(40))
    assert all(text.startswith("age ") for text in quarters)


def test_few_numbers_are_values():
    assert holders({"stars": [1.5, 1.5, 1.5, 2, 2, 2]}) == {"stars 1.5": [0, 1, 2], "stars 2": [3, 4, 5]}


def test_flags_and_codes_have_the_name_of_their_column():
    found = holders({"dubbed": [True, True, True, False], "gender": ["F", "F", "F", "M"]})
    assert found == {"dubbed": [0, 1, 2], "gender F": [0, 1, 2]}


def test_what_few_or_all_have_is_no_trait_nor_are_names():
    assert holders({"genre": ["rare", "rare", *["other"] * 4], "all": ["x"] * 6}) == {"other": [2, 3, 4, 5]}
    assert holders({"title": [*"aaabbb"], "none": [None] * 6}, label="title") == {}
    assert holders({"title": [*"aaabbb"]}) != {}


def test_missing_values_are_not_known():
    (drama,) = traits_of(pd.DataFrame({"genre": ["Drama", "Drama", "Drama", None, "War"]}))
    assert drama.known.tolist() == [True, True, True, False, True]
    assert traits_of(pd.DataFrame(index=range(3))) == []
