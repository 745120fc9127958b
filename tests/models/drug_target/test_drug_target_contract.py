"""`DrugTargetAIR` over data as people have them, in any order, at the edges, and from many threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import DataError, DataWarning

N_DRUGS, N_TARGETS = 9, 7


def recorded() -> np.ndarray:
    rng = np.random.default_rng(0)
    values = (rng.random((N_DRUGS, N_TARGETS)) < 0.4).astype(float)
    return np.where(rng.random(values.shape) < 0.2, np.nan, values)


def similarity(size: int) -> np.ndarray:
    half = np.random.default_rng(1).random((size, size)) * 0.6
    return np.maximum(half, half.T) * (1 - np.eye(size)) + np.eye(size)


def fitted(values: np.ndarray, drugs: np.ndarray, targets: np.ndarray) -> DrugTargetAIR:
    return DrugTargetAIR().fit(values, drugs, targets)


SIDES = similarity(N_DRUGS), similarity(N_TARGETS)


def test_layouts_and_types_change_nothing() -> None:
    expected = fitted(recorded(), *SIDES).scores_
    frozen = [np.asfortranarray(np.repeat(np.repeat(each, 2, 0), 2, 1))[::2, ::2] for each in (recorded(), *SIDES)]
    for each in frozen:
        each.setflags(write=False)
    np.testing.assert_array_equal(fitted(*frozen).scores_, expected)
    rows, columns = np.nonzero(~np.isnan(recorded()))
    matrix = sp.csr_array((recorded()[rows, columns].astype(bool), (rows, columns)), shape=recorded().shape)
    np.testing.assert_array_equal(DrugTargetAIR().fit(matrix, *SIDES).scores_, expected)
    table = pd.DataFrame({"user": rows, "item": columns, "rating": recorded()[rows, columns] > 0})
    typed = table.astype({"user": "Int64", "item": "int64[pyarrow]", "rating": "boolean"})
    np.testing.assert_array_equal(DrugTargetAIR().fit(typed, *SIDES).scores_, expected)


def test_drugs_and_targets_permute_with_their_scores_and_graphs() -> None:
    rng = np.random.default_rng(2)
    drugs, targets = rng.permutation(N_DRUGS), rng.permutation(N_TARGETS)
    plain = fitted(recorded(), *SIDES)
    sides = SIDES[0][np.ix_(drugs, drugs)], SIDES[1][np.ix_(targets, targets)]
    moved = fitted(recorded()[np.ix_(drugs, targets)], *sides)
    np.testing.assert_allclose(moved.scores_, plain.scores_[np.ix_(drugs, targets)], atol=1e-10)
    graph = plain.drug_graph_.to_scipy().toarray()[np.ix_(drugs, drugs)]
    np.testing.assert_allclose(moved.drug_graph_.to_scipy().toarray(), graph, atol=1e-10)


def test_eight_threads_get_the_open_scores_of_one() -> None:
    model, together = fitted(recorded(), *SIDES), threading.Barrier(8)
    expected = fitted(recorded(), *SIDES).new_interactions(20)

    def ask(_: int) -> pd.DataFrame:
        together.wait()
        return model.new_interactions(20)

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(ask, range(8)):
            pd.testing.assert_frame_equal(found, expected)


def test_a_pair_that_is_recorded_twice_is_refused() -> None:
    twice = pd.DataFrame({"user": ["a", "a", "b"], "item": ["x", "x", "y"], "rating": [1, 1, 0]})
    with pytest.raises(DataError, match="1 duplicate"):
        DrugTargetAIR().fit(twice)


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1), (2, 2)])
def test_one_drug_or_one_target(shape: tuple[int, int]) -> None:
    values = np.zeros(shape)
    values[0, 0] = 1
    model = DrugTargetAIR().fit(values)
    assert np.isfinite(model.scores_).all()
    assert len(model.new_interactions(9)) == values.size - 1


def test_drugs_and_targets_without_a_record_have_finite_scores() -> None:
    values = recorded()
    values[4], values[:, 2] = np.nan, np.nan
    for sides in (SIDES, (None, None)):
        with nullcontext() if sides is SIDES else pytest.warns(DataWarning, match="1 drug.* have no recorded pair"):
            model = DrugTargetAIR().fit(Interactions.from_dense(values), *sides)
        assert np.isfinite(model.scores_).all()
        assert np.isfinite(model.open_scores_).all()
