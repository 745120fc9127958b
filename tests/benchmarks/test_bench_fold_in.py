"""The fold-in benchmark on small data."""

import numpy as np
import pytest

from air_recsys import AIR, Interactions
from benchmarks import fold_in


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((40, 30)) < 0.6)
    ratings = np.where(rows % 2 == columns % 2, 4.5, 1.5) + 0.3 * rng.normal(size=rows.size)
    return Interactions(rows, columns, ratings.clip(1, 5), range(40), range(30))


def test_every_case_is_there_and_folding_in_beats_biases(data):
    means, single = fold_in.folded_in(data, seeds=1, settings={"n_factors": 3, "device": "cpu"}).tables
    assert len(single) == len(means) == 2 * 3 * 3
    found = {(row["new"], row["shown"], row["model"]): row["rmse"] for row in means}
    for new in ("users", "items"):
        assert found[new, 0.8, "AIR, fold-in"] < 0.7 * found[new, 0.8, "BiasModel, trained anew"]


def test_hidden_rows_are_new_to_the_model(data, monkeypatch):
    seen = []
    fit = AIR.fit
    monkeypatch.setattr(AIR, "fit", lambda self, given, **rest: (seen.append(given), fit(self, given, **rest))[1])
    fold_in.folded_in(data, seeds=1, settings={"n_factors": 2, "n_sweeps": 2, "device": "cpu"})
    folding = [given for given in seen if not isinstance(given, Interactions)]  # tables: without the hidden rows
    assert [(table["user"].nunique(), table["item"].nunique()) for table in folding] == [(36, 30)] * 3 + [(40, 27)] * 3
