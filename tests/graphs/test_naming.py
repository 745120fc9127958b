"""Names of communities: what is over-represented names them, else who is known best."""

import numpy as np
import pandas as pd
import pytest
from graph_cases import fails
from scipy.stats import fisher_exact

from air_recsys import SimilarityGraph
from air_recsys.graphs.naming import LEVEL, Trait, fit, traits_of


def two_blocks(table, size=12):
    adjacency = np.kron(np.eye(2), np.ones((size, size)))
    return SimilarityGraph(adjacency, range(100, 100 + 2 * size), "item", attributes=table)


def of_ids(values):
    return pd.Series(values, index=range(100, 100 + len(values)))


def table(**columns):
    return pd.DataFrame(columns, index=range(100, 100 + len(next(iter(columns.values())))))


@pytest.mark.parametrize("seed", range(3))
def test_the_p_value_is_that_of_fisher(seed):
    rng = np.random.default_rng(seed)
    inside, known = rng.random(60) < 0.3, rng.random(60) < 0.9
    holders = (rng.random(60) < 0.4) & known
    found = fit(inside, Trait("genre", "War", holders, known), 1)
    counts = [[int((known & (inside == a) & (holders == b)).sum()) for b in (True, False)] for a in (True, False)]
    assert found.p_value == pytest.approx(fisher_exact(counts, alternative="greater")[1])
    odds = np.log((counts[0][0] + 0.5) * (counts[1][1] + 0.5))
    assert found.log_odds == pytest.approx(odds - np.log((counts[0][1] + 0.5) * (counts[1][0] + 0.5)))
    assert fit(inside, Trait("genre", "War", holders, known), 7).p_value == pytest.approx(min(1, 7 * found.p_value))


def test_what_is_over_represented_names_a_community():
    graph = two_blocks(table(genre=["War"] * 12 + ["Comedy"] * 12, noise=[*"abcd"] * 6))
    described = graph.describe_communities()
    assert described[["name", "trait"]].to_numpy().tolist() == [["War", "War"], ["Comedy", "Comedy"]]
    assert max(described["p_value"].tolist()) < LEVEL
    assert described["share"].tolist() == [1, 1]
    assert described["share_of_all"].tolist() == [0.5, 0.5]
    assert described["size"].tolist() == [12, 12]


def test_without_a_trait_the_best_known_name_it():
    titles = [f"film {number}" for number in range(24)]
    graph = two_blocks(None).with_attributes(table(title=titles, noise=[*"abcd"] * 6), label="title")
    described = graph.describe_communities(known=of_ids(np.arange(24)))
    assert described["name"].tolist() == ["film 11, film 10", "film 23, film 22"]
    assert described["trait"].tolist() == [None, None]
    assert described["members"].tolist()[1] == ["film 23", "film 22", "film 21", "film 20", "film 19"]


def test_two_traits_that_part_each_other_and_no_trait_within_another():
    genres = ["War|Drama"] * 10 + ["War"] * 2 + ["Drama"] + ["Comedy"] * 11
    (first, _) = two_blocks(table(genres=genres)).describe_communities()["name"]
    assert first == "War · Drama" or first == "Drama · War"
    years = [1951 + number % 9 for number in range(12)] + [1971 + number % 9 for number in range(12)]
    assert two_blocks(table(year=years)).describe_communities()["name"].tolist() == ["1950s", "1970s"]


def test_equal_names_are_told_apart():
    adjacency = np.kron(np.eye(4), np.ones((15, 15)))
    genres = ["War"] * 30 + ["Comedy"] * 30
    graph = SimilarityGraph(adjacency, range(60), "item", attributes=pd.DataFrame({"genre": genres}))
    names = graph.describe_communities(known=pd.Series(np.arange(60)))["name"].tolist()
    assert names == ["War: 14", "War: 29", "Comedy: 44", "Comedy: 59"]


def test_traits_by_chance_name_hardly_any():
    rng = np.random.default_rng(0)
    named = 0
    for _ in range(50):
        labels = rng.integers(3, size=60)
        traits = traits_of(pd.DataFrame({"genre": rng.choice([*"abcdef"], 60)}))
        named += (
            min(fit(labels == group, trait, 3 * len(traits)).p_value for trait in traits for group in range(3)) < 0.05
        )
    assert named <= 5


def test_given_communities_in_any_order_and_nodes_outside():
    graph = two_blocks(table(genre=["War"] * 12 + ["Comedy"] * 12))
    labels = of_ids([0] * 12 + [1] * 11 + [-1]).sample(frac=1, random_state=0)
    described = graph.describe_communities(labels)
    assert described["size"].tolist() == [12, 11]
    with fails("expected communities of all items, found none of 100"):
        graph.describe_communities(labels.drop(100))
    empty = SimilarityGraph(np.zeros((0, 0)), [])
    assert empty.describe_communities(pd.Series([], dtype=int), pd.Series([], dtype=float)).empty


def holders(table, **options):
    return {trait.text: np.flatnonzero(trait.holders).tolist() for trait in traits_of(pd.DataFrame(table), **options)}


PARTS = {"War": [0, 1, 2], "Drama": [0, 3, 4]}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"genres": ["War|Drama", "War", " War |Comedy", "Drama", "Drama", ""]}, PARTS),
        ({"genres": [["War", "Drama"], ["War"], {"War"}, ["Drama"], ("Drama",), []]}, PARTS),
        (
            {"year": [1951, 1952, 1953, 1961, 1962, 1963, 1971, 1971, 1971]},  # in its decade and before others
            {
                "1950s": [0, 1, 2],
                "1960s": [3, 4, 5],
                "1970s": [6, 7, 8],
                "1971": [6, 7, 8],
                "before 1970": [0, 1, 2, 3, 4, 5],
            },
        ),
        ({"stars": [1.5, 1.5, 1.5, 2, 2, 2]}, {"stars 1.5": [0, 1, 2], "stars 2": [3, 4, 5]}),
        ({"dubbed": [True, True, True, False], "gender": [*"FFFM"]}, {"dubbed": [0, 1, 2], "gender F": [0, 1, 2]}),
        ({"genre": ["rare", "rare", *["other"] * 4], "all": ["x"] * 6}, {"other": [2, 3, 4, 5]}),
        ({"title": [*"aaabbb"]}, {"title a": [0, 1, 2], "title b": [3, 4, 5]}),
    ],
)
def test_traits_are_what_some_have_and_not_few_or_all(columns, expected):
    assert holders(columns) == expected


def test_many_numbers_fall_into_quarters():
    quarters = holders({"age": np.arange(40) + 0.5})
    assert [len(rows) for rows in quarters.values()] == [10] * 4
    assert sorted(row for rows in quarters.values() for row in rows) == list(range(40))
    assert all(text.startswith("age ") for text in quarters)


def test_names_are_no_traits_and_missing_values_are_not_known():
    assert holders({"title": [*"aaabbb"], "none": [None] * 6}, label="title") == {}
    (drama,) = traits_of(pd.DataFrame({"genre": ["Drama", "Drama", "Drama", None, "War"]}))
    assert drama.known.tolist() == [True, True, True, False, True]
    assert traits_of(pd.DataFrame(index=range(3))) == []
