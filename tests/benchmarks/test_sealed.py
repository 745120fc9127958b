"""No test entry reaches a training: pairs are checked, and the process that trains gets the training data alone."""

import os
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest

from air_recsys import Interactions
from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.evaluation.results.apart import ProcessEndedError
from air_recsys.exceptions import DataError
from air_recsys.models import BiasModel
from benchmarks.accuracy.sealed import (
    LeakError,
    check_sealed,
    run_sealed,
    score_pairs,
    timed_pairs,
)

truths: list = []


def data():
    """Six ratings of 3 x 3 and one pair to ask for; the last user's ids are only among those asked for."""
    matrix = np.array([[5, 3, 1], [4, np.nan, 2], [1, 5, np.nan]])
    return Interactions.from_dense(matrix), (np.array([1, 2]), np.array([1, 2]))


def report_surroundings(shown):
    """Train by looking around: what it was given, and what the parent keeps in this module."""
    return {"kept": len(truths), "shown": shown.n_ratings, "process": os.getpid()}


def tell(model, asked):
    return model | {"asked": [ids.tolist() for ids in asked]}


def end(shown):
    os._exit(1)


def fail(shown):
    raise DataError("no such luck")


def test_a_training_sees_what_it_is_shown_and_nothing_else():
    shown, asked = data()
    truths.append(np.array([4.0, 2.0]))  # a process that is forked, not started anew, would know it
    found = run_sealed(report_surroundings, tell, shown, asked)
    assert len(truths.pop()) == 2
    assert found.answer["process"] != os.getpid()
    assert found.answer["kept"] == 0
    assert found.answer["shown"] == shown.n_ratings
    assert found.answer["asked"] == [[1, 2], [1, 2]]


def test_the_answer_is_that_of_a_model_trained_here_and_comes_with_its_cost():
    shown, asked = data()
    found = run_sealed(BiasModel().fit, score_pairs, shown, asked)
    np.testing.assert_array_equal(found.answer, BiasModel().fit(shown).predict(*asked))
    assert found.seconds > 0
    assert found.cpu_seconds >= 0
    assert found.peak_gib >= found.before_gib > 0


def test_what_is_asked_comes_after_the_training(monkeypatch):
    shown, asked = data()
    order = []

    class Apart:
        def __enter__(self):
            return lambda function, *arguments: order.append(arguments) or (1.0, 1.0, 1.0, 1.0)

        def __exit__(self, *_):
            pass

    monkeypatch.setattr("benchmarks.accuracy.sealed.process_apart", lambda threads: Apart())
    run_sealed(report_surroundings, tell, shown, asked)
    assert order == [(report_surroundings, shown), (tell, asked)]


@pytest.mark.parametrize(
    ("pair", "leaks"), [((0, 0), True), ((1, 1), False), ((2, 1), True), ((2, 2), False), ((9, 9), False)]
)
def test_a_pair_that_was_shown_is_not_asked(pair, leaks):
    shown, _ = data()
    asked = tuple(np.array([1, each]) for each in pair)
    if not leaks:
        check_sealed((shown.user_ids[shown.user_index], shown.item_ids[shown.item_index]), asked)
        return
    with pytest.raises(LeakError, match=r"1 of 2 tested pairs are among the training data, first \(\d, \d\)"):
        run_sealed(end, tell, shown, asked)  # before any work: no process ends


def test_ids_of_any_kind_are_compared():
    frame = pd.DataFrame({"user": ["ann", "bob"], "item": ["x", "y"], "rating": [5, 3]})
    shown = Interactions.from_frame(frame)
    with pytest.raises(LeakError, match=r"first \('bob', 'y'\)"):
        run_sealed(end, tell, shown, (np.array(["ann", "bob"]), np.array(["y", "y"])))


def test_a_part_of_the_ratings_travels_without_the_rest():
    whole = make_planted_ratings(200, 100, 6000, 3, 2).interactions
    part = whole.select(np.arange(whole.n_ratings) < 600)
    assert len(pickle.dumps(part)) < 0.2 * len(pickle.dumps(whole))


@pytest.mark.parametrize("asked", [data()[0], (1, 2, 3), [1, 2]])
def test_ratings_cannot_be_asked_along(asked):
    with pytest.raises(LeakError, match=r"expected \(user ids, item ids\) without ratings"):
        run_sealed(end, tell, data()[0], asked)


def test_data_of_another_kind_need_their_pairs():
    with pytest.raises(LeakError, match="expected Interactions or pairs_of_shown, found ndarray"):
        run_sealed(end, tell, np.eye(2), data()[1])
    with pytest.raises(LeakError, match="1 of 1 tested pairs"):
        run_sealed(end, tell, np.eye(2), [0], pairs_of_shown=np.nonzero, pairs_of_asked=lambda _: ([1], [1]))


def test_a_system_that_dies_is_named():
    shown, asked = data()
    with pytest.raises(ProcessEndedError, match=r"^named\('svd'\): .*ended without a result"):
        run_sealed(partial(named, "svd"), tell, shown, asked)
    with pytest.raises(DataError, match="no such luck"):
        run_sealed(fail, tell, shown, asked)


def named(name, shown):
    os._exit(1)


@pytest.mark.parametrize("asked", [(["a"], ["x"]), (["a"], ["x"], [1.0], [5.0]), np.zeros((1, 3))])
def test_a_question_with_times_has_nothing_beside_them(asked):
    with pytest.raises(LeakError, match=r"expected \(user ids, item ids, times\) without ratings"):
        timed_pairs(asked)
    assert timed_pairs((["a"], ["x"], [1.0])) == (["a"], ["x"])
