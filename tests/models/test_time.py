"""Models that are told when ratings were given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, Interactions, distributed
from air_recsys.exceptions import CheckpointError, DataError, ModelFileError, ParameterError
from air_recsys.models import Recommender
from air_recsys.splits import global_time

N_USERS, N_ITEMS, N_SESSIONS, HOUR = 150, 100, 6, 3600
START = 1_600_000_000
SMALL: dict[str, Any] = {"random_state": 0, "device": "cpu", "n_factors": 2, "graph_neighbors": 5, "time": "drift"}


def ratings(seed=0, density=0.45):
    """Users who rate in sessions of a minute, in a better or a worse mood each time."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < density)
    session = rng.integers(0, N_SESSIONS, users.size)
    mood = 0.7 * rng.standard_normal((N_USERS, N_SESSIONS))
    tastes = rng.standard_normal((N_USERS, 2)) @ rng.standard_normal((2, N_ITEMS)) * 0.5
    values = 5 + tastes[users, items] + mood[users, session] + 0.5 * rng.standard_normal(users.size)
    times = START + 100 * HOUR * session + rng.integers(0, 60, users.size)
    return pd.DataFrame({"user": users, "item": items, "rating": values.clip(0, 10), "timestamp": times})


def data(frame):
    return Interactions.from_frame(frame, timestamp="timestamp")


def parts(seed=0):
    frame = ratings(seed)
    hidden = np.random.default_rng(1).random(len(frame)) < 0.2
    return frame[~hidden], frame[hidden]


def model(solver="variational", **options):
    sweeps = {"n_sweeps": 60} if solver == "langevin" else {}
    return AIR.for_ratings(solver=solver, **SMALL | sweeps | options)


@pytest.fixture(scope="module", params=["variational", "langevin"])
def fitted(request):
    return model(request.param).fit(data(parts()[0]))


def rmse(found, truth):
    return float(np.sqrt(np.mean((found - truth) ** 2)))


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


def test_what_was_found_is_shown(fitted):
    drift = fitted.drift_
    assert set(drift["side"]) == {"user"}
    assert np.sqrt((drift["deviation"] ** 2).sum()) == pytest.approx(0.7, rel=0.25)
    assert drift["lasts"].max() < 100 * HOUR


def test_long_after_the_ratings_a_score_is_that_of_no_special_time(fitted):
    users, items = np.arange(20), np.arange(20)
    later = START + 5000 * HOUR
    np.testing.assert_allclose(fitted.predict(users, items, timestamps=later), fitted.predict(users, items), atol=1e-3)


def test_scores_are_explained_with_their_time(fitted):
    frame, rng = parts()[0], np.random.default_rng(0)
    for place in rng.integers(0, len(frame), 30):
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
        for one, other in zip(
            fitted.predict(*pairs, timestamps=times, return_std=True),
            loaded.predict(*pairs, timestamps=times, return_std=True),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)
    pd.testing.assert_frame_equal(loaded.drift_, fitted.drift_)
    assert loaded.explain(3, 4).parts() == fitted.explain(3, 4).parts()


@pytest.mark.parametrize(
    "harm",
    [
        {"drift_user_0_keys": lambda keys: keys[::-1]},
        {"drift_user_0_keys": lambda keys: keys.astype(np.float64)},
        {"drift_user_0_means": lambda means: means[1:]},
        {"drift_user_0_spreads": lambda spreads: -spreads},
        {"drift_user_0_scales": lambda scales: 0 * scales},
        {"drift_user_processes": lambda numbers: -numbers},
    ],
    ids=lambda harm: next(iter(harm)),
)
def test_a_file_with_other_numbers_is_refused(fitted, tmp_path, harm, monkeypatch):
    ((name, change),) = harm.items()
    drift, made = type(fitted._state.drift), type(fitted._state.drift).to_arrays
    monkeypatch.setattr(drift, "to_arrays", lambda self: made(self) | {name: change(made(self)[name]).copy()})
    with pytest.raises(ModelFileError, match="it would not load"):
        fitted.save(tmp_path / "model.air")


def test_new_ratings_are_taken_in_at_their_times():
    frame, asked = parts()
    first, later = frame[frame["user"] < 140], frame[frame["user"] >= 130]
    fitted = model().fit(data(first))
    fitted.partial_fit(data(later))
    whole = model().fit(data(frame))
    new = asked[asked["user"] >= 140]
    pairs = new["user"], new["item"]
    assert rmse(fitted.predict(*pairs), whole.predict(*pairs)) < 0.25
    with pytest.raises(DataError, match="expected new ratings with timestamps, as in the training, found none"):
        fitted.partial_fit(later.drop(columns="timestamp"))
    with pytest.raises(DataError, match="expected timestamps in the unit of the training"):
        fitted.partial_fit(data(later.assign(timestamp=1000 * later["timestamp"])))
    assert abs(fitted.explain(145, 3).remainder) < 0.2


def test_a_training_with_time_goes_on_from_a_checkpoint(tmp_path):
    frame, asked = parts()
    path, times = tmp_path / "run.ckpt", asked["timestamp"]
    for solver in ("variational", "langevin"):
        whole = model(solver).fit(data(frame))
        model(solver).fit(data(frame), checkpoint=path, every=1, callbacks=[lambda record: record.epoch == 7])
        resumed = model(solver).fit(data(frame), resume_from=path)
        pairs = asked["user"], asked["item"]
        np.testing.assert_array_equal(
            resumed.predict(*pairs, timestamps=times), whole.predict(*pairs, timestamps=times)
        )
        moved = frame.assign(timestamp=frame["timestamp"] + frame["item"])
        with pytest.raises(CheckpointError):
            model(solver).fit(data(moved), resume_from=path)


def test_the_unit_of_the_times_changes_nothing():
    frame, asked = parts()
    dates = frame.assign(timestamp=pd.to_datetime(frame["timestamp"], unit="s"))
    zoned = frame.assign(timestamp=pd.to_datetime(frame["timestamp"], unit="s", utc=True).dt.tz_convert("Asia/Tokyo"))
    pairs, at = (asked["user"], asked["item"]), pd.to_datetime(asked["timestamp"], unit="s")
    expected = model().fit(data(frame)).predict(*pairs, timestamps=asked["timestamp"])
    for each in (dates, zoned):
        np.testing.assert_allclose(model().fit(data(each)).predict(*pairs, timestamps=at), expected, atol=1e-4)
    milliseconds = frame.assign(timestamp=1000 * frame["timestamp"])
    found = model().fit(data(milliseconds)).predict(*pairs, timestamps=1000 * asked["timestamp"])
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_items_move_too():
    rng = np.random.default_rng(0)
    frame = ratings()
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
    frame = ratings()
    frame["timestamp"] += np.arange(len(frame))  # no ties
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


def test_what_knows_nothing_of_time_says_so():
    frame = parts()[0]
    with pytest.raises(DataError, match="time='drift' needs ratings with timestamps, found none"):
        model().fit(frame.drop(columns="timestamp"))
    plain = model(time=None).fit(data(frame))
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


def test_ratings_of_one_moment_have_no_drift():
    frame = parts()[0].assign(timestamp=START)
    timed, plain = model().fit(data(frame)), model(time=None).fit(data(frame))
    assert timed.drift_ is not None
    assert timed.drift_.empty
    np.testing.assert_array_equal(timed.predict(3, np.arange(50)), plain.predict(3, np.arange(50)))
    np.testing.assert_array_equal(timed.predict(3, 4, timestamps=START), plain.predict(3, 4))
