"""A `GraphRanker` whose fit is cut short goes on from its checkpoint, and ends where one that ran through ends."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import ranker_cases
from power_cuts import PowerCut

from air_recsys import Interactions
from air_recsys.cli import main
from air_recsys.exceptions import CheckpointError
from air_recsys.models import GraphRanker
from air_recsys.models.graph_ranker import progress
from air_recsys.models.graph_ranker import ranker as module
from air_recsys.models.graph_ranker.hidden import HeldOut
from air_recsys.models.graph_ranker.inputs import RankerSettings
from air_recsys.training.checkpoint import CheckpointFile
from air_recsys.training.interrupts import Terminated
from air_recsys.training.softmax import SoftmaxTrainer

N_STEPS = 24  # measured after 8, 12, ...


def likes(seed: int = 0) -> Interactions:
    """With times, so that the search has three parts."""
    users, items = ranker_cases.likes(40, 30, seed=seed).nonzero()
    times = np.random.default_rng(seed).permutation(users.size)
    return Interactions(users, items, np.ones(users.size), range(40), range(30), timestamps=times)


def make(**parameters) -> GraphRanker:
    small = {"n_factors": 8, "n_steps": N_STEPS, "device": "cpu"}
    return GraphRanker(**small | parameters)


@pytest.fixture(scope="module")
def whole() -> GraphRanker:
    model = make().fit(likes())
    assert model.settings_.factor_weight > 0
    assert 8 <= model.n_steps_ < N_STEPS
    return model


def same(first: GraphRanker, second: GraphRanker) -> None:
    """Assert that two fitted models are equal to the bit."""
    pd.testing.assert_frame_equal(first.history_, second.history_, check_exact=True)
    for name in ("user_factors_", "item_factors_"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_array_equal(first._fitted().item_weights, second._fitted().item_weights)


class Cut:
    """Ends a fit after so many steps of factors, or so many lists that are measured, three times a setting."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        advance, measure = SoftmaxTrainer.advance, HeldOut.measure

        def counted(trainer: SoftmaxTrainer, position: int) -> None:
            self.steps += 1
            self.at_step()
            advance(trainer, position)

        def tried(way: HeldOut, settings: RankerSettings) -> dict[str, tuple[float, float]]:
            self.tries += 1
            self.at_try()
            return measure(way, settings)

        monkeypatch.setattr(SoftmaxTrainer, "advance", counted)
        monkeypatch.setattr(HeldOut, "measure", tried)
        self.go_on()

    def limit(self, steps: float = math.inf, tries: float = math.inf) -> None:
        """End what comes after so many of them, from now on."""
        self.steps = self.tries = 0
        self.at_step = lambda: self._end(self.steps > steps)
        self.at_try = lambda: self._end(self.tries > tries)

    def go_on(self) -> None:
        """Let nothing end from now on, and count anew."""
        self.limit()

    @contextmanager
    def after(self, **limits: int) -> Iterator[None]:
        """A fit that ends there."""
        self.limit(**limits)
        with pytest.raises(PowerCut):
            yield
        self.go_on()

    @staticmethod
    def _end(now: bool) -> None:
        if now:
            raise PowerCut


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Cut:
    return Cut(monkeypatch)


def all_steps(model: GraphRanker) -> tuple[int, int]:
    """Return the steps that the search of a model takes, and those of all its training."""
    searched = 3 * int(model.history_["n_steps"].to_numpy().max())
    return searched, searched + model.n_steps_


@pytest.mark.parametrize(("share", "every"), [(0.1, 1000), (0.6, 3), (0.9, 1000), (1.1, 3)])
def test_a_fit_that_is_cut_at_a_step_goes_on_to_the_bit(share, every, whole, cut, tmp_path) -> None:
    path, (searched, total) = tmp_path / "run.ckpt", all_steps(whole)
    at = round(share * searched) if share < 1 else total - 1
    with cut.after(steps=at):
        make().fit(likes(), checkpoint=path, every=every)
    same(make().fit(likes(), checkpoint=path, every=every, resume_from=path), whole)
    lost = cut.steps - (total - at)
    assert 0 <= lost < (every if every < N_STEPS else 3 * N_STEPS)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("at", [10, 28, 90])
def test_a_fit_that_is_cut_at_a_setting_goes_on_and_tries_none_again(at, whole, cut, tmp_path) -> None:
    path, total = tmp_path / "run.ckpt", 3 * (len(whole.history_) - 1)
    with cut.after(tries=at):
        make().fit(likes(), checkpoint=path)
    same(make().fit(likes(), resume_from=path), whole)
    before_factors = 3 * int((whole.history_["factor_weight"].iloc[:-1] == 0).sum())
    if at < before_factors:
        assert cut.tries == total - at // 3 * 3
    else:
        assert cut.tries <= total - before_factors
        assert cut.steps == whole.n_steps_  # those of the search are in the checkpoint


def test_given_settings_go_on_too(cut, tmp_path) -> None:
    path, expected = tmp_path / "run.ckpt", make(settings={}).fit(likes())
    with cut.after(steps=17):
        make(settings={}).fit(likes(), checkpoint=path, every=5)
    same(make(settings={}).fit(likes(), resume_from=path), expected)
    assert cut.steps == N_STEPS - 15


@pytest.mark.usefixtures("plain_handlers")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_fit_with_a_checkpoint_and_the_model_stays(number, whole, cut, tmp_path) -> None:
    path = tmp_path / "run.ckpt"
    model = make(settings={}).fit(likes())
    before = model.item_factors_
    model.settings = None
    cut.go_on()
    cut.at_step = lambda: cut.steps == 20 and signal.raise_signal(number)
    kind = KeyboardInterrupt if number == signal.SIGINT else Terminated
    with pytest.raises(kind, match="training was interrupted at step 4 of the factors"):  # of the third way
        model.fit(likes(), checkpoint=path, every=1000)
    assert model.item_factors_ is before
    cut.go_on()
    same(make().fit(likes(), resume_from=path), whole)
    assert cut.steps == all_steps(whole)[1] - 20


@pytest.mark.usefixtures("plain_handlers")
def test_a_signal_between_settings_and_one_after_the_last_step_are_heard(whole, cut, tmp_path, monkeypatch) -> None:
    path = tmp_path / "run.ckpt"
    cut.at_try = lambda: cut.tries == 4 and signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match="training was interrupted after 2 settings"):
        make().fit(likes(), checkpoint=path)
    cut.go_on()
    model, weights = make(), module.regression.item_weights

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return weights(*arguments)

    monkeypatch.setattr(module.regression, "item_weights", interrupted)
    with pytest.raises(KeyboardInterrupt, match="training was interrupted after its last step"):
        model.fit(likes(), checkpoint=path, resume_from=path)
    same(model, whole)


def test_a_disk_that_is_full_leaves_the_last_checkpoint(cut, tmp_path, monkeypatch) -> None:
    path = tmp_path / "run.ckpt"
    with cut.after(steps=5):
        make().fit(likes(), checkpoint=path, every=1)
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(CheckpointError, match="No space left"):
        make().fit(likes(), checkpoint=path, every=1, resume_from=path)
    assert path.read_bytes() == before


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("checkpoint") / "run.ckpt"
    make(settings={}).fit(likes(), checkpoint=path)
    return path


TIMED = Interactions.from_frame(likes().to_frame().assign(time=range(likes().n_ratings)), timestamp="time")


@pytest.mark.parametrize(
    ("changes", "data", "message"),
    [
        ({"n_steps": 5}, likes(), "was written with n_steps=24, found n_steps=5"),
        ({"settings": {"factor_weight": 2.0}}, likes(), "written with settings__factor_weight=None, found .*=2.0"),
        ({"random_state": 1}, likes(), "was written with random_state=0, found random_state=1"),
        ({}, likes(1), "was written for other data"),
        ({}, TIMED, "was written for other data"),
    ],
)
def test_a_checkpoint_of_other_parameters_or_data_is_refused_before_any_work(
    changes, data, message, checkpoint, cut
) -> None:
    cut.limit(steps=0)
    with pytest.raises(CheckpointError, match=message):
        make(**{"settings": {}} | changes).fit(data, resume_from=checkpoint)


@pytest.mark.parametrize("kind", ["history", "selected", "last", "steps"])
def test_a_state_of_something_else_is_refused(kind, checkpoint, tmp_path) -> None:
    path, model = tmp_path / "run.ckpt", make(settings={}) if kind == "last" else make()
    kept = module.fingerprint("GraphRanker", model.saved_parameters(), likes(), timed=True)
    state = {"seconds": 0.0, "history": [], "state": {}}
    state |= {"history": [{"ndcg": "much"}]} if kind == "history" else {"state": {kind: {"settings": 3}}}
    CheckpointFile(path, kept).write(state)
    with pytest.raises(CheckpointError, match="the checkpoint holds no state of this training"):
        model.fit(likes(), resume_from=path)


def test_the_seconds_before_count_for_a_time_budget(cut, tmp_path, monkeypatch) -> None:
    """A setting takes 30 seconds: there is time for four, before and after."""
    path, clock = tmp_path / "run.ckpt", SimpleNamespace(perf_counter=lambda: 10.0 * cut.tries + 200.0 * cut.steps)
    monkeypatch.setattr(progress, "time", clock)
    with cut.after(tries=7):
        make(time_budget=300).fit(likes(), checkpoint=path)
    model = make(time_budget=300).fit(likes(), resume_from=path)
    assert cut.tries == 6
    assert len(model.history_) - 1 == 4
    assert model.search_line_.endswith("; no time for factors")


@pytest.mark.usefixtures("plain_handlers")
def test_in_the_shell_the_same_command_goes_on(whole, cut, tmp_path, capsys) -> None:
    table, checkpoint, file = (tmp_path / name for name in ("likes.csv", "run.ckpt", "lists.air"))
    likes().to_frame().to_csv(table, index=False)
    given = [f"{name}={getattr(whole, name)}" for name in ("n_factors", "n_steps", "n_validation")]
    settings = [part for each in given for part in ("--set", each)]
    command = ["train", table, "--ranking", "--model", file, "--checkpoint", checkpoint, "--device", "cpu", *settings]
    command += ["--timestamp-column", "timestamp"]
    cut.at_step = lambda: cut.steps == 30 and signal.raise_signal(signal.SIGINT)
    with pytest.raises(SystemExit) as ended:
        main([*map(str, command), "--every", "1000"])
    assert ended.value.code == 130
    assert f"of the factors; the same command goes on from {checkpoint}" in capsys.readouterr().out
    assert not file.exists()
    cut.go_on()
    with pytest.raises(SystemExit):
        main([*map(str, command)])
    assert cut.steps == all_steps(whole)[1] - 30
    same(GraphRanker.load(file), whole)
