"""The training loop: records, step sizes, stopping, the state that is kept, and the way back from divergence."""

import math
import sys
from typing import Any

import numpy as np
import pytest
import torch
from covering import covering
from training_cases import FORMS, build, passed_on_the_way, plan, same, train

from air_recsys.exceptions import DivergenceError
from air_recsys.storage.threads import torch_threads
from air_recsys.training import SCHEDULES


class Watch:
    """A callback that remembers every record and a copy of the state at that moment."""

    def __init__(self, objective, stop_at=None):
        self.objective, self.stop_at = objective, stop_at
        self.records, self.states = [], {}

    def __call__(self, record):
        self.records.append(record)
        self.states[record.epoch] = self.objective.state()
        return record.epoch == self.stop_at


# -------------------------------------------------------------------- records


@pytest.mark.parametrize("options", FORMS)
def test_the_objective_falls_and_the_records_add_up(options):
    objective = build(**options)
    result = train(objective, plan(n_epochs=200))
    values = [record.objective for record in result.records]
    assert values[-1] < 0.2 * values[0]
    assert (result.stopped_by, result.kept_epoch, result.error) == ("n_epochs", 200, None)
    for record in result.records:
        total = record.fit + 1e-3 * (record.row_energy + record.column_energy) + record.decay
        assert record.objective == pytest.approx(total, rel=1e-12)
        assert math.isnan(record.validation_rmse)
    assert float(objective.evaluate().objective) == pytest.approx(values[-1], rel=1e-12)


@pytest.mark.parametrize(
    ("n_epochs", "evaluate_every", "expected"),
    [(30, 10, [0, 10, 20, 30]), (25, 10, [0, 10, 20, 25]), (5, 10, [0, 5]), (1, 1, [0, 1])],
)
def test_records_stand_at_the_epochs_asked_for_and_at_the_end(n_epochs, evaluate_every, expected):
    result = train(build(), plan(n_epochs=n_epochs, evaluate_every=evaluate_every))
    assert [record.epoch for record in result.records] == expected
    seconds = [record.seconds for record in result.records]
    assert seconds == sorted(seconds)


PROGRESS = np.linspace(0, 1, 101)


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_starts_at_one_and_never_rises_and_the_records_hold_its_steps(name):
    schedule = SCHEDULES[name]
    shares = np.array([schedule(progress) for progress in PROGRESS])
    assert shares[0] == 1
    assert (np.diff(shares) <= 1e-15).all()
    assert shares[-1] == pytest.approx(1 if name == "constant" else 0, abs=1e-15)
    result = train(build(), plan(schedule=name, n_epochs=50))
    expected = [0.01 * schedule(record.epoch / 50) for record in result.records]
    assert [record.learning_rate for record in result.records] == expected


def test_known_shares_of_the_step_size():
    assert {SCHEDULES["constant"](progress) for progress in PROGRESS} == {1.0}
    assert SCHEDULES["cosine"](0.5) == pytest.approx(0.5)
    assert SCHEDULES["linear"](0.25) == 0.75
    assert SCHEDULES["cooldown"](0.6) == 1
    assert SCHEDULES["cooldown"](0.8) == pytest.approx(0.5)
    assert SCHEDULES["cooldown"](0.61) < 1


def test_the_first_step_of_adam_moves_by_the_step_sizes():
    objective = build()
    model, logits = (
        [tensor.clone() for tensor in part] for part in (objective.model_parameters(), objective.logits())
    )
    train(objective, plan(n_epochs=1, learning_rate=0.01, graph_rate=3.0))
    moved = (objective.model_parameters()[0] - model[0]).abs().max()
    turned = (objective.logits()[0] - logits[0]).abs().max()
    assert float(moved) == pytest.approx(0.01, rel=1e-3)
    assert 0.01 < float(turned) < 0.0301  # logits of tiny gradients move less


# -------------------------------------------------------------------- chance and callbacks


@pytest.mark.parametrize("options", FORMS)
def test_the_same_seed_gives_the_same_parameters_to_the_bit_whoever_looks_on(options):
    alone, watched = build(seed=3, **options), build(seed=3, **options)
    train(alone, plan(evaluate_every=60))
    train(watched, plan(evaluate_every=7), callbacks=[Watch(watched)])
    assert same(alone.state(), watched.state())


def test_callbacks_see_every_record_and_none_of_them_is_skipped_when_another_stops():
    objective = build()
    stopper, watcher = Watch(objective, stop_at=20), Watch(objective)
    result = train(objective, plan(), callbacks=[stopper, watcher])
    assert stopper.records == watcher.records == result.records
    assert (result.stopped_by, result.kept_epoch) == ("callback", 20)
    assert same(objective.state(), watcher.states[20])


@pytest.mark.parametrize(("answer", "stops"), [(True, True), (np.True_, True), (np.False_, False), (1, False)])
def test_only_true_stops(answer, stops):
    answers: Any = lambda record: answer  # noqa: E731
    result = train(build(), plan(), callbacks=[lambda record: None, answers])
    assert result.stopped_by == ("callback" if stops else "n_epochs")


# -------------------------------------------------------------------- validation


@pytest.mark.parametrize("options", FORMS)
def test_the_state_of_the_lowest_validation_error_is_kept(options):
    objective = build(init=(0.0, 0.1), **options)
    watch = Watch(objective)
    validation = passed_on_the_way()
    result = train(objective, plan(n_epochs=200, evaluate_every=5), validation=validation, callbacks=[watch])
    errors = [record.validation_rmse for record in result.records]
    best = result.records[int(np.argmin(errors))].epoch
    assert 0 < best < 200  # otherwise the test says nothing
    assert result.kept_epoch == best
    assert same(objective.state(), watch.states[best])
    error = objective.predict_pairs(validation.pattern) - validation.values
    assert float(error.square().mean().sqrt()) == pytest.approx(min(errors), rel=1e-12)


def test_patience_stops_after_that_many_records_without_a_better_one():
    seen, options = [], plan(n_epochs=500, evaluate_every=5, patience=3)
    result = train(build(init=(0.0, 0.1)), options, validation=passed_on_the_way(), callbacks=[seen.append])
    assert seen == result.records
    errors = [record.validation_rmse for record in result.records]
    assert result.stopped_by == "patience"
    assert int(np.argmin(errors)) == len(errors) - 1 - 3
    assert result.kept_epoch == result.records[-4].epoch


# -------------------------------------------------------------------- the paper's stopping rule


@pytest.mark.parametrize("evaluate_every", [1, 7, 1000])
def test_stopping_delta_ends_at_the_first_small_change(evaluate_every):
    course = train(build(), plan(n_epochs=120, evaluate_every=1)).records
    values = np.array([record.objective for record in course]) * 120
    changes = np.abs(np.diff(values))
    delta = float(np.sort(changes)[20])
    expected = int(np.flatnonzero(changes < delta)[0]) + 1
    options = plan(n_epochs=120, stopping_delta=delta, evaluate_every=evaluate_every)
    result = train(build(), options)
    epochs = [record.epoch for record in result.records]
    assert (result.stopped_by, result.kept_epoch, epochs[-1]) == ("stopping_delta", expected, expected)
    assert len(set(epochs)) == len(epochs)


# -------------------------------------------------------------------- divergence


@pytest.mark.parametrize(("options", "evaluate_every"), covering(FORMS, [1, 10]))
def test_divergence_ends_in_the_last_good_state(options, evaluate_every):
    objective = build(**options)
    watch = Watch(objective)
    result = train(objective, plan(learning_rate=1e3, evaluate_every=evaluate_every), callbacks=[watch])
    assert result.stopped_by == "divergence"
    assert isinstance(result.error, DivergenceError)
    assert result.error.last_good_epoch == result.kept_epoch == result.records[-1].epoch == watch.records[-1].epoch
    assert result.error.epoch > result.kept_epoch
    assert same(objective.state(), watch.states[result.kept_epoch])
    assert torch.isfinite(objective.evaluate().objective)


def test_numbers_that_are_not_finite_at_the_start_are_divergence_at_epoch_zero():
    objective = build()
    objective.factorization.weights[0].fill_(math.nan)
    result = train(objective, plan())
    assert result.stopped_by == "divergence"
    assert isinstance(result.error, DivergenceError)
    assert (result.error.epoch, result.records) == (0, [])


@pytest.mark.parametrize("form", [{"graph_every": 10}, {"width": 3, "n_neighbors": 3, "n_batches": 3}], ids=str)
def test_logits_that_are_not_due_do_not_end_as_numbers_that_are_none(form):
    objective = build(**form)

    def spoil(record):
        if record.epoch == 29:
            objective.logits()[-1][0] = math.nan

    result = train(objective, plan(n_epochs=30, evaluate_every=1), callbacks=[spoil])
    assert isinstance(result.error, DivergenceError)
    assert "the logits of a graph are not finite" in str(result.error)
    assert all(logits.isfinite().all() for logits in objective.logits())


# -------------------------------------------------------------------- refreshing graphs


def test_a_refresh_that_changes_no_edge_changes_no_step():
    often, never = build(n_neighbors=11), build(n_neighbors=11)
    train(often, plan(graph_refresh=1))
    train(never, plan(graph_refresh=10**9))
    assert same(often.state(), never.state())


def test_graphs_are_refreshed_at_the_epochs_asked_for_and_the_moments_with_them(monkeypatch):
    objective, steps, carried = build(n_neighbors=3), [], []
    refresh = objective.refresh_graphs

    def remember(logits, carry):
        def moved(state):
            carried.append((len(steps), state.shape == logits.shape, bool(state.any())))
            return carry(state)

        return moved

    monkeypatch.setattr(
        objective, "refresh_graphs", lambda: [(logits, remember(logits, carry)) for logits, carry in refresh()]
    )
    train(objective, plan(n_epochs=10, graph_refresh=4, evaluate_every=1), callbacks=[steps.append])
    # two graphs with two moments each; at the first refresh there are none yet
    assert carried == [(4, True, True)] * 4 + [(8, True, True)] * 4


# -------------------------------------------------------------------- progress


@pytest.mark.parametrize("progress", [False, True])
def test_a_bar_goes_to_the_standard_error_only_where_asked_for(capsys, monkeypatch, progress):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)  # in a log it begins after ten seconds
    train(build(), plan(), progress=progress)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert ("training" in captured.err) is progress


@pytest.mark.parametrize(("little", "expected"), [(4_000_000, {1}), (0, {3})])
def test_a_small_training_has_one_thread_and_a_large_one_those_around_it(monkeypatch, little, expected):
    monkeypatch.setattr("air_recsys.training.descent.LITTLE", little)
    objective, found = build(), set()
    evaluate = objective.evaluate

    def noted(batch=0):
        found.add(torch.get_num_threads())
        return evaluate(batch)

    monkeypatch.setattr(objective, "evaluate", noted)
    with torch_threads(3):
        train(objective, plan(n_epochs=4, evaluate_every=2))
        assert torch.get_num_threads() == 3
    assert found == expected
