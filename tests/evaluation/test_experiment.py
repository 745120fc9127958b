"""No test entry reaches a training: pairs are checked, and the process that trains gets the training data alone."""

import os

import numpy as np
import pandas as pd
import pytest

from air_recsys import Interactions
from air_recsys.evaluation import experiment
from air_recsys.evaluation.experiment import (
    LeakError,
    Task,
    check_sealed,
    process_place,
    rated_pairs,
    trials,
)
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.results.apart import ProcessEndedError
from air_recsys.evaluation.system import System, system_of
from air_recsys.exceptions import DataError
from air_recsys.models import BiasModel, GlobalMean

truths: list = []


def fold():
    """Six ratings of 3 x 3 and two pairs to ask for."""
    shown = np.array([[5, 3, 1], [4, np.nan, 2], [1, 5, np.nan]])
    hidden = np.full((3, 3), np.nan)
    hidden[1, 1], hidden[2, 2] = 4.0, 2.0
    return Fold("a", Interactions.from_dense(shown), Interactions.from_dense(hidden))


def report_surroundings(shown):
    """Train by looking around: what it was given, and what the parent keeps in this module."""
    return {"kept": len(truths), "shown": shown.n_ratings, "process": os.getpid()}


def tell(model, shown, question):
    return model | {"asked": [ids.tolist() for ids in question.pairs], "again": shown.n_ratings}


def end(shown):
    os._exit(1)


def fail(shown):
    raise DataError("no such luck")


def run(train, task, **how):
    return list(trials({"one": System(train, "")}, [task], progress=False, **how))


def test_a_training_sees_what_it_is_shown_and_nothing_else():
    truths.append(np.array([4.0, 2.0]))  # a process that is forked, not started anew, would know it
    (found,) = run(report_surroundings, Task.of_ratings(fold(), ask=tell).sealed(), place=process_place(1))
    assert len(truths.pop()) == 2
    assert found.answer["process"] != os.getpid()
    assert found.answer["kept"] == 0
    assert found.answer["shown"] == found.answer["again"] == 7
    assert found.answer["asked"] == [[1, 2], [1, 2]]


def test_the_answer_is_that_of_a_model_trained_here_and_comes_with_its_cost():
    (found,) = run(BiasModel().fit, Task.of_ratings(fold()))
    expected = BiasModel().fit(fold().train).predict(*rated_pairs(fold().test))
    np.testing.assert_array_equal(found.answer.predicted, expected)
    assert found.costs.seconds > 0
    assert found.costs.cpu_seconds >= 0
    assert found.costs.peak_gib >= found.costs.before_gib > 0


@pytest.mark.parametrize(("each_apart", "places"), [(False, 2), (True, 6)])
def test_a_system_has_a_place_of_its_own_and_so_has_each_training_where_asked(each_apart, places):
    opened = []

    def place():
        opened.append(1)
        return experiment.here()

    systems = {"biases": system_of(BiasModel()), "mean": system_of(GlobalMean())}
    tasks = [Task.of_ratings(fold())] * 3
    found = list(trials(systems, tasks, place=place, each_apart=each_apart, progress=False))
    assert [trial.system for trial in found] == ["biases"] * 3 + ["mean"] * 3
    assert len(opened) == places


@pytest.mark.parametrize(
    ("pair", "leaks"), [((0, 0), True), ((1, 1), False), ((2, 1), True), ((2, 2), False), ((9, 9), False)]
)
def test_a_pair_that_was_shown_is_not_asked(pair, leaks):
    asked = tuple(np.array([1, each]) for each in pair)
    if not leaks:
        check_sealed(rated_pairs(fold().train), asked)
        return
    with pytest.raises(LeakError, match=r"1 of 2 tested pairs are among the training data, first \(\d, \d\)"):
        check_sealed(rated_pairs(fold().train), asked)


def test_ids_of_any_kind_are_compared_before_any_work():
    frame = pd.DataFrame({"user": ["ann", "bob"], "item": ["x", "y"], "rating": [5, 3]})
    shown = Interactions.from_frame(frame)
    with pytest.raises(LeakError, match=r"first \('bob', 'y'\)"):
        check_sealed(rated_pairs(shown), (np.array(["ann", "bob"]), np.array(["y", "y"])))
    with pytest.raises(LeakError, match="2 of 2 tested pairs"):
        Task.of_ratings(Fold("a", shown, shown)).sealed()


def test_a_system_that_dies_is_named():
    task = Task.of_ratings(fold())
    with pytest.raises(ProcessEndedError, match=r"^one: .*ended without a result"):
        run(end, task, place=process_place(1))
    with pytest.raises(DataError, match="no such luck"):
        run(fail, task)
