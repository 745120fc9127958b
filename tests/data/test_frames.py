"""Tables of other libraries are read as those of pandas, at every door that takes a table."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from air_recsys import AIR, BiasModel, Interactions
from air_recsys.data.frames import as_pandas
from air_recsys.exceptions import DataError, DataWarning
from air_recsys.models.drug_target.pairs import as_pairs


def table() -> pd.DataFrame:
    rows = [(f"u{user}", item, 1 + (user * item) % 5) for user in range(8) for item in range(6) if (user + item) % 3]
    return pd.DataFrame(rows, columns=["user", "item", "rating"]).assign(weight=lambda t: 1 + t["item"] / 4)


FORMS = {
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "categorical": lambda frame: pl.from_pandas(frame).with_columns(pl.col(pl.String).cast(pl.Categorical)),
    "enum": lambda frame: pl.from_pandas(frame).with_columns(
        pl.col(pl.String).cast(pl.Enum(sorted({*frame.select_dtypes("str").iloc[:, 0], "other"})))
    ),
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "dictionary": lambda frame: pa.table(
        {
            name: pa.array(column.tolist()).dictionary_encode() if column.dtype.kind not in "if" else column.to_numpy()
            for name, column in frame.items()
        }
    ),
    "duckdb": duckdb.from_df,
}
FAST = {"n_factors": 2, "n_sweeps": 3, "random_state": 0, "device": "cpu"}


@pytest.mark.parametrize("form", FORMS)
def test_every_door_reads_a_table_of_another_library(form):
    other, frame = FORMS[form], table()
    assert (
        Interactions.from_frame(other(frame), weight="weight")
        .to_frame()
        .equals(Interactions.from_frame(frame, weight="weight").to_frame())
    )
    model, expected = (AIR.for_ratings(**FAST).fit(each) for each in (other(frame), frame))
    assert model.interactions_.weights is not None
    people = frame[["user"]].drop_duplicates()
    new = pd.DataFrame({"user": ["new"], "item": [2], "rating": [4]})
    for mine, theirs in (
        (model.recommend(other(people)), expected.recommend(people)),
        (model.partial_fit(other(new)).recommend("new"), expected.partial_fit(new).recommend("new")),
    ):
        pd.testing.assert_frame_equal(mine, theirs)
    assert model.score(other(frame)) == expected.score(frame)
    assert (model.fold_in(other(new)).user_factors_ == expected.fold_in(new).user_factors_).all()


def test_columns_features_likes_and_drug_target_pairs():
    frame = table().drop(columns="weight")
    years = pd.DataFrame({"item": range(6), "year": [1970, 1980, 1990, 2000, 2010, 2020]})
    data = [Interactions.from_frame(frame).with_features(item=each) for each in (years, pl.from_pandas(years))]
    assert np.array_equal(data[0].item_features.values, data[1].item_features.values)
    model = BiasModel().fit(pl.from_pandas(frame))
    assert model.predict(pl.Series(["u1", "u2"]), pa.chunked_array([[0], [3]])).shape == (2,)
    likes = AIR.for_likes(settings={}, device="cpu").fit(pl.from_pandas(frame[["user", "item"]]))
    assert likes.fold_in(pl.DataFrame({"user": ["eve"], "item": [1]})).recommend("eve", 1)["user"].tolist() == ["eve"]
    pairs = pl.DataFrame({"drug": ["a", "b"], "target": ["x", "x"], "label": [1, 0]})
    assert as_pairs(pairs).to_frame().equals(as_pairs(pairs.to_pandas()).to_frame())


def test_what_is_missing_or_no_table():
    ids, ratings = pa.table({"user": ["a", None], "item": [1, 2], "rating": [1, 2]}), [1.0, None]
    with pytest.raises(DataError, match="needs its user id, found 1 without one, the first in row 1"):
        Interactions.from_frame(ids)
    with pytest.raises(DataError, match="ratings must be finite, found 1 NaN"):
        Interactions.from_frame(pl.DataFrame({"user": ["a", "b"], "item": [1, 2], "rating": ratings}))
    with pytest.raises(DataError, match="expected a table with one rating per row, found dict"):
        Interactions.from_frame({"user": [1]})
    with pytest.raises(DataError, match="a table with the columns user and item"):
        BiasModel().fit(table().drop(columns="weight")).recommend("u1", items=pl.DataFrame({"a": [1], "b": [2]}))
    assert as_pandas([1]) == [1]


def test_columns_of_times_and_weights_are_read_where_the_model_knows_them_and_named_elsewhere():
    frame = table().assign(timestamp=pd.date_range("2020-01-01", periods=len(table()), tz="UTC"))
    with pytest.warns(DataWarning, match="columns not read: 'timestamp'") as told:
        weighted = AIR.for_ratings(**FAST).fit(frame).interactions_
    assert told[0].filename == __file__
    assert (weighted.weights is None, weighted.timestamps is None) == (False, True)
    with pytest.warns(DataWarning, match="columns not read: 'timestamp' .*, 'weight'"):
        assert BiasModel().fit(frame).interactions_.weights is None
    drifting = AIR.for_ratings(time="drift", **FAST).fit(pl.from_pandas(frame))
    assert drifting.interactions_.timestamps is not None
    assert drifting.interactions_.timestamps.tolist() == frame["timestamp"].dt.as_unit("ns").astype("int64").tolist()
    assert drifting.score(frame) <= 0
    with pytest.raises(DataError, match="weights must be finite and >= 0"):
        AIR.for_ratings(**FAST).fit(table().assign(weight=-1.0))
