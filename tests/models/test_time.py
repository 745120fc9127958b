"""Models that are told when ratings were given."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from model_cases import CPU, assert_same_predictions
from sealing import parts_of, rewrite

from air_recsys import AIR, Interactions, distributed
from air_recsys.exceptions import CheckpointError, DataError, DataWarning, ModelFileError, ParameterError
from air_recsys.metrics import rmse
from air_recsys.models import Recommender
from air_recsys.splits import global_time

N_USERS, N_ITEMS, N_SESSIONS, HOUR = 150, 100, 6, 3600
START = 1_600_000_000
SMALL: dict[str, Any] = {**CPU, "n_factors": 2, "graph_neighbors": 5, "time": "drift"}


@cache
def ratings():
    """Users who rate in sessions of a minute, in a better or a worse mood each time."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.45)
    session = rng.integers(0, N_SESSIONS, users.size)
    mood = 0.7 * rng.standard_normal((N_USERS, N_SESSIONS))
    tastes = rng.standard_normal((N_USERS, 2)) @ rng.standard_normal((2, N_ITEMS)) * 0.5
    values = 5 + tastes[users, items] + mood[users, session] + 0.5 * rng.standard_normal(users.size)
    times = START + 100 * HOUR * session + rng.integers(0, 60, users.size)
    return pd.DataFrame({"user": users, "item": items, "rating": values.clip(0, 10), "timestamp": times})


def data(frame):
    return Interactions.from_frame(frame, timestamp="timestamp")


def parts():
    frame = ratings()
    hidden = np.random.default_rng(1).random(len(frame)) < 0.2
    return frame[~hidden], frame[hidden]


def model(solver="variational", **options):
    sweeps = {"n_sweeps": 60} if solver == "langevin" else {}
    return AIR.for_ratings(solver=solver, **SMALL | sweeps | options)


@cache
def timed(solver="variational"):
    """A model that was told the times; not to be changed."""
    return model(solver).fit(data(parts()[0]))


@pytest.fixture(params=["variational", "langevin"])
def fitted(request):
    return timed(request.param)


def test_scores_at_a_time_are_better_and_their_deviations_honest(fitted):
    _, asked = parts()
    pairs, truth = (asked["user"], asked["item"]), asked["rating"].to_numpy()
    found, deviations = fitted.predict(*pairs, timestamps=asked["timestamp"], return_std=True)
    steady, wider = fitted.predict(*pairs, return_std=True)
    assert rmse(found, truth) < 0.85 * rmse(steady, truth)
    for mean, deviation in ((found, deviations), (steady, wider)):
        assert 0.85 < (np.abs(mean - truth) < 1.645 * deviation).mean() < 0.95
    assert wider.mean() > deviations.mean()
    np.testing.assert_array_equal(fitted.predict(*pairs, timestamps=asked["timestamp"]), found)


def test_what_was_found_is_shown_and_long_after_a_score_is_that_of_no_special_time(fitted):
    drift = fitted.drift_
    assert set(drift["side"]) == {"user"}
    assert np.sqrt((drift["deviation"] ** 2).sum()) == pytest.approx(0.7, rel=0.25)
    assert drift["lasts"].max() < 100 * HOUR
    users, items = np.arange(20), np.arange(20)
    later = START + 5000 * HOUR
    np.testing.assert_allclose(fitted.predict(users, items, timestamps=later), fitted.predict(users, items), atol=1e-3)


def test_scores_are_explained_with_their_time(fitted):
    frame, rng = parts()[0], np.random.default_rng(0)
    for place in rng.integers(0, len(frame), 15):
        row = frame.iloc[place]
        told = fitted.explain(row["user"], row["item"], timestamp=row["timestamp"])
        plain = fitted.explain(row["user"], row["item"])
        expected = fitted.predict(row["user"], row["item"], timestamps=row["timestamp"])[0]
        assert told.score == pytest.approx(expected)
        assert told.total() == pytest.approx(told.score, abs=1e-4)
        assert plain.total() == pytest.approx(plain.score, abs=1e-4)
        assert told.score - plain.score == pytest.approx(told.time, abs=1e-6)
        assert abs(plain.remainder) < 0.2
        assert told.parts()["rated_items"] == plain.parts()["rated_items"]
    assert "\n  time" in str(told)


def test_time_is_part_of_a_file(fitted, tmp_path):
    loaded: Any = Recommender.load(fitted.save(tmp_path / "model.air"))
    _, asked = parts()
    pairs = asked["user"], asked["item"]
    for times in (None, asked["timestamp"]):
        assert_same_predictions(loaded, fitted, *pairs, timestamps=times)
    pd.testing.assert_frame_equal(loaded.drift_, fitted.drift_)
    assert loaded.explain(3, 4).parts() == fitted.explain(3, 4).parts()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("0_keys", lambda keys: keys[::-1]),
        ("0_keys", lambda keys: keys.astype(np.float64)),
        ("0_means", lambda means: means[1:]),
        ("0_spreads", lambda spreads: -spreads),
        ("0_scales", lambda scales: 0 * scales),
        ("processes", lambda numbers: -numbers),
    ],
)
def test_a_file_with_other_numbers_is_refused(fitted, tmp_path, name, change):
    path, array = fitted.save(tmp_path / "model.air"), f"drift_user_{name}"
    rewrite(path, arrays={array: change(parts_of(path)[1][array])})
    with pytest.raises(ModelFileError, match="not a whole air_recsys model file"):
        Recommender.load(path)


def test_new_ratings_are_taken_in_at_their_times():
    frame, asked = parts()
    first, later = frame[frame["user"] < 140], frame[frame["user"] >= 130]
    fitted = model().fit(data(first))
    fitted.partial_fit(data(later))
    new = asked[asked["user"] >= 140]
    pairs = new["user"], new["item"]
    assert rmse(fitted.predict(*pairs), timed().predict(*pairs)) < 0.25
    with pytest.raises(DataError, match="expected new ratings with timestamps, as in the training, found none"):
        fitted.partial_fit(later.drop(columns="timestamp"))
    with pytest.raises(DataError, match="expected timestamps in the unit of the training"):
        fitted.partial_fit(data(later.assign(timestamp=1000 * later["timestamp"])))
    assert abs(fitted.explain(145, 3).remainder) < 0.2
    before, factors = fitted.interactions_.to_frame(), fitted.user_factors_
    with pytest.warns(DataWarning, match="1 new ratings are older than the known ones of their pairs, which stay"):
        fitted.partial_fit(data(later.iloc[[0]].assign(timestamp=later["timestamp"].iloc[0] - 1, rating=1.0)))
    pd.testing.assert_frame_equal(fitted.interactions_.to_frame(), before)
    np.testing.assert_array_equal(fitted.user_factors_, factors)


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_a_training_with_time_goes_on_from_a_checkpoint(solver, tmp_path):
    frame, asked = parts()
    path, pairs, times = tmp_path / "run.ckpt", (asked["user"], asked["item"]), asked["timestamp"]
    model(solver).fit(data(frame), checkpoint=path, every=7, callbacks=[lambda record: record.epoch == 7])
    resumed = model(solver).fit(data(frame), resume_from=path)
    expected = timed(solver).predict(*pairs, timestamps=times)
    np.testing.assert_array_equal(resumed.predict(*pairs, timestamps=times), expected)
    moved = frame.assign(timestamp=frame["timestamp"] + frame["item"])
    with pytest.raises(CheckpointError):
        model(solver).fit(data(moved), resume_from=path)


def test_the_unit_of_the_times_changes_nothing():
    frame, asked = parts()
    pairs, at = (asked["user"], asked["item"]), pd.to_datetime(asked["timestamp"], unit="s")
    expected = timed().predict(*pairs, timestamps=asked["timestamp"])
    zoned = pd.to_datetime(frame["timestamp"], unit="s", utc=True).dt.tz_convert("Asia/Tokyo")
    for times, asked_at in (
        (pd.to_datetime(frame["timestamp"], unit="s"), at),
        (zoned, at),
        (1000 * frame["timestamp"], 1000 * asked["timestamp"]),
    ):
        found = model().fit(data(frame.assign(timestamp=times))).predict(*pairs, timestamps=asked_at)
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_items_move_too():
    rng, frame = np.random.default_rng(0), ratings().copy()
    frame["timestamp"] = START + rng.integers(0, 1000 * HOUR, len(frame))
    wave = np.sin(2 * np.pi * (frame["timestamp"] - START) / (1000 * HOUR) + frame["item"])
    frame["rating"] = (frame["rating"] + wave).clip(0, 10)
    hidden = rng.random(len(frame)) < 0.2
    shown, asked = frame[~hidden], frame[hidden]
    fitted = model().fit(data(shown))
    assert fitted.drift_ is not None
    assert set(fitted.drift_["side"]) == {"item"}
    assert fitted.drift_["lasts"].max() > 20 * HOUR
    pairs, truth = (asked["user"], asked["item"]), asked["rating"].to_numpy()
    assert (
        rmse(fitted.predict(*pairs, timestamps=asked["timestamp"]), truth) < rmse(fitted.predict(*pairs), truth) - 0.05
    )


def test_validation_sees_the_times():
    frame, asked = parts()
    shown, watched = data(pd.concat([frame, asked])), np.arange(len(frame), len(frame) + len(asked))
    training, held_out = shown.select(np.arange(len(frame))), shown.select(watched)
    timed = model(n_sweeps=12).fit(training, validation=held_out).history_["validation_rmse"]
    plain = model(n_sweeps=12, time=None).fit(training, validation=held_out).history_["validation_rmse"]
    assert timed.min() < 0.9 * plain.min()


def test_nothing_of_the_future_is_known_in_a_split_in_time():
    frame = ratings().assign(timestamp=lambda table: table["timestamp"] + np.arange(len(table)))  # no ties
    whole = data(frame)
    split = global_time(whole, 0.2)
    training, later = whole.select(split.train), whole.select(split.test)
    changed = frame.assign(rating=np.where(split.test, 10 - frame["rating"], frame["rating"]))
    pairs = later.user_ids[later.user_index], later.item_ids[later.item_index]
    one, other = (
        model().fit(each).predict(*pairs, timestamps=later.timestamps)
        for each in (training, data(changed).select(split.train))
    )
    np.testing.assert_array_equal(one, other)


# ---------------------------------------------------------------- what is refused


@pytest.mark.filterwarnings("ignore:all timestamps are 1")
def test_what_knows_nothing_of_time_says_so():
    frame = parts()[0]
    with pytest.raises(DataError, match="time='drift' needs ratings with timestamps, found none"):
        model().fit(frame.drop(columns="timestamp"))
    of_one_moment, plain = (
        model(**options).fit(data(frame.assign(timestamp=START))) for options in ({}, {"time": None})
    )
    assert of_one_moment.drift_ is not None
    assert of_one_moment.drift_.empty
    assert plain.drift_ is None
    for call in (plain.predict, plain.explain):
        name = "timestamps" if call == plain.predict else "timestamp"
        with pytest.raises(DataError, match="trained without time='drift'"):
            call(3, 4, **{name: START})
    with pytest.raises(ParameterError, match="does not read time, Variational and Langevin do"):
        AIR.for_ratings(solver="adam", time="drift")
    with pytest.raises(ParameterError, match="time"):
        model(time="seasons").fit(data(frame))
    with pytest.raises(ParameterError, match="distributed training needs time=None, found 'drift'"):
        distributed.fit(model(), data(frame))


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([1000 * START], "expected timestamps in the unit of the training, 1600000000 to .*, found 1.6e"),
        (["soon"], "timestamps"),
        ([np.nan], "timestamps must be finite numbers or dates"),
        ([START, START], "timestamps must be 1 finite numbers"),
    ],
)
def test_times_that_cannot_be_read(fitted, times, message):
    with pytest.raises(DataError, match=message):
        fitted.predict(3, 4, timestamps=times)


def test_new_users_alone_are_those_of_partial_fit_at_any_time(fitted):
    new = parts()[1]
    new = new[new["user"] < 3].assign(user=new["user"] + 1000)
    alone, beside = fitted.fold_in(new), copy.copy(fitted).partial_fit(data(new))
    for times in (None, START, START + 300 * HOUR):
        found, expected = (
            each.predict(1001, range(N_ITEMS), timestamps=times, return_std=True) for each in (alone, beside)
        )
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-4)
        np.testing.assert_allclose(found[1], expected[1], rtol=0.2)  # draws know who else is new
    np.testing.assert_allclose(
        alone.explain(1001, 3, timestamp=START).total(), alone.predict(1001, 3, timestamps=START)
    )
