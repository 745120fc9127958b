"""What rows may be in place of ratings is said, and what is only near it is not."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys import AIR, BiasModel, Interactions, SimilarityGraph
from air_recsys.data.described.numbers import numbers_of
from air_recsys.data.doubts import doubts_about_span
from air_recsys.data.interactions import as_interactions
from air_recsys.data.likes import as_likes
from air_recsys.data.readers.titles import read_titles
from air_recsys.data.scales import told_of_new, told_of_test
from air_recsys.datasets import read_ratings
from air_recsys.exceptions import DataError, DataWarning

CHANCE = np.random.default_rng(3)
MATRIX = np.where(CHANCE.random((12, 9)) < 0.7, CHANCE.integers(1, 6, (12, 9)), np.nan)
WIDE = pd.DataFrame(MATRIX, [f"u{row}" for row in range(12)], [f"i{column}" for column in range(9)])
LONG = WIDE.rename_axis("user").reset_index().melt("user", var_name="item", value_name="rating").dropna()
LONG = LONG.sample(frac=1, random_state=0).reset_index(drop=True)
BY_USER, EVEN = LONG.sort_values("user"), np.arange(len(LONG)) % 2 == 0
RATINGS, USERS, ITEMS = LONG["rating"], LONG.groupby("user")["rating"], LONG.groupby("item")["rating"]
CELLS = WIDE.fillna(3.0)
PAIRS = np.stack([1 + np.arange(99) % 13, 1 + np.arange(99) * 5 % 17], axis=1)


def exchanged(rows: slice) -> pd.DataFrame:
    table = LONG.copy()
    table.loc[rows, ["user", "item"]] = table.loc[rows, ["item", "user"]].to_numpy()
    return table


TABLES: dict[str, tuple[Any, str | None]] = {
    "as it is": (LONG, None),
    "two scales": (LONG.assign(rating=np.where(EVEN, 20, 1) * RATINGS), "50 % of .* in 1..5, the others in 20..100"),
    "one wide scale": (LONG.assign(rating=np.where(EVEN, 10, 5) * RATINGS), None),
    "rows to predict": (
        pd.concat([LONG, LONG.head(9).assign(user=[*"abcdefghi"], rating=0)]),
        "last 9 rows are rated 0, and",
    ),
    "in order": (LONG.sort_values("rating"), None),
    "ranks": (LONG.assign(rating=USERS.rank(method="first")), "each user's ratings are 1, 2, 3"),
    "a column sorted": (BY_USER.assign(rating=np.sort(RATINGS)), "ratings are in order, as other columns are"),
    "row numbers": (LONG.assign(rating=LONG.index), "or are they row numbers"),
    "means of items": (LONG.assign(rating=ITEMS.transform("mean")), "each item has the same rating in all rows"),
    "ages of users": (LONG.assign(rating=LONG["user"].str[1:].astype(int)), "each user has the same rating in all"),
    "every user twice": (pd.concat([LONG, LONG.assign(user="v" + LONG["user"])]), "24 users have the same ratings as"),
    "scaled by users": (
        LONG.assign(rating=(RATINGS - USERS.transform("min")) / np.ptp(RATINGS) * 4 / (USERS.transform(np.ptp))),
        "each user has ratings of 0 and of 1",
    ),
    "scaled as a whole": (LONG.assign(rating=(RATINGS - 1) / 4), None),
    "times": (LONG.assign(rating=1_500_000_000 + 997 * RATINGS), "as times do: is another column that of ratings"),
    "exchanged rows": (exchanged(slice(3, 5)), "ids such as '.*' are users of some rows and items"),
    "one kind of ids": (LONG.assign(item="u" + LONG["item"].str[1:]), None),
    "lists": (LONG.assign(item=LONG.index.astype(str) + "|a|b"), "hold several, but count as one each"),
    "keys of two parts": (LONG.assign(item=LONG["item"] + "|shop"), None),
    "flags as objects": (LONG.assign(rating=(RATINGS > 3).astype(object)), "True and False are taken as 1 and 0"),
    "means in gaps": (WIDE.fillna(WIDE.mean()), "every pair .* one value of each item: if these fill gaps"),
    "a mean in gaps": (WIDE.fillna(2.5), "every pair has a rating, and .* ratings are 2.5: if"),
    "0 in gaps": (WIDE.sub(WIDE.mean(axis=1), axis=0).fillna(0), "% of the ratings are 0: if these fill gaps"),
    "no gaps": (CELLS, None),
    "half stars": (CELLS - 0.5 * (CHANCE.random(CELLS.shape) < 0.5), None),
    "pairs of ids": (PAIRS, "two columns of many whole numbers: if these are ids, name them"),
    "grades of two items": (PAIRS % 6 + 1, None),
    "similarities": (np.corrcoef(CHANCE.random((6, 9))) + 1, "are these similarities and no ratings"),
    "stored zeros": (sp.csr_array(np.nan_to_num(MATRIX - (MATRIX == 1))), None),
}
STORED = sp.coo_array((np.r_[RATINGS, 0.0], (np.r_[EVEN.cumsum(), 0], np.arange(len(LONG) + 1))))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.filterwarnings("ignore:ratings below 0 are taken")
def test_what_rows_may_be_in_place_of_ratings_is_said(name):
    data, match = TABLES[name]
    with pytest.warns(DataWarning, match=match) if match else nullcontext():
        as_interactions(data)


def test_a_zero_that_a_sparse_matrix_stores_is_said_and_can_be_left_out():
    with pytest.warns(DataWarning, match=r"1 % of the ratings are 0: a 0 counts as a rating; missing=0"):
        as_interactions(STORED)
    assert Interactions.from_csr(STORED, missing=0).n_ratings == len(LONG)
    assert as_interactions(STORED, missing=0).ratings.min() == 1


def test_times_that_each_item_has_one_of_are_said():
    table = LONG.assign(timestamp=1_500_000_000 + LONG["item"].str[1:].astype(int))
    with pytest.warns(DataWarning, match="each item has the same time in all rows"):
        Interactions.from_frame(table, timestamp="timestamp")


@pytest.mark.parametrize("ids", [{place: f"u{place}" for place in range(12)}, {f"u{place}" for place in range(12)}])
def test_ids_without_an_order_are_refused(ids):
    with pytest.raises(DataError, match=r"user ids in the order of the rows, found a (dict|set): give a list"):
        Interactions.from_dense(MATRIX, user_ids=ids)
    with pytest.raises(DataError, match="in the order of the rows"):
        SimilarityGraph(np.ones((12, 12)), ids, "user")


def test_texts_that_python_alone_reads_as_numbers_are_refused():
    with pytest.raises(DataError, match="ratings must be numbers, found '1_0'"):
        as_interactions(LONG.assign(rating=["1_0", *["4"] * (len(LONG) - 1)]))


def test_grades_of_a_matrix_are_said_where_each_is_a_like():
    with pytest.warns(DataWarning, match=r"as much as its rating, found 1\.\.5"):
        assert as_likes(np.nan_to_num(MATRIX)).n_ratings == len(LONG)
    assert as_likes(np.nan_to_num(MATRIX * 0.1)).n_ratings == len(LONG)  # weights
    with pytest.warns(DataWarning, match="two columns of many whole numbers"):
        as_likes(PAIRS - 1)


def test_ids_that_are_numbers_of_rows_are_said_at_fit():
    with pytest.warns(DataWarning, match="each item has one rating: are the item ids numbers of rows"):
        BiasModel().fit(LONG.assign(item=np.arange(len(LONG))))


def test_a_mask_in_another_order_is_said():
    data, mask = Interactions.from_frame(LONG), RATINGS > 3
    assert data.select(mask).ratings.min() == 4
    with pytest.warns(DataWarning, match="a mask counts row by row, and its index not"):
        data.select(mask.sort_values())


@pytest.mark.parametrize(("text", "is_told"), [("5", True), ("50", False), ("5\n", False)])
def test_a_rating_that_was_cut_off_is_said(text, is_told, tmp_path):
    path = tmp_path / "cut.csv"
    path.write_text(LONG.assign(rating=10 * RATINGS).to_csv(index=False).rpartition(",")[0] + "," + text)
    match = "the last line has no end, and the rating 5 of no other: was 50 cut off"
    with pytest.warns(DataWarning, match=match) if is_told else nullcontext():
        assert read_ratings(path).ratings[-1] == float(text)


def test_titles_and_features_that_are_off_by_one_are_said(tmp_path):
    path, match = tmp_path / "titles.csv", r"lie in 0\.\.8, those of the data in 1\.\.9: are they off by one"
    path.write_text("id,title\n" + "".join(f"{place},T{place}\n" for place in range(9)))
    with pytest.warns(DataWarning, match=match):
        read_titles(path, np.arange(1, 10))
    years = pd.DataFrame({"year": range(9)}, index=pd.Index(range(9), dtype=int).repeat(1))
    with pytest.warns(DataWarning, match=match):
        Interactions.from_dense(MATRIX, item_ids=range(1, 10)).with_features(item=years)
    path.write_text("id,title\n" + "".join(f"{place},T{place}\n" for place in range(12)))
    assert len(read_titles(path, np.arange(1, 10))) == 12
    path.write_text("id,title\n" + "".join(f"{place},T{place}\n" for place in range(1, 41) if place % 7))
    with pytest.warns(DataWarning, match=r"lie in 1\.\.40, those of the data in 0\.\.33: .* or numbered anew"):
        read_titles(path, np.arange(34))
    assert len(read_titles(path, np.arange(1, 34))) == 35


def test_flags_of_single_rows_are_said():
    tags = pd.DataFrame({"iid": [f"h{place}" for place in range(9)], "tag": [*"abcabcabc"]}, WIDE.columns)
    with pytest.warns(DataWarning, match="9 flags such as 'iid_h0' hold for one item each, as ids do"):
        as_interactions(LONG).with_features(item=pd.get_dummies(tags))
    assert as_interactions(LONG).with_features(item=pd.get_dummies(tags["tag"])).n_ratings == len(LONG)


@pytest.mark.parametrize(
    ("ratings", "are_counts"),
    [
        (CHANCE.geometric(0.3, 300), True),
        (np.r_[CHANCE.zipf(2.0, 300), 4e15], True),
        (CHANCE.integers(1, 21, 300), False),
        (np.r_[1, CHANCE.poisson(4, 300) + 2, 30], False),
        (CHANCE.geometric(0.8, 300).clip(1, 10), False),
    ],
)
def test_numbers_of_events_are_said_at_fit(ratings, are_counts):
    found = [*doubts_about_span(ratings.astype(np.float32))]
    assert ["counts as of plays are likes" in doubt for doubt in found] == [True] * are_counts


def test_a_saved_index_is_no_feature():
    films = pd.DataFrame({"index": range(9), "item": WIDE.columns, "year": np.arange(9) % 4})
    with pytest.warns(DataWarning, match=r"or of row numbers, are left out: \['index'\]"):
        features = as_interactions(LONG).with_features(item=films).item_features
    assert features is not None
    assert features.names == ["year"]
    with pytest.warns(DataWarning, match="of row numbers, are left out"):
        found = numbers_of("features", films.drop(columns="item"))
    np.testing.assert_array_equal(found.rows, numbers_of("features", films[["year"]]).rows)


def test_likes_and_exchanged_sides_are_not_taken_in_without_a_word():
    model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(LONG)
    ones = pd.DataFrame({"user": "new", "item": WIDE.columns[:4], "rating": 1.0})
    with pytest.warns(DataWarning, match=r"all 4 new ratings are 1, those of the training in 1\.\.5: likes"):
        model.partial_fit(ones)
    assert told_of_new(np.ones(2), RATINGS.to_numpy()) == told_of_new(np.ones(9), np.array([0, 1])) == ""
    turned = pd.DataFrame({"user": ["i1", "i2"], "item": ["u1", "u2"], "rating": [5.0, 1.0]})
    with pytest.raises(DataError, match="found known items as users and known users as items"):
        model.partial_fit(turned)
    assert len(model.interactions_.user_ids) == 13


def test_zeros_among_test_likes_are_told():
    assert "2 test ratings are 0 or less, and count as likes" in told_of_test(np.array([1.0, 0, 0]), (1, 1))
    assert told_of_test(np.ones(3), (1, 1)) == ""
