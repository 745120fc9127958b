"""What sweeps change, kept as plain values: whoever goes on from it goes on as if nothing had happened."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from posterior_cases import constant, drawn, observed, posterior

from air_recsys.nn.posterior.estimate import LangevinEstimate, VariationalEstimate
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.posterior import Posterior
from air_recsys.nn.posterior.state import load_position, position, set_values, values_of

CPU = torch.device("cpu")


def flat(value):
    """All numbers of nested values, in order."""
    if isinstance(value, torch.Tensor):
        return value.reshape(-1).tolist()
    if isinstance(value, dict):
        return [number for key in value for number in flat(value[key])]
    if isinstance(value, list | tuple):
        return [number for entry in value for number in flat(entry)]
    return [value]


def plain(value):
    """As a file gives it back: tuples are lists, and every tensor is one of its own."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value.clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value)


def sweeping(kind, n_sweeps=20, times=0):
    """An estimate after some sweeps, and its posterior."""
    entries = observed(drawn(m=20, n=15, density=0.5))
    rng = np.random.default_rng(0)
    features = tuple(
        torch.cat([torch.as_tensor(rng.normal(size=(len(one), 2))), one], dim=1) for one in constant(entries)
    )
    state = Posterior(OwnEntries.of(entries), features, 2, rng, sample=kind is LangevinEstimate)
    estimate = kind(state, n_sweeps)
    for _ in range(times):
        estimate.sweep()
    return estimate, state


@pytest.mark.parametrize(
    ("kind", "stop", "n_sweeps"),
    [
        (VariationalEstimate, 4, 20),
        *((LangevinEstimate, stop, n_sweeps) for stop, n_sweeps in ((0, 20), (2, 20), (9, 20), (15, 60))),
    ],
)
def test_sweeps_go_on_from_a_state_as_if_uninterrupted_and_leave_it_alone(kind, stop, n_sweeps):
    first, its = sweeping(kind, n_sweeps, stop)
    given = its.state(), first.state()
    kept = plain(given)
    again, other = sweeping(kind, n_sweeps)
    other.load_state(kept[0])
    again.load_state(kept[1])
    assert flat(other.state()) == flat(its.state())
    for _ in range(10):
        first.sweep()
        again.sweep()
        assert flat(other.state()) == flat(its.state()) != flat(kept[0])
    assert flat(given) == flat(kept)
    assert flat(again.state()) == flat(first.state())
    assert flat(list(again.scores())) == flat(list(first.scores()))
    assert first.ready == again.ready
    for found, expected in zip(again.uncertainty(), first.uncertainty(), strict=True):
        assert flat(found) == flat(expected)


class Owner:
    def __init__(self):
        self.matrix = torch.zeros(2, 3)
        self.pair = (torch.zeros(2), 1.5)
        self.draws = []
        self.count, self.rate = 3, 0.5


NAMES = ("matrix", "pair", "draws", "count", "rate")


def test_values_are_kept_apart_and_come_back():
    owner, other = Owner(), Owner()
    owner.matrix += 1.0
    owner.pair, owner.count, owner.rate = (torch.ones(2), 7.5), 4, 1.0
    owner.draws += [(torch.ones(3), [torch.zeros(1)]), 2.5, (7, None)]
    kept = values_of(owner, NAMES)
    owner.draws.append("later")
    set_values(other, kept, NAMES, CPU)
    draws = [1.0, 1.0, 1.0, 0.0, 2.5, 7, None]
    assert flat(values_of(other, NAMES)) == [1.0] * 6 + [1.0, 1.0, 7.5, *draws, 4, 1.0]
    assert isinstance(other.pair, tuple)
    assert list(kept) == list(NAMES)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("matrix", torch.zeros(3, 2), r"expected a tensor of shape \(2, 3\) and torch.float32"),
        ("matrix", torch.zeros(2, 3, dtype=torch.float64), "expected a tensor"),
        ("matrix", 1.0, "expected a tensor"),
        ("pair", (torch.zeros(3), 1.5), "expected a tensor"),
        ("pair", (torch.zeros(2),), "argument"),
        ("count", torch.zeros(1), "expected a int, found Tensor"),
        ("count", "3", "expected a int, found str"),
        ("rate", None, "expected a float, found NoneType"),
    ],
)
def test_values_of_another_kind_are_refused(name, value, message):
    owner = Owner()
    with pytest.raises(ValueError, match=message):
        set_values(owner, values_of(Owner(), NAMES) | {name: value}, NAMES, CPU)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda draws: draws[:-1],
        lambda draws: [*draws, draws[0]],
        lambda draws: [(rows[:1], columns, priors) for rows, columns, priors in draws],
        lambda draws: [(rows, columns, [prior[:1] for prior in priors]) for rows, columns, priors in draws],
        lambda draws: [(rows, columns.float(), priors) for rows, columns, priors in draws],
        lambda draws: [(rows, 1.0, priors) for rows, columns, priors in draws],
    ],
    ids=["one missing", "one too many", "rows", "priors", "type", "a number"],
)
def test_draws_that_the_sweeps_cannot_have_made_are_refused(spoil):
    kept = sweeping(LangevinEstimate, times=9)[0].state()
    again, _ = sweeping(LangevinEstimate)
    with pytest.raises(ValueError, match=r"expected (a draw every 1 sweeps|draws like the rows)"):
        again.load_state(kept | {"_draws": spoil(kept["_draws"])})


def test_a_state_of_more_or_fewer_priors_is_refused():
    state = posterior(observed(drawn(m=6, n=5)))
    kept = state.state()
    for priors in (kept["priors"][:1], kept["priors"] * 2):
        with pytest.raises(ValueError, match="argument"):
            state.load_state(kept | {"priors": priors})


# -------------------------------------------------------------------- generators


def numbers(seed, state=None):
    generator = torch.Generator().manual_seed(seed)
    if state is not None:
        load_position(generator, state)
    return torch.rand(5, generator=generator).tolist()


def test_a_generator_goes_on_where_another_stood_and_on_another_device_takes_a_new_course_always_the_same():
    first = torch.Generator().manual_seed(1)
    torch.rand(5, generator=first)
    kept = position(first)
    assert numbers(2, kept) == torch.rand(5, generator=first).tolist()
    elsewhere = kept | {"device": "cuda"}
    later = elsewhere | {"state": position(first)["state"]}
    courses = [tuple(numbers(7, state)) for state in (elsewhere, elsewhere, later, kept)]
    assert courses[0] == courses[1]
    assert len({*courses, tuple(numbers(7))}) == 4
    for state in (None, 3, torch.zeros(2)):
        with pytest.raises(ValueError, match="expected the state of a generator as bytes"):
            numbers(7, {"device": "cpu", "state": state})
