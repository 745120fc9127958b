"""Masks that leak nothing, errors against known answers, and the recovery of groups."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys import GlobalMean
from air_recsys.evaluation.completion import complete, hide, recovery
from air_recsys.exceptions import ParameterError
from air_recsys.graphs import SimilarityGraph

GROUPS = np.array([0, 0, 0, 1, 1, 1])


def shown(data):
    return ~np.isnan(data.observed.to_dense())


@given(
    st.integers(0, 2**31),
    st.integers(10, 30),
    st.integers(10, 30),
    st.floats(0.05, 0.8),
    st.floats(0.05, 0.5),
    st.booleans(),
)
@settings(max_examples=40)
def test_hidden_entries_are_never_shown_and_never_asked_for_in_validation(seed, m, n, share, validation, binary):
    truth = np.random.default_rng(seed).random((m, n))
    truth = (truth < 0.3).astype(float) if binary else truth
    test, chosen = hide(truth, share, seed), hide(truth, share, seed, validation)
    assert (shown(test) == ~test.asked).all()
    assert not (chosen.asked & test.asked).any()
    assert not (shown(chosen) & (test.asked | chosen.asked)).any()
    assert (shown(chosen) | chosen.asked | test.asked).all()
    for data in (test, chosen):
        assert (data.observed.to_dense()[shown(data)] == truth[shown(data)]).all()
        assert data.truth is truth


def test_the_shares_are_those_asked_for_and_the_seed_decides():
    truth = np.ones((300, 300))
    assert hide(truth, 0.7, 0).asked.mean() == pytest.approx(0.7, abs=0.01)
    assert hide(truth, 0.7, 0, 0.1).asked.mean() == pytest.approx(0.03, abs=0.005)
    first, again, other = (hide(truth, 0.5, seed).asked for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize(
    ("given", "message"),
    [((0, 0), "share"), ((1, 0), "share"), ((float("nan"), 0), "share")]
    + [((0.5, 0, validation), "validation") for validation in (-0.1, 1, float("nan"))],
)
def test_shares_out_of_range_never_fall_back_to_the_hidden_entries(given, message):
    with pytest.raises(ParameterError, match=f"{message} must be a number"):
        hide(np.ones((5, 5)), *given)


class Oracle(GlobalMean):
    """Knows the truth but for a constant, and keeps what it was given."""

    def __init__(self, truth, error=0.0):
        self.truth, self.error = truth, error

    def fit(self, interactions, **_):
        self.given = interactions
        return self

    def predict(self, user_ids, item_ids, **_):
        self.asked = set(zip(user_ids.tolist(), item_ids.tolist(), strict=True))
        return self.truth[user_ids, item_ids] + self.error


def test_complete_measures_the_entries_asked_for_and_no_others():
    truth = np.random.default_rng(0).uniform(1, 5, (20, 15))
    data, oracle = hide(truth, 0.4, 0), Oracle(truth, error=0.1)
    row = complete(oracle, data)
    assert set(row) == {"nmae", "seconds"}
    assert row["nmae"] == pytest.approx(0.1 / (truth.max() - truth.min()))
    assert row["seconds"] >= 0
    assert oracle.given is data.observed
    assert oracle.asked == set(zip(*(index.tolist() for index in np.nonzero(data.asked)), strict=True))


def test_complete_ranks_binary_truth_too():
    truth = (np.random.default_rng(0).random((20, 15)) < 0.3).astype(float)
    row = complete(Oracle(truth), hide(truth, 0.4, 0))
    assert (row["nmae"], row["average_precision"], row["auroc"]) == (0, 1, 1)
    assert complete(Oracle(1 - truth), hide(truth, 0.4, 0))["auroc"] == 0


def graph_of(groups):
    return SimilarityGraph((groups[:, None] == groups) * 1.0, range(groups.size))


def test_recovery_of_the_true_graphs_is_complete_and_of_others_is_not():
    other = np.array([0, 1, 0, 1, 0, 1])
    model: Any = SimpleNamespace(user_graph_=graph_of(GROUPS), item_graph_=graph_of(other))
    found = recovery(model, GROUPS, GROUPS)
    assert (found["user_auc"], found["user_nmi"]) == (1, pytest.approx(1))
    assert found["item_auc"] < 0.6
    assert found["item_nmi"] < 0.5
    assert recovery(GlobalMean().fit(np.eye(6) + 1), GROUPS, GROUPS) == {}
