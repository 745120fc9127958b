"""Training of softmax factors: the loss falls, rows without columns do not take part, the start is left alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from air_recsys.exceptions import DivergenceError
from air_recsys.nn.softmax import ColumnFactors, softmax
from air_recsys.training import Callback, train
from air_recsys.training import softmax as module
from air_recsys.training.softmax import SoftmaxTrainer, SoftmaxTraining, row_pattern

WIDE = 50_001  # of so many columns a step takes a part


def pattern(n_columns: int = 12) -> sp.csr_array:
    entries = np.random.default_rng(0).random((50, n_columns)) < 4 / n_columns
    return sp.csr_array(entries.astype(np.float32))


def start(n_columns: int = 12) -> ColumnFactors:
    random = torch.Generator().manual_seed(0)
    sources, targets = (0.1 * torch.randn(n_columns, 4, generator=random) for _ in range(2))
    return ColumnFactors(sources, targets, torch.ones(n_columns))


def train_softmax(
    entries: sp.csr_array, begun: ColumnFactors, training: SoftmaxTraining, seed: int, *callbacks: Callback
) -> ColumnFactors:
    trainer = SoftmaxTrainer(entries, begun, training, seed)
    assert train(trainer, callbacks=callbacks).error is None
    return trainer.factors


def loss(factors: ColumnFactors, entries: sp.csr_array) -> float:
    filled = entries[np.flatnonzero(np.diff(entries.indptr))]
    return float(softmax(factors, row_pattern(filled), 0.11, 1.1).loss)


def test_the_loss_falls_and_the_start_stays() -> None:
    begun = start()
    trained = train_softmax(pattern(), begun, SoftmaxTraining(50), 0)
    assert loss(trained, pattern()) < loss(begun, pattern()) - 1
    torch.testing.assert_close(begun.sources, start().sources, rtol=0, atol=0)
    assert trained.sources.grad is None


def test_rows_without_columns_change_nothing() -> None:
    entries = pattern()
    with_empty = sp.csr_array(sp.vstack([entries, sp.csr_array((5, 12), dtype=np.float32)]))
    one, other = (train_softmax(each, start(), SoftmaxTraining(3), 0) for each in (entries, with_empty))
    torch.testing.assert_close(one.targets, other.targets)
    empty = train_softmax(sp.csr_array((3, 12), dtype=np.float32), start(), SoftmaxTraining(3), 0)
    torch.testing.assert_close(empty.sources, start().sources, rtol=0, atol=0)


def test_every_row_has_its_turn_before_any_has_a_second() -> None:
    entries = sp.csr_array((np.ones(2500, np.float32), (np.arange(2500), np.arange(2500) % 12)), shape=(2500, 12))
    batches = module._batches(entries, 1024, 0)
    sizes = [next(batches).size for _ in range(6)]
    assert sizes == [1024, 1024, 452] * 2


def test_records_tell_the_mean_loss_since_the_last_one() -> None:
    single, told = ([], [])
    train_softmax(pattern(), start(), SoftmaxTraining(42, evaluate_every=1), 0, single.append)
    train_softmax(pattern(), start(), SoftmaxTraining(42), 0, told.append)
    assert [record.epoch for record in told] == [10, 20, 30, 40, 42]
    losses = [record.objective for record in single]
    assert losses[-1] < losses[0]
    expected = [np.mean(losses[first:last]) for first, last in itertools.pairwise([0, 10, 20, 30, 40, 42])]
    assert [record.objective for record in told] == expected


def test_factors_that_are_not_finite_end_the_training() -> None:
    trainer = SoftmaxTrainer(pattern(), start(), SoftmaxTraining(30, learning_rate=1e38), 0)
    assert isinstance(train(trainer).error, DivergenceError)


def test_of_many_columns_each_step_takes_some_and_the_loss_of_all_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def counted(factors, rows, temperature, power, sample, values):
        taken.append(sample.columns.numel())
        return softmax(factors, rows, temperature, power, sample, values)

    monkeypatch.setattr(module, "softmax", counted)
    begun, entries = start(WIDE), pattern(WIDE)
    trained = train_softmax(entries, begun, SoftmaxTraining(30), 0)
    assert taken == pytest.approx([25_000] * 30, rel=0.05)
    assert loss(trained, entries) < loss(begun, entries) - 1


def test_chances_stand_for_all_columns() -> None:
    counts = np.random.default_rng(0).integers(0, 1000, 5000)
    chances = module._chances(counts, 2000)
    assert chances.sum() == pytest.approx(2000)
    assert chances.min() > 0
    assert chances.max() <= 1
    assert (np.diff(chances[np.argsort(counts, kind="stable")]) >= 0).all()


@pytest.mark.parametrize("n_columns", [12, WIDE])
def test_a_training_goes_on_from_a_state_to_the_bit(n_columns: int) -> None:
    """The order of the rows and the columns that are drawn follow from the number of steps."""
    entries, begun, training = pattern(n_columns), start(n_columns), SoftmaxTraining(30, batch_rows=20)
    whole = train_softmax(entries, begun, training, 0)
    cut, other = (SoftmaxTrainer(entries, begun, training, 0) for _ in range(2))
    cut.n_steps = 13
    train(cut)
    other.load_state(cut.state())
    other.load_step_state(cut.step_state())
    assert other.step == 13
    for position in range(13, 30):
        other.advance(position)
    assert torch.equal(other.factors.sources, whole.sources)
    assert torch.equal(other.factors.targets, whole.targets)


def test_a_state_of_another_training_is_refused() -> None:
    trainer = SoftmaxTrainer(pattern(), start(), SoftmaxTraining(5), 0)
    trainer.advance(0)
    steps = trainer.step_state()
    with pytest.raises(ValueError, match=r"expected sources of shape \(12, 4\), found \(3, 4\)"):
        trainer.load_state(trainer.state() | {"sources": torch.zeros(3, 4)})
    with pytest.raises(ValueError, match="expected a step from 1 to 5, found 6"):
        trainer.load_step_state(steps | {"step": 6})
    with pytest.raises(ValueError, match="expected moments of a tensor of shape"):
        trainer.load_step_state(steps | {"moments": [each | {"exp_avg": torch.zeros(1)} for each in steps["moments"]]})
