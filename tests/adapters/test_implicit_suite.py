"""implicit's own tests, from its source package, with our models in the place of its own."""

import copy
import sys
from types import ModuleType
from typing import Any, ClassVar
from unittest import TestCase

import numpy as np
import pytest
from host_sources import host_module, source_of
from implicit.recommender_base import RecommenderBase
from scipy.sparse import csr_matrix

from air_recsys.adapters.implicit import ImplicitAIR, ImplicitRanker, leave_k_out_split

TESTS = source_of("implicit") / "tests"
base = host_module(TESTS / "recommender_base_test.py", "recommender_base_test")
SMALL = {"factors": 32, "use_gpu": False, "num_threads": 1, "random_state": 23}


def names_of(module: ModuleType) -> set[str]:
    return {name for name in vars(module) if name.startswith("test_")}


# -------------------------------------------------------------------- what every model has to pass
#
# The tests want factors that have converged (new ones solved for are the trained ones) and yet tell 256 nearly equal
# items from each other, so the regularization is neither 0 nor strong.


class FitsOnce(RecommenderBase):
    """Fits the same likes once for each setting; that a second fit gives the same model is tested elsewhere."""

    fitted: ClassVar[dict] = {}

    def fit(self, user_items, show_progress=True, callback=None):
        if callback is not None or not isinstance(user_items, csr_matrix):
            super().fit(user_items, show_progress, callback)
            return
        key = (self.__class__, str(self.__dict__), user_items.dtype, user_items.toarray().tobytes())
        if key not in self.fitted:
            super().fit(user_items, show_progress)
            self.fitted[key] = copy.deepcopy(self.__dict__)
        self.__dict__ = copy.deepcopy(self.fitted[key])


class FittedOnce(FitsOnce, ImplicitAIR):
    pass


class RankerFittedOnce(FitsOnce, ImplicitRanker):
    pass


class HostTests(base.RecommenderBaseTestMixin):
    """The mixin is written for unittest."""

    settings: ClassVar[dict]

    def _get_model(self) -> Any:
        return FittedOnce(**SMALL | self.settings)

    def __getattr__(self, name: str) -> Any:
        return getattr(TestCase(), name)  # its assertions


@pytest.mark.order
class TestDefault(HostTests):
    settings: ClassVar[dict] = {"regularization": 1.0}


class TestUntouched(HostTests):
    settings: ClassVar[dict] = {}

    # All items of a group have nearly the same users, and factors are solved for by a map that fits all items: an item
    # that is solved for anew ties with the others of its group.
    test_similar_items_batch = None


class TestScaledTargets(HostTests):
    settings: ClassVar[dict] = {
        "loss": "squared",
        "iterations": 60,
        "user_graph_reg": 0.0,
        "item_graph_reg": 0.0,
        "dtype": np.float64,
    }

    # The regularization that is chosen leaves two dimensions: all items of a group have the same direction, so an item
    # that is solved for anew ties with the others of its group.
    test_similar_items_batch = None


@pytest.mark.order
class TestRanker(HostTests):
    settings: ClassVar[dict] = {"settings": {}}

    # A thousand calls of one user each; in test_implicit_ranker.py scores fall in lists of all users at a time.
    test_fit_ordering = None

    def _get_model(self) -> Any:
        return RankerFittedOnce(n_factors=8, n_steps=20, device="cpu", **self.settings)


def test_the_mixin_holds_what_we_think():
    assert len(names_of(base) | set(vars(base.RecommenderBaseTestMixin))) > 20


# -------------------------------------------------------------------- tests of ALS that take any such model


def air_for_als(factors=100, *, use_native=True, use_cg=True, **parameters):
    """`ImplicitAIR` under the call of ALS, without the choice of ALS's solver.

    A user's neighbours do not speak when factors are solved for anew, which these tests compare with the trained ones.
    """
    return ImplicitAIR(factors, num_threads=1, user_graph_reg=0.0, **{"iterations": 60} | parameters)


def host_tests(name: str) -> ModuleType:
    """Import a test module of the host, which imports the mixin by its name."""
    sys.modules["recommender_base_test"] = base
    try:
        return host_module(TESTS / f"{name}.py", f"implicit_{name}")
    finally:
        del sys.modules["recommender_base_test"]


als = host_tests("als_test")
als.AlternatingLeastSquares = air_for_als

test_cg_nan = als.test_cg_nan
test_cg_nan2 = als.test_cg_nan2
test_explain = als.test_explain
test_factorize = als.test_factorize
test_incremental_retrain = als.test_incremental_retrain
test_recalculate_after_pickle = als.test_recalculate_after_pickle
test_small_nan = als.test_small_nan

NOT_OF_ALS = {
    "test_zero_iterations_with_loss": "a model without training steps is refused",
    "test_recalculate_after_cpu_conversion": "to_gpu and to_cpu belong to implicit's GPU build",
    "test_calculate_loss_simple": "of a function of ALS, no model",
    "test_calculate_loss_segfault": "of a function of ALS, no model",
    "test_gpu_loss": "of a function of ALS, no model",
}


# -------------------------------------------------------------------- tests of the split

evaluation = host_tests("evaluation_test")
evaluation.leave_k_out_split = leave_k_out_split

test_leave_k_out_returns_correct_shape = evaluation.test_leave_k_out_returns_correct_shape
test_leave_k_out_outputs_produce_input = evaluation.test_leave_k_out_outputs_produce_input
test_leave_k_split_is_reservable = evaluation.test_leave_k_split_is_reservable
test_leave_k_out_raises_error_for_k_less_than_zero = evaluation.test_leave_k_out_raises_error_for_k_less_than_zero

NOT_OF_EVALUATION = {
    "test_train_test_split": "of implicit's own split",
    "test_evaluate_movielens_100k": "downloads, and is of ALS",
    "test_leave_k_out_gets_correct_train_only_shape": "train_only_size is not offered",
    "test_leave_k_out_raises_error_for_invalid_train_only_size_lower_bound": "train_only_size is not offered",
    "test_leave_k_out_raises_error_for_invalid_train_only_size_upper_bound": "train_only_size is not offered",
}


@pytest.mark.parametrize(("module", "left_out"), [(als, NOT_OF_ALS), (evaluation, NOT_OF_EVALUATION)])
def test_every_test_of_the_host_is_run_or_left_out_by_name(module, left_out):
    assert names_of(module) & set(globals()) == names_of(module) - left_out.keys()
    assert left_out.keys() <= names_of(module)
