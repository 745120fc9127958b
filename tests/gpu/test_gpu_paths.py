"""Every public path of the solvers on a GPU; skipped where there is none."""

from contextlib import nullcontext

import emulation
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from gpu_cases import (
    COMPLETION,
    POSTERIORS,
    RATE,
    SHAPE,
    SOLVERS,
    assert_agree,
    by_solver,
    fitted,
    model,
    needs_a_real_one,
    needs_gpu,
    needs_two,
    ratings,
    scores,
)

from air_recsys import AIR, Interactions, distributed
from air_recsys.models import DMF, RDMF, DirichletDMF

pytestmark = needs_gpu
by_case = pytest.mark.parametrize("case", [*SOLVERS, *COMPLETION])


@by_case
def test_a_fit_agrees_with_the_cpu(case):
    found, expected = (fitted(device, case) for device in ("cuda", "cpu"))
    assert (expected.device_, found.device_.split(":")[0]) == ("cpu", "cuda")
    assert_agree(scores(found), scores(expected), case)
    assert found.history_.shape == expected.history_.shape
    if case in COMPLETION:
        np.testing.assert_allclose(found.history_["objective"], expected.history_["objective"], rtol=RATE)
        for one, other in ((found.user_graph_, expected.user_graph_), (found.item_graph_, expected.item_graph_)):
            assert abs(one.to_scipy() - other.to_scipy()).max() < RATE


@needs_two
@pytest.mark.parametrize("solver", ["adam", *POSTERIORS, "dense"])  # the last one captures its steps
def test_the_second_device_is_as_good_as_the_first(solver):
    found = model("cuda:1", solver).fit(ratings())
    np.testing.assert_array_equal(scores(found), scores(fitted("cuda", solver)))


@needs_a_real_one
@by_case
def test_the_same_seed_gives_the_same_model(case):
    first, again = (model("cuda", case, dtype="float32").fit(ratings()) for _ in range(2))
    np.testing.assert_array_equal(scores(first), scores(again))
    for one, other in ((first.user_graph_, again.user_graph_), (first.item_graph_, again.item_graph_)):
        np.testing.assert_array_equal(one.to_scipy().toarray(), other.to_scipy().toarray())


@by_solver
def test_validation_weights_and_snapshots_work_there(solver):
    full = ratings()
    users, items = np.nonzero(~np.isnan(full))
    weights = np.linspace(0.5, 2, users.size)
    data = Interactions(users, items, full[users, items], range(SHAPE[0]), range(SHAPE[1]), weights=weights)
    options = {"snapshot_epochs": (0, 2), "validation_fraction": 0.2, "patience": 9}
    found, expected = (model(device, solver, **options).fit(data) for device in ("cuda", "cpu"))
    assert_agree(scores(found), scores(expected))
    assert found.snapshots_.keys() == expected.snapshots_.keys()
    assert np.isfinite(found.history_["validation_rmse"].dropna()).all()


@pytest.mark.parametrize("kind", [DMF, RDMF, DirichletDMF])
def test_the_baselines_work_there(kind):
    found, expected = (
        kind(n_epochs=6, init_std=0.1, random_state=0, device=device).fit(ratings()) for device in ("cuda", "cpu")
    )
    np.testing.assert_allclose(scores(found), scores(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("preset", [AIR.for_completion, AIR.for_interactions])
def test_presets_that_search_their_settings_work_there(preset):
    likes = (np.nan_to_num(ratings()) > 3).astype(float)
    found = preset(n_epochs=8, settings="auto", random_state=0, device="cuda").fit(likes)
    assert np.isfinite(scores(found)).all()


@by_case
def test_a_model_from_there_answers_like_one_from_here(case, tmp_path, monkeypatch):
    there = fitted("cuda", case)
    path = there.save(tmp_path / "model.air")
    with monkeypatch.context() as patched:
        patched.setattr(torch.cuda, "is_available", lambda: False)
        loaded = AIR.load(path)
        np.testing.assert_array_equal(scores(loaded), scores(there))
    np.testing.assert_array_equal(loaded.similar_users(0, n=3)["user"], there.similar_users(0, n=3)["user"])
    lists = there.recommend(range(SHAPE[0]), 5, device="cuda")
    np.testing.assert_array_equal(lists["item"], loaded.recommend(range(SHAPE[0]), 5)["item"])
    if case in POSTERIORS:
        pairs = np.arange(20), np.arange(20)
        np.testing.assert_array_equal(*(each.predict(*pairs, return_std=True) for each in (loaded, there)))
        rows = sp.csr_array(np.nan_to_num(ratings(3, seed=5)))
        np.testing.assert_array_equal(loaded.fold_in(rows).user_factors_, there.fold_in(rows).user_factors_)
        assert np.isclose(there.explain(0, 0).score, loaded.explain(0, 0).score)


@by_solver
def test_many_new_rows_are_solved_there_and_few_are_not_and_new_ratings_are_taken_in(solver, tmp_path, monkeypatch):
    there = model("cuda", solver).fit(ratings())
    loaded = AIR.load(there.save(tmp_path / "model.air"))
    many = sp.csr_array(np.nan_to_num(ratings(300, seed=5)))
    if solver in POSTERIORS:
        with emulation.watched() if emulation.is_on() else nullcontext() as waits:
            found, few = there.fold_in(many), there.fold_in(many[:2])
        assert waits is None or waits
        with monkeypatch.context() as patched:
            patched.setattr(torch.cuda, "device_count", lambda: 0)
            expected = loaded.fold_in(many)
            np.testing.assert_array_equal(loaded.fold_in(many[:2]).user_factors_, few.user_factors_)
        for name in ("user_factors_", "user_biases_"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-5, atol=1e-6)
    new = Interactions.from_dense(ratings(300, seed=6), list(range(100, 400)), list(range(SHAPE[1])))
    there.partial_fit(new)
    assert np.isfinite(there.predict([100, 399], [0, 1])).all()


@by_solver
def test_shards_of_one_rank_train_there(solver):
    found = distributed.fit(model("cuda", solver), ratings())
    np.testing.assert_allclose(scores(found), scores(fitted("cuda", solver)), rtol=1e-4, atol=1e-4)


def test_auto_takes_the_gpu_and_divergence_is_told_there():
    assert model("auto", "sparse").fit(ratings()).device_ == "cuda"
    with pytest.raises(ArithmeticError, match="training diverged"):
        model("cuda", "sparse", learning_rate=1e3).fit(ratings())


# -------------------------------------------------------------------- going on, there or elsewhere


@by_solver
@pytest.mark.parametrize(("first", "second"), [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda")])
def test_a_training_goes_on_where_it_stopped_or_on_another_device(solver, first, second, tmp_path):
    path, stop = tmp_path / "run.ckpt", [lambda record: record.epoch >= 2]
    model(first, solver).fit(ratings(), checkpoint=path, every=2, callbacks=stop)
    found = scores(model(second, solver).fit(ratings(), resume_from=path))
    expected = scores(fitted(second, solver))
    if first == second:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    elif solver == "langevin":  # goes on with other draws
        assert np.isfinite(found).all()
    else:
        assert_agree(found, expected)
