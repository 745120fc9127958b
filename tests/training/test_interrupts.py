"""Ctrl-C: once to end at the next epoch, twice to end at once; and signals that end a process."""

import signal
import threading

import pytest
import torch
from training_cases import build, observe, plan, same, train

from air_recsys.training.checkpoint import CheckpointFile
from air_recsys.training.checkpointer import FileCheckpointer
from air_recsys.training.interrupts import interruptible

pytestmark = pytest.mark.usefixtures("plain_handlers")
MARK = {"data": "d", "parameters": {}}


def press_at(epoch, number=signal.SIGINT):
    def press(record):
        if record.epoch == epoch:
            signal.raise_signal(number)

    return press


def test_the_second_time_interrupts_at_once():
    with interruptible() as interrupted:
        assert not interrupted()
        signal.raise_signal(signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_the_second_signal_of_a_kind_does_what_it_did_before():
    with interruptible() as interrupted:
        signal.raise_signal(signal.SIGTERM)
        assert interrupted() == signal.SIGTERM
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler


def test_the_handler_is_put_back_and_that_of_somebody_else_stays():
    with pytest.raises(ZeroDivisionError), interruptible():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    heard = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    with interruptible() as interrupted:
        signal.raise_signal(signal.SIGINT)
        assert not interrupted()
    assert heard == [signal.SIGINT]


def test_other_threads_hear_nothing():
    answers = []

    def work():
        with interruptible() as interrupted:
            answers.append(interrupted())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [False]


@pytest.mark.parametrize(("name", "status"), [("SIGINT", None), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_ends_a_training_at_the_next_epoch_from_where_it_can_go_on(name, status, tmp_path):
    number, path = getattr(signal, name), tmp_path / "run.ckpt"
    handler = signal.getsignal(number)
    whole, objective, shorter, resumed = (build() for _ in range(4))
    kept = FileCheckpointer(MARK, path, 50)
    result = train(objective, plan(), callbacks=[press_at(20, number)], checkpointer=kept)
    assert isinstance(result.error, KeyboardInterrupt if status is None else SystemExit)
    assert getattr(result.error, "code", None) == status
    assert (result.stopped_by, result.kept_epoch, result.records[-1].epoch) == ("interrupt", 21, 21)
    assert signal.getsignal(number) is handler
    train(shorter, plan(n_epochs=21))
    assert same(objective.state(), shorter.state())
    assert CheckpointFile(path, MARK).read()["course"]["position"] == 21
    train(whole, plan())
    train(resumed, plan(), checkpointer=FileCheckpointer(MARK, resume_from=path))
    assert same(whole.state(), resumed.state())


def test_an_interrupted_training_ends_in_its_best_state():
    objective = build()
    observed = observe(seed=1)
    validation = observed._replace(values=torch.zeros_like(observed.values))  # gets worse all the time
    result = train(objective, plan(), validation=validation, callbacks=[press_at(20)])
    best = min(result.records, key=lambda record: record.validation_rmse)
    assert (result.stopped_by, result.kept_epoch) == ("interrupt", best.epoch)
    assert best.epoch < 21


def test_ctrl_c_in_the_last_step_is_not_lost():
    result = train(build(), plan(), callbacks=[press_at(50)])
    assert isinstance(result.error, KeyboardInterrupt)
    last = train(build(), plan(evaluate_every=59), callbacks=[press_at(59)])
    assert isinstance(last.error, KeyboardInterrupt)
    assert (last.stopped_by, last.records[-1].epoch) == ("interrupt", 60)
