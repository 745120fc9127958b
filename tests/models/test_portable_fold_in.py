"""The numbers of a fold-in outside of the library: whole, and enough for what NumPy makes of them."""

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys import AIR, GlobalMean
from air_recsys.exceptions import NotFittedError, ParameterError
from air_recsys.models import GraphRanker
from air_recsys.models.portable import portable_fold_in

RATINGS = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((6, 5)))
OWN = sp.csr_array(([5.0, 2.0, 1.0], ([0, 0, 0], [0, 3, 7])), shape=(1, 10))


def test_least_squares_with_the_numbers_of_the_objective_are_fold_in():
    model = AIR.for_ratings(solver="adam", n_epochs=3, n_factors=3, random_state=0, device="cpu").fit(RATINGS)
    found = portable_fold_in(model)
    assert (found["kind"], found["range"], found["limit"]) == ("objective", [1, 5], "range")
    inputs = np.column_stack([found["factors"][OWN.indices].astype(float), np.ones(3)])
    matrix = inputs.T @ inputs
    matrix[:-1, :-1] += found["base"]
    matrix[-1, -1] += found["bias_decay"]
    row = np.linalg.solve(matrix, inputs.T @ (OWN.data - found["offsets"][OWN.indices]))
    expected = model.fold_in(OWN)
    np.testing.assert_allclose(row[:-1], expected.factors[0], atol=1e-6)
    assert row[-1] == pytest.approx(expected.biases[0])


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_the_arrays_of_a_posterior_go_together(solver):
    model = AIR.for_ratings(solver=solver, n_factors=2, n_sweeps=10, random_state=0, device="cpu")
    found = portable_fold_in(model.fit(RATINGS, user_features=np.arange(12.0)[:, None]))
    (draws, n_items, width), features_of_pattern = found["items"].shape, found["basis"].shape[1]
    assert (n_items, width) == (10, 3)
    assert found["weights"].shape == (draws, features_of_pattern + 2, width)  # without those of the users' features
    assert found["precisions"].shape == (draws, width, width)
    assert found["noise"].shape == (10,)
    sampled = solver == "langevin"
    assert (found["covariances"] is None) == sampled == (draws > 1)
    assert all((found[name] is not None) == sampled for name in ("factors", "biases", "maps", "errors"))
    assert found["shifts"] is None


def test_pushed_and_many_values():
    binary = AIR.for_interactions(n_epochs=3, device="cpu").fit(np.kron(np.eye(2), np.ones((4, 4))))
    assert portable_fold_in(binary)["limit"] == "pushed"
    many = AIR.for_ratings(n_sweeps=2, clip=False, device="cpu").fit(np.random.default_rng(0).random((8, 9)))
    found = portable_fold_in(many)
    assert (found["limit"], found["values"]) == ("none", None)


def test_models_that_fold_nobody_in():
    with pytest.raises(NotFittedError):
        portable_fold_in(GraphRanker())
    with pytest.raises(ParameterError, match="folds new users in, found GlobalMean"):
        portable_fold_in(GlobalMean().fit(RATINGS))
