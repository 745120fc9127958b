"""Broken copies of valid files: every reader returns, or raises an error of the library."""

import contextlib
import warnings
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sealing import rewrite

pytest.importorskip("implicit")
pytest.importorskip("h5py")
pytest.importorskip("optuna")

from attacks.fuzz import Count, _read_one, fuzzed_readers
from attacks.mutations import mutated
from attacks.readers import Loader, Workplace, all_readers

from air_recsys.exceptions import AirRecsysError, ModelFileError, ParameterError
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


@pytest.mark.parametrize(("form", "content"), [("text", b"a,b\n1,2\n"), ("json", b'{"a": [1, 2]}')])
def test_the_same_seed_breaks_alike(form, content):
    broken = {mutated(content, form, Random(seed)) for seed in range(30)}
    assert broken == {mutated(content, form, Random(seed)) for seed in range(30)}
    assert len(broken) > 15


def test_every_input_is_counted(tmp_path):
    names = ["titles, CSV", "registry of data sets"]
    rows, notes = fuzzed_readers(60, 0, names, tmp_path / "kept")
    assert [row["reader"] for row in rows] == names
    for row in rows:
        assert row["inputs"] == row["accepted"] + row["refused"]
    assert sum(row["inputs"] for row in rows) == 60
    assert notes == []
    assert not (tmp_path / "kept").exists()
    with pytest.raises(ParameterError, match="a reader must be one of"):
        fuzzed_readers(1, 0, ["none"])


def test_an_unexpected_error_is_counted_and_its_input_kept(tmp_path):
    def load(folder):
        if folder.joinpath("a.txt").read_text("latin-1") != "a,b":
            raise KeyError("not ours")

    reader = Loader("fragile", "text", lambda folder: folder.joinpath("a.txt").write_text("a,b"), load)
    place, count = Workplace(reader, tmp_path / "files", 0), Count()
    for number in range(20):
        _read_one(reader, place.broken(number), number, count, tmp_path / "kept")
    assert count.unexpected > 10
    assert count.accepted + count.unexpected == 20
    assert len(list((tmp_path / "kept").iterdir())) == len(count.found) == 5
    assert "KeyError: 'not ours'" in count.found[0]


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
