"""The benchmark of affinities: what it hides, its peers, and its figures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import DrugTargetData, load_davis
from air_recsys.evaluation.experiment import rated_pairs
from air_recsys.exceptions import ParameterError
from benchmarks.accuracy import affinities
from benchmarks.accuracy.affinities import (
    SEEDS,
    SETTINGS,
    affinity_folds,
    affinity_systems,
    bench_affinities,
)
from benchmarks.accuracy.peers.regressions import BoostedPairs, KronRLS

N_DRUGS, N_TARGETS = 20, 30


def toy() -> DrugTargetData:
    """Affinities that are smooth in places of drugs and targets on a line, with noise."""
    rng = np.random.default_rng(0)
    drugs, targets = rng.random(N_DRUGS), rng.random(N_TARGETS)
    values = 7 + np.sin(4 * drugs)[:, None] * np.cos(5 * targets) + 0.1 * rng.standard_normal((N_DRUGS, N_TARGETS))
    names = [f"d{n}" for n in range(N_DRUGS)], [f"t{n}" for n in range(N_TARGETS)]
    alike = (
        pd.DataFrame(np.exp(-20 * np.square(np.subtract.outer(place, place))), index=ids, columns=ids)
        for place, ids in zip((drugs, targets), names, strict=True)
    )
    parts = np.array_split(rng.permutation(values.size), 6)
    return DrugTargetData(Interactions.from_dense(values, *names), *alike, None, None, tuple(parts[:5]), parts[5])


def pairs(data: Interactions) -> set[tuple[int, int]]:
    return set(zip(data.user_index.tolist(), data.item_index.tolist(), strict=True))


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_is_hidden_is_not_shown_and_validation_leaves_the_test_fold_alone(setting):
    data = toy()
    tested = pairs(data.interactions.select(data.test_fold))
    for fold in affinity_folds(data, setting, validation=True):
        assert not tested & (pairs(fold.train) | pairs(fold.test))
    folds = affinity_folds(data, setting)
    assert len(folds) == (1 if setting == "pairs" else SEEDS)
    for fold in folds:
        assert not pairs(fold.train) & pairs(fold.test)
        shared_drugs = set(fold.train.user_index) & set(fold.test.user_index)
        shared_targets = set(fold.train.item_index) & set(fold.test.item_index)
        assert bool(shared_drugs) == (setting in ("pairs", "targets"))
        assert bool(shared_targets) == (setting in ("pairs", "drugs"))


@pytest.mark.parametrize("peer", [BoostedPairs, KronRLS])
@pytest.mark.parametrize("setting", ["pairs", "targets"])
def test_peers_learn_from_similarities(peer, setting):
    data = toy()
    fold = affinity_folds(data, setting)[0]
    model = peer(data.drug_similarity, data.target_similarity).fit(fold.train)
    found, truth = model.predict(*rated_pairs(fold.test)), fold.test.ratings
    assert np.mean((found - truth) ** 2) < 0.6 * np.var(truth)


def test_kron_rls_solves_its_equations():
    data = toy()
    shown = affinity_folds(data, "pairs")[0].train
    model = KronRLS(data.drug_similarity, data.target_similarity)._solved(shown, 0.5)
    rows, columns = shown.user_index, shown.item_index
    kernels = data.drug_similarity.to_numpy(), data.target_similarity.to_numpy()
    gram = kernels[0][np.ix_(rows, rows)] * kernels[1][np.ix_(columns, columns)]
    weights = np.linalg.solve(gram + 0.5 * np.eye(rows.size), shown.ratings - shown.ratings.mean())
    asked = data.interactions.user_ids[:5], data.interactions.item_ids[:5]
    expected = (kernels[0][:5, rows] * kernels[1][:5, columns]) @ weights + shown.ratings.mean()
    np.testing.assert_allclose(model.predict(*asked), expected, atol=1e-2)


def test_every_system_is_measured(at_once):
    names = ["AIR", "AIR without similarities", "KronRLS"]
    table = bench_affinities(toy(), "pairs", names)
    rows = {row["system"]: row for row in table.rows}
    assert set(names) <= set(rows)
    assert rows["AIR"]["ci"] > 0.8
    assert 0.7 < rows["AIR"]["inside 90 %"] <= 1
    assert "inside 90 %" not in rows["KronRLS"]
    assert rows["DeepDTA"]["published mse"] == 0.261
    assert "the test fold of DeepDTA" in table.protocol
    hidden = bench_affinities(toy(), "targets", ["KronRLS"], validation=True)
    assert [row["system"] for row in hidden.rows] == ["KronRLS"]
    assert "within the training part" in hidden.protocol
    with pytest.raises(ParameterError, match="systems must be one of 'AIR'"):
        bench_affinities(toy(), "pairs", ["SVD"])


def test_new_drugs_come_with_none_a_few_and_some_measurements():
    rows = affinities.bench_new_drugs(toy(), 1).rows
    assert [(row["measurements"], row["system"]) for row in rows[::2]] == [(n, "fold_in") for n in (0, 5, 20)]
    assert all(row["mse"] < 0.3 for row in rows)


def test_davis_is_predicted_from_similarities(data_root):
    data = load_davis(data_root)
    fold = affinity_folds(data, "pairs", validation=True)[0]
    alike = affinities.Similarities.of(data)
    systems = affinity_systems(alike)
    errors, ranks = {}, {}
    for name in ("AIR", "AIR without similarities"):
        found = systems[name].train(fold.train).predict(*rated_pairs(fold.test))
        errors[name] = np.mean((found - fold.test.ratings) ** 2)
        ranks[name] = np.corrcoef(rankdata(found), rankdata(fold.test.ratings))[0, 1]
    assert errors["AIR"] < 0.22
    assert errors["AIR without similarities"] > 0.25
    assert ranks["AIR"] > ranks["AIR without similarities"]
