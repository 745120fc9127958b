"""Whatever the bytes of a file, a loader returns data or raises an error of the library."""

import contextlib
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from air_recsys.datasets import (
    load_davis,
    load_implicit_lists,
    load_movielens,
    load_movielens_genres,
    load_syn_netflix,
    load_yamanishi,
    read_ratings,
)
from air_recsys.exceptions import AirRecsysError

ALPHABET = "0123456789.-+e,;:|\t\n\r \"'ax_\0éN"
CONTENT = st.binary(max_size=60) | st.text(ALPHABET, max_size=60).map(str.encode)

fuzzed = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def never_breaks(load, path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    with contextlib.suppress(AirRecsysError):
        load()


@fuzzed
@given(content=CONTENT)
def test_movielens(tmp_path, content):
    never_breaks(lambda: load_movielens(tmp_path), tmp_path / "u.data", content)
    never_breaks(lambda: load_movielens(tmp_path, "1m"), tmp_path / "ratings.dat", content.replace(b",", b"::"))
    never_breaks(lambda: load_movielens_genres(tmp_path, "1m"), tmp_path / "movies.dat", content.replace(b",", b"::"))


@fuzzed
@given(content=CONTENT)
def test_lists_and_matlab(tmp_path, content):
    shutil.copyfile(__file__, tmp_path / "test.txt")
    never_breaks(lambda: load_implicit_lists(tmp_path, "gowalla"), tmp_path / "train.txt", content)
    never_breaks(lambda: load_syn_netflix(tmp_path), tmp_path / "synthetic_netflix.mat", content)


@fuzzed
@given(content=CONTENT, name=st.sampled_from(["nr_admat_dgc.txt", "nr_simmat_dc.txt"]))
def test_yamanishi(yamanishi, content, name):
    never_breaks(lambda: load_yamanishi(yamanishi, "nr"), yamanishi / "dti" / "yamanishi" / name, content)


@fuzzed
@given(
    content=CONTENT,
    name=st.sampled_from(["ligands_can.txt", "drug-drug_similarities_2D.txt", "folds/test_fold_setting1.txt"]),
)
def test_davis(davis, content, name):
    never_breaks(lambda: load_davis(davis), davis / "dti" / "davis" / name, content)


@pytest.mark.parametrize("header", [b"", b"user,item,rating\n", b"user,item,rating,note\na,b,1,x\n"])
@fuzzed
@given(content=CONTENT)
def test_own_tables(tmp_path, header, content):
    for name in ("mine.csv", "mine.csv.gz", "mine.parquet"):
        never_breaks(lambda name=name: read_ratings(tmp_path / name), tmp_path / name, header + content)
