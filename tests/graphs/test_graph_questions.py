"""Questions to a graph, by brute force: why nodes are alike, what lies between groups, where a new one belongs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, Interactions, SimilarityGraph
from air_recsys.exceptions import DataError, UnknownIdError

N = 12


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    rng = np.random.default_rng(0)
    ratings = rng.integers(1, 6, (30, N)).astype(float)
    return np.where(rng.random(ratings.shape) < 0.6, ratings, np.nan)


@pytest.fixture(scope="module")
def graph(table: np.ndarray) -> SimilarityGraph:
    rng = np.random.default_rng(1)
    half = np.triu(rng.random((N, N)) * (rng.random((N, N)) < 0.4), k=1)
    half[:, -1] = 0  # the last one is isolated
    films = pd.DataFrame({"title": [f"film {i}" for i in range(N)], "genre": ["War|Drama", "Comedy", "Drama"] * 4})
    return SimilarityGraph(
        half + half.T, range(N), "item", attributes=films, label="title", ratings=Interactions.from_dense(table)
    )


def test_why_two_items_are_alike_by_brute_force(graph, table):
    means, weights = np.nanmean(table, axis=1), graph.to_scipy().toarray()
    for a in range(N):
        for b in range(a + 1, N):
            answer = graph.why(a, b)
            both = np.flatnonzero(~np.isnan(table[:, a]) & ~np.isnan(table[:, b]))
            raters = answer.tables["raters"]
            assert raters["user"].tolist() == both.tolist()
            np.testing.assert_array_equal(raters[["first", "second"]], table[np.ix_(both, [a, b])])
            x, y = (table[both, column] - means[both] for column in (a, b))
            assert f"agree by {x @ y / np.sqrt((x @ x) * (y @ y)):+.2f} " in answer.text
            shared = set(graph.attributes["genre"][a].split("|")) & set(graph.attributes["genre"][b].split("|"))
            assert set(answer.tables["features"]["shared"]) == shared
            if N - 1 in (a, b):
                assert answer.text.startswith(f"film {N - 1} has no edge in this graph, to any item.")
            elif weights[a, b]:
                rank = 1 + np.count_nonzero(weights[a] > weights[a, b])
                told = f"film {a} and film {b} are alike by {weights[a, b]:.4g}: number {rank} of the "
                assert answer.text.startswith(f"{told}{np.count_nonzero(weights[a])} neighbours of film {a}")
            else:
                assert answer.text.startswith(f"No edge joins film {a} and film {b}.")


def test_what_lies_between_groups_by_brute_force(graph):
    first, second, weights = [0, 1, 2, 3], [6, 7, 8], graph.to_scipy().toarray()
    found = graph.between(first, second, n=100)
    block = weights[np.ix_(first, second)]
    edges = found.tables["edges"]
    assert edges["weight"].tolist() == sorted(block[block > 0], reverse=True)
    np.testing.assert_array_equal(weights[edges["first"], edges["second"]], edges["weight"])
    items = found.tables["items"]
    sums = np.stack([weights[:, group].sum(axis=1) for group in (first, second)])
    assert sorted(items["item"]) == np.flatnonzero(sums.min(axis=0) > 0).tolist()
    np.testing.assert_allclose(items[["to_first", "to_second"]], sums[:, items["item"]].T)
    assert (np.diff(items[["to_first", "to_second"]].min(axis=1)) <= 0).all()
    groups = {**dict.fromkeys(first, "first"), **dict.fromkeys(second, "second")}
    assert items["group"].tolist() == [groups.get(item, "") for item in items["item"]]
    assert str(np.count_nonzero(block)) in found.text.split(" edge")[0]


def test_groups_are_communities_by_number_or_name(graph):
    described, labels = graph.describe_communities(), graph.communities()
    ids = [labels.index[labels == number].tolist() for number in (0, 1)]
    wanted = repr(graph.between(*ids))
    assert repr(graph.between(0, 1)) == wanted
    assert repr(graph.between(described["name"][0], described["name"][1])) == wanted


def test_an_isolated_group_has_a_plain_answer(graph):
    assert graph.between([0], [N - 1]).text == (
        "No edge joins the groups of 1 and 1 items. No item is similar to members of both."
    )


def test_a_new_item_is_placed_by_its_ratings_as_brute_force_has_it(graph, table):
    new = {2: 5.0, 7: 1.0, 11: 4.0}
    centred = np.nan_to_num(table - np.nanmean(table, axis=1)[:, None])
    own = np.zeros(30)
    own[list(new)] = np.array(list(new.values())) - np.nanmean(table, axis=1)[list(new)]
    cosines = own @ centred / (np.linalg.norm(own) * np.linalg.norm(centred, axis=0))
    found = graph.place(ratings=new, n=N).tables["items"]
    np.testing.assert_allclose(found["weight"], np.sort(cosines[cosines > 0])[::-1])
    np.testing.assert_allclose(cosines[found["item"]], found["weight"])


def test_a_new_item_is_placed_by_its_features(graph):
    found = graph.place({"genre": "Comedy"}, n=N)
    assert found.tables["items"]["item"].tolist() == [1, 4, 7, 10]
    assert found.tables["items"]["weight"].tolist() == [1.0] * 4
    shares = found.tables["communities"]["share"]
    assert shares.sum() == pytest.approx(1)
    both = graph.place({"genre": "Comedy"}, {2: 5.0, 7: 1.0}, n=N).tables["items"].set_index("item")["weight"]
    by_ratings = graph.place(ratings={2: 5.0, 7: 1.0}, n=N).tables["items"].set_index("item")["weight"]
    for item in [1, 4, 7, 10]:
        if item in by_ratings:
            assert both[item] == pytest.approx((1 + by_ratings[item]) / 2)
    assert graph.place({"genre": "Opera"}).text == "Nothing places it: no item shares a feature or a rater with it."


def test_likes_and_graphs_of_users_answer_too():
    likes = Interactions.from_frame(pd.DataFrame({"user": [*"aabbc"], "item": [*"xyxyz"], "rating": 1.0}))
    users = SimilarityGraph([[0, 1, 0], [1, 0, 0], [0, 0, 0]], [*"abc"], "user", ratings=likes)
    answer = users.why("a", "b")
    assert answer.text == (
        "a and b are alike by 1: number 1 of the 1 neighbours of a, number 1 of the 1 neighbours of b. "
        "2 items were liked by both (2 and 2 in all, where chance gives 1.3)."
    )
    assert users.place(ratings={"x": 1.0}).tables["users"]["user"].tolist() == ["a", "b"]


def test_the_graphs_of_a_model_know_its_ratings():
    ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
    model = AIR.for_completion(n_epochs=50, random_state=0, device="cpu").fit(ratings)
    for graph in (model.item_graph_, model.item_graph_.top(3), model.item_graph_.with_attributes(pd.DataFrame())):
        assert "6 users rated both (6 and 6 in all" in graph.why(0, 1).text
    assert "raters" not in SimilarityGraph(model.item_graph_.to_scipy(), range(8), "item").why(0, 1).tables


@pytest.mark.parametrize(
    ("ask", "error", "told"),
    [
        (lambda graph: graph.why(0, 0), DataError, "expected two different items, found 0 twice"),
        (lambda graph: graph.why(0, "film 3"), UnknownIdError, "film 3"),
        (lambda graph: graph.between([0, 1], [1, 2]), DataError, "without a common item, found 1 in both"),
        (lambda graph: graph.between("Opera", 0), DataError, "its name or a list of ids, found 'Opera'"),
        (lambda graph: graph.place(), DataError, "expected features or ratings of the new item, found neither"),
        (lambda graph: graph.place({"colour": "red"}), DataError, "found 'colour'"),
        (lambda graph: graph.place(ratings={99: 5.0}), UnknownIdError, "99"),
        (
            lambda graph: SimilarityGraph(graph.to_scipy(), range(N), "item").place(ratings={1: 5.0}),
            DataError,
            "expected a graph that knows ratings",
        ),
    ],
)
def test_bad_questions_say_what_is_expected(graph, ask, error, told):
    with pytest.raises(error, match=told):
        ask(graph)
