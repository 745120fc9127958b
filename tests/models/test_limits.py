"""Ratings of which a limit is known: what models make of them, where they go along, and who refuses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, DMF, BiasModel, Interactions
from air_recsys.dti import DrugTargetAIR
from air_recsys.evaluation import compare
from air_recsys.evaluation.held_out import evaluate_model
from air_recsys.exceptions import AirRecsysError, DataError
from air_recsys.models import GraphRanker

SHAPE, LIMIT, NOISE = (60, 50), 5.5, 0.3
SOLVERS = ["variational", "langevin"]


class Made:
    """Noisy values of factors, of which those below a limit are recorded as that."""

    def __init__(self) -> None:
        rng, (m, n) = np.random.default_rng(0), SHAPE
        self.truth = 6 + 0.7 * rng.normal(size=(m, 2)) @ rng.normal(size=(2, n)) + 0.5 * rng.normal(size=(m, 1))
        values, seen = self.truth + NOISE * rng.normal(size=SHAPE), rng.random(SHAPE) < 0.5
        self.hidden, (users, items) = np.nonzero(~seen), np.nonzero(seen)
        values = values[users, items]
        self.whole = pd.DataFrame({"user": users, "item": items, "rating": values})
        self.plain = self.whole.assign(rating=np.maximum(values, LIMIT))
        self.limits = self.plain.assign(relation=np.where(values < LIMIT, "<", "="))
        self.dropped = self.plain[values >= LIMIT]

    def error(self, model: Any, users: slice = slice(None)) -> float:
        rows, columns = (index[np.isin(self.hidden[0], np.arange(SHAPE[0])[users])] for index in self.hidden)
        return float(np.sqrt(np.square(model.predict(rows, columns) - self.truth[rows, columns]).mean()))


MADE = Made()


def air(solver: str = "variational", **others: Any) -> AIR:
    return AIR.for_ratings(**{"solver": solver, "random_state": 0, "device": "cpu"} | others)


def scores(model: Any) -> np.ndarray:
    return model.predict(*MADE.hidden, unknown="mean")


@pytest.mark.parametrize("solver", SOLVERS)
def test_limits_are_worth_more_than_values_and_than_nothing_and_noise_is_as_of_all_values(solver: str) -> None:
    frames = MADE.limits, MADE.plain, MADE.dropped, MADE.whole
    limits, plain, dropped, whole = (air(solver, clip=False).fit(frame) for frame in frames)
    assert MADE.error(limits) < 0.7 * min(MADE.error(plain), MADE.error(dropped))
    noises = [model.history_["noise"].iloc[-1] for model in (limits, whole)]
    assert noises[0] == pytest.approx(noises[1], rel=0.15)
    assert MADE.error(limits) < 1.5 * MADE.error(whole)


def test_intervals_hold_and_probabilities_above_a_threshold_are_those_of_the_normal_distribution() -> None:
    model, (users, items) = air().fit(MADE.limits), MADE.hidden
    truth = MADE.truth[users, items]
    values = truth + NOISE * np.random.default_rng(1).normal(size=truth.size)
    low, high = model.predict_interval(users, items)
    assert np.mean((low <= values) & (values <= high)) == pytest.approx(0.9, abs=0.04)
    above = model.predict_above(users, items, LIMIT)
    assert above.mean() == pytest.approx(np.mean(values > LIMIT), abs=0.03)
    middle = model.predict_above(users[:1], items[:1], float(model.predict(users[:1], items[:1])[0]))
    assert middle == pytest.approx(0.5)


def test_a_relation_that_says_nothing_changes_no_bit() -> None:
    told = air().fit(MADE.plain.assign(relation="="))
    assert told.interactions_.relations is None
    np.testing.assert_array_equal(scores(told), scores(air().fit(MADE.plain)))


@pytest.mark.parametrize("solver", SOLVERS)
def test_bits_do_not_depend_on_threads_nor_scores_on_the_order_of_the_rows(solver: str) -> None:
    once = scores(air(solver, n_threads=1).fit(MADE.limits))
    np.testing.assert_array_equal(once, scores(air(solver, n_threads=2).fit(MADE.limits)))
    shuffled = air(solver).fit(MADE.limits.sample(frac=1, random_state=0))
    np.testing.assert_allclose(once, scores(shuffled), rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_training_that_goes_on_and_a_file_are_the_same_model(solver: str, tmp_path: Path) -> None:
    whole, file = air(solver, n_sweeps=12).fit(MADE.limits), tmp_path / "run.ckpt"
    air(solver, n_sweeps=12).fit(MADE.limits, checkpoint=file, every=4, callbacks=[lambda record: record.epoch == 9])
    again = air(solver, n_sweeps=12).fit(MADE.limits, resume_from=file)
    np.testing.assert_array_equal(scores(whole), scores(again))
    whole.save(tmp_path / "model.air")
    loaded = AIR.load(tmp_path / "model.air")
    np.testing.assert_array_equal(loaded.interactions_.relations, whole.interactions_.relations)
    np.testing.assert_array_equal(scores(whole), scores(loaded))


@pytest.mark.parametrize("solver", SOLVERS)
def test_new_rows_have_limits(solver: str) -> None:
    known, new = (MADE.limits[mask] for mask in (MADE.limits["user"] < 50, MADE.limits["user"] >= 50))
    model, of_new = air(solver).fit(known), slice(50, None)
    folded = model.fold_in(new)
    assert folded.interactions_.relations is not None
    assert MADE.error(folded, of_new) < 0.7 * MADE.error(model.fold_in(new.drop(columns="relation")), of_new)
    assert MADE.error(folded, of_new) < 1.3 * MADE.error(air(solver).fit(MADE.limits), of_new)
    updated = model.partial_fit(new)
    assert np.count_nonzero(np.asarray(updated.interactions_.relations)) == (MADE.limits["relation"] == "<").sum()
    assert updated.forget(users=0).interactions_.relations is not None


def test_hidden_limits_count_where_predictions_break_them() -> None:
    frame = pd.DataFrame({"user": [0, 1], "item": [0, 0], "rating": [5.0, 5.0], "relation": ["<", ">"]})
    model = air().fit(MADE.limits)
    predicted = model.predict([0, 1], [0, 0])
    missed = np.array([max(predicted[0] - 5, 0), min(predicted[1] - 5, 0)])
    assert model.score(frame) == pytest.approx(-np.sqrt(np.square(missed).mean()))
    data = Interactions.from_frame(MADE.limits, relation="relation")
    chosen = air(patience=3, validation_fraction=0.1).fit(data)
    assert np.isfinite(chosen.history_["validation_rmse"]).all()
    assert AIR.of_preset("auto", random_state=0, device="cpu").fit(data).solver_.name in SOLVERS


@pytest.mark.parametrize(
    "ask",
    [
        lambda: BiasModel().fit(MADE.limits),
        lambda: DMF(n_factors=2).fit(MADE.limits),
        lambda: GraphRanker().fit(Interactions.from_frame(MADE.limits, relation="relation")),
        lambda: DrugTargetAIR().fit(Interactions.from_frame(MADE.limits, relation="relation")),
        lambda: air("adam", n_factors=2).fit(MADE.limits),
        lambda: air(time="drift").fit(MADE.limits.assign(timestamp=range(len(MADE.limits)))),
        lambda: Interactions.from_frame(MADE.limits, relation="relation").to_surprise(),
        lambda: air().fit(MADE.limits.round(0)).predict_proba(0, 0),
    ],
)
def test_who_takes_every_rating_as_measured_says_so(ask: Any) -> None:
    with pytest.raises(AirRecsysError, match="limits"):
        ask()


def test_interactions_carry_relations_and_refuse_others() -> None:
    data = Interactions.from_frame(
        MADE.limits.assign(relation=MADE.limits["relation"].replace({"<": " '<=' ", "=": "~"})), relation="relation"
    )
    texts = MADE.limits["relation"].replace("=", "") + MADE.limits["rating"].astype(str)
    written = Interactions.from_frame(MADE.limits.assign(rating=texts).drop(columns="relation"))
    for same in (
        written,
        data.select(np.arange(data.n_ratings)),
        Interactions.from_frame(data.to_frame(), relation="relation"),
    ):
        np.testing.assert_array_equal(same.relations, data.relations)
        np.testing.assert_array_equal(same.ratings, data.ratings)
    assert "of them limits" in repr(data)
    assert data.alike().relations is None
    with pytest.raises(DataError, match=r"expected the relations .* the first in row 0: 'about'"):
        Interactions.from_frame(MADE.limits.assign(relation="about"), relation="relation")
    twice = pd.concat([MADE.limits, MADE.limits])
    with pytest.raises(DataError, match="as_p_affinity merges"):
        Interactions.from_frame(twice, relation="relation", duplicates="mean")
    first = Interactions.from_frame(twice, relation="relation", duplicates="first")
    np.testing.assert_array_equal(first.relations, data.relations)


def test_systems_side_by_side_learn_from_limits_or_do_without_and_are_tested_on_measured_ratings() -> None:
    found = compare([air(), "Biases"], MADE.limits, progress=False)
    assert "limits are for systems that know them" in found.protocol
    errors = found.to_frame()["rmse"]
    assert errors.iloc[0] < errors.iloc[1]
    data = Interactions.from_frame(MADE.limits, relation="relation")
    told = evaluate_model(air().fit(data), refit=True)
    assert len(told.pairs) < 0.1 * data.n_ratings
    test = MADE.limits.head(300)
    assert len(evaluate_model(air().fit(data), test).pairs) == (test["relation"] == "=").sum()
    with pytest.raises(DataError, match="limits"):
        evaluate_model(air().fit(data), test[test["relation"] == "<"])
