"""Broken copies of valid files: every reader returns, or raises an error of the library."""

import contextlib
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sealing import rewrite

pytest.importorskip("implicit")
pytest.importorskip("h5py")
pytest.importorskip("optuna")

from attacks.readers import Workplace, all_readers

from air_recsys.exceptions import AirRecsysError, ModelFileError
from air_recsys.models import Recommender

LOADERS = all_readers()
few = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("name", LOADERS)
@few
@given(number=st.integers(0, 10**9))
def test_no_reader_ends_in_another_error(tmp_path_factory, name, number):
    if name not in PLACES:
        PLACES[name] = Workplace(LOADERS[name], tmp_path_factory.mktemp("fuzz") / "files", 1)
    folder = PLACES[name].broken(number)
    with warnings.catch_warnings(), contextlib.suppress(AirRecsysError):
        warnings.simplefilter("ignore")
        LOADERS[name].load(folder)
    PLACES[name].tidy()


PLACES: dict[str, Workplace] = {}


# -------------------------------------------------------------------- model files, one fault at a time


def attributes_with(change):
    """The attributes of a model file as text, with another value of one of them, which comes last."""
    lists = '"history_": [], "transform_graphs": [], "rating_scale": [1, 5]'
    return f'{{"global_mean_": 1, {lists}, "features": {{}}, "ending": {{}}, "chosen": {{}}, {change}}}'


def changed(path, **parts):
    texts = {name: part for name, part in parts.items() if isinstance(part, str)}
    rewrite(path, texts, {name: part for name, part in parts.items() if name not in texts})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("user_factors_", np.full((6, 4), np.nan, np.float32), "NaN or infinity"),
        ("item_biases_", np.full(5, np.inf, np.float32), "NaN or infinity"),
        ("user_ids_starts", np.array([0, 12, 0, 12, 0, 12, 12]), "the places of ids"),
        ("user_ids_starts", np.array([0, 1, 2, 3, 4, 5, 10**9]), "the places of ids"),
        ("user_ids", np.zeros((10**12, 0), np.int64), "at most"),
        ("user_graph_data", np.zeros(3, np.complex64), "expected numbers"),
        ("parameters", "[" * 100_000, "nests too deep"),
        ("attributes", attributes_with('"global_mean_": NaN'), "finite global_mean_"),
        ("attributes", attributes_with('"ending": {"n_iter_": "1"}'), "another type of n_iter_"),
        ("attributes", attributes_with(f'"global_mean_": 1{"0" * 400}'), "small, finite global_mean_"),
    ],
)
def test_model_files_that_could_do_harm_are_refused(tmp_path, name, value, message):
    LOADERS["model file: AIR"].make(tmp_path)
    changed(tmp_path / "model.air", **{name: value})
    with pytest.raises(ModelFileError, match=message):
        Recommender.load(tmp_path / "model.air")
