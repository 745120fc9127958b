"""Files that are made to harm: bombs, ways out of a folder, links to other files, code."""

from __future__ import annotations

import gzip
import io
import pickle
import zipfile
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest

from air_recsys.data.readers.titles import read_titles
from air_recsys.data.sets.fetching import unpack
from air_recsys.data.sets.monti import read_matlab
from air_recsys.data.sets.registry import read_registry
from air_recsys.datasets import load_movielens, load_movielens_items, load_yamanishi, read_ratings
from air_recsys.exceptions import CheckpointError, DataError, DataFileError
from air_recsys.images import load_image
from air_recsys.storage import reading
from air_recsys.storage.reading import parse_json, read_arrays, unpacked_limit

h5py = pytest.importorskip("h5py")
HEADER = "user,item,rating\n"


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return whole.getvalue()


# -------------------------------------------------------------------- bombs


@pytest.fixture(autouse=True)
def tight(monkeypatch):
    """The bounds of larger files in small ones, so that the tests make no large ones."""
    assert unpacked_limit(10**6) == 64 * 2**20 + 10**8
    monkeypatch.setattr(reading, "_ROOM", 2**16)


def test_gzip_bombs_are_refused(tmp_path):
    content = HEADER.encode() + b"a,b,1\n" * 100_000
    for name in ("mine.csv.gz", "ratings_no_timestamps.dat.gz"):
        (tmp_path / name).write_bytes(gzip.compress(content, 6))
    for load in (lambda: read_ratings(tmp_path / "mine.csv.gz"), lambda: load_movielens(tmp_path, "1m")):
        with pytest.raises(DataFileError, match=r"at most [\d,]+ bytes once unpacked, found more"):
            load()


def test_archives_that_declare_too_much_or_odd_packing_are_refused(tmp_path):
    bomb = zipped({"toy/a": bytes(10**6)})
    for content, message in ((bomb, "once unpacked"), (zipped({"a": b"x"}, zipfile.ZIP_BZIP2), "packed otherwise")):
        (tmp_path / "toy.zip").write_bytes(content)
        with pytest.raises(DataFileError, match=message):
            unpack(tmp_path / "toy.zip", "toy", tmp_path / "out")
        with pytest.raises(ValueError, match=message):
            read_arrays(content)
    assert not (tmp_path / "out").exists()


def test_an_array_that_declares_more_than_its_bytes_is_not_allocated():
    whole = io.BytesIO()
    np.lib.format.write_array_header_1_0(whole, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with pytest.raises(ValueError, match="bytes of values"):
        read_arrays(zipped({"a.npy": whole.getvalue()}))


def test_arrays_hold_no_pickles():
    whole = io.BytesIO()
    np.savez(whole, a=np.array([print], dtype=object))
    with pytest.raises(ValueError, match="numbers or text"):
        read_arrays(whole.getvalue())


def test_matlab_matrices_that_are_not_stored_are_not_filled_up(tmp_path):
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file.create_dataset("M", shape=(10**6, 10**6), dtype="f8", chunks=(100, 100))
        group = file.create_group("W")
        group["data"], group["ir"], group["jc"] = np.ones(1), np.zeros(1, np.int64), np.array([0, 1])
        group.attrs["MATLAB_sparse"] = 10**12
    for name in "MW":
        with pytest.raises(DataFileError, match="shape"):
            read_matlab(tmp_path / "a.mat", [name])


def test_wide_tables_are_refused_before_pandas_sees_them(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(HEADER + ",".join("1" * 50_000) + "\n")
    with pytest.raises(DataFileError, match="line 2: expected 3 fields"):
        read_ratings(path)
    path.write_text(HEADER.strip() + "," * 50_000 + "\na,b,1\n")
    with pytest.raises(DataFileError, match="at most 1,000 columns"):
        read_ratings(path)
    path.write_text("id,title\n" + ",".join("1" * 50_000) + "\n")
    with pytest.raises(DataFileError, match="line 2: expected 2 fields"):
        read_titles(path, np.array(["1"], dtype=object))


def test_many_genres_and_titles_of_brackets_cost_little(tmp_path):
    path = tmp_path / "movies.dat"
    path.write_text("".join(f"{film}::{'(' * 2000}::Genre {film}\n" for film in range(1, 90)))
    assert load_movielens_items(tmp_path, "1m")["year"].isna().all()
    path.write_text("".join(f"{film}::A::Genre {film}\n" for film in range(1, 200)))
    with pytest.raises(DataFileError, match="at most 100 genres, found 199"):
        load_movielens_items(tmp_path, "1m")
    path.write_text("1::A (١٩٩٠)::Drama\n2::B (1990)::Drama\n")
    assert load_movielens_items(tmp_path, "1m")["year"].tolist() == [pd.NA, 1990]


def test_a_list_of_similar_targets_asks_for_no_matrix_of_any_size(tmp_path):
    (tmp_path / "e_admat_dgc.txt").write_text("\tD1\n" + "".join(f"t{k}\t1\n" for k in range(6000)))
    (tmp_path / "e_simmat_dc.txt").write_text("\tD1\nD1\t1\n")
    (tmp_path / "e_simmat_dg_sparse_1dp.txt").write_text("t1\tt2\t0.5\n")
    with pytest.raises(DataFileError, match="at most 5,000 targets"):
        load_yamanishi(tmp_path, "e")


def test_parquet_of_one_row_or_text_without_end_is_refused(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, n_rows = tmp_path / "mine.parquet", 300_000
    ones = pyarrow.array(np.ones(n_rows, np.int8))
    parquet.write_table(pyarrow.table({"user": ones, "item": ones, "rating": ones}), path, compression="zstd")
    with pytest.raises(DataFileError, match="rows in a file of its size"):
        read_ratings(path)
    codes = pyarrow.array(np.zeros(1000, np.int32))
    text = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(["x" * 10_000]))
    table = pyarrow.table({"user": text, "item": np.arange(1000), "rating": np.ones(1000)})
    parquet.write_table(table, path, compression="zstd")
    with pytest.raises(DataFileError, match="bytes of text in 'user'"):
        read_ratings(path)


def test_json_that_nests_too_deep_is_an_ordinary_error():
    with pytest.raises(ValueError, match="nests too deep"):
        parse_json('{"a":' * 100_000)


# -------------------------------------------------------------------- ways out of the folder


@pytest.mark.parametrize("name", ["../x", "/x", "toy/../../x", "C:\\x", "..\\x"])
def test_archive_members_stay_inside(tmp_path, name):
    (tmp_path / "toy.zip").write_bytes(zipped({name: b"x"}))
    with pytest.raises(DataFileError, match="inside of the archive's folder"):
        unpack(tmp_path / "toy.zip", "toy", tmp_path / "a" / "b")
    assert [path.name for path in tmp_path.rglob("*")] == ["toy.zip"]


@pytest.mark.parametrize("place", ["../x", "/x", "a/../../x", "C:\\x"])
@pytest.mark.parametrize("key", ["folder", "provides", "path"])
def test_registries_name_no_place_outside(tmp_path, key, place):
    named = {"folder": "toy", "provides": "a", "path": "a"} | {key: place}
    table = f"folder = '{named['folder']}'\nprovides = ['{named['provides']}']\n"
    lines = f"[toy]\ntitle='t'\nusers=1\nitems=1\nratings=1\nterms='t'\nsource='s'\n{table}"
    (tmp_path / "r.toml").write_text(f"{lines}[[toy.files]]\npath = '{named['path']}'\nurl = 'u'\nsha256 = '0'\n")
    with pytest.raises(DataFileError, match="outside of the data root"):
        read_registry(tmp_path / "r.toml")


def test_matlab_files_lead_to_no_other_file(tmp_path):
    with h5py.File(tmp_path / "secret.mat", "w") as file:
        file["M"] = np.eye(2)
    (tmp_path / "raw").write_bytes(np.eye(2).tobytes())
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file["link"] = h5py.ExternalLink("secret.mat", "M")
        file["soft"] = h5py.SoftLink("/link")
        file.create_dataset("raw", (2, 2), "f8", external=[(str(tmp_path / "raw"), 0, 32)])
        layout = h5py.VirtualLayout((2, 2), "f8")
        layout[:] = h5py.VirtualSource(tmp_path / "secret.mat", "M", (2, 2))
        file.create_virtual_dataset("virtual", layout)
        file.create_group("group")["data"] = h5py.ExternalLink("secret.mat", "M")
    messages = {"link": "a link", "soft": "a link", "raw": "another file", "virtual": "another file"}
    for name, message in messages.items():
        with pytest.raises(DataFileError, match=message):
            read_matlab(tmp_path / "a.mat", [name])


# -------------------------------------------------------------------- code


class Bomb:
    """Unpickling it leaves a trace."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_checkpoints_of_several_ranks_run_nothing_and_hold_no_nan(tmp_path):
    torch = pytest.importorskip("torch")
    from air_recsys.distributed.checkpoint import Checkpoints
    from air_recsys.distributed.group import joined

    mark = {"data": "d", "parameters": {}}
    with joined("cpu", 10) as group:
        checkpoints = Checkpoints(group, tmp_path / "kept", mark)
        checkpoints.write(1, {"a": (torch.ones(3), None)}, {"epoch": 1})
        path = checkpoints.latest()
        assert path is not None
        assert checkpoints.read(path, {"a": (torch.zeros(3), None)}) == {"epoch": 1}
        (file,) = path.iterdir()
        file.write_bytes(pickle.dumps(Bomb(tmp_path / "trace")).ljust(file.stat().st_size, b"."))
        with pytest.raises(CheckpointError, match="is no whole checkpoint"):
            checkpoints.read(path, {"a": (torch.zeros(3), None)})
        with pytest.raises(CheckpointError, match="NaN or infinity in tensor"):
            checkpoints.write(2, {"a": (torch.tensor([1.0, torch.nan, 2.0]), None)}, {"epoch": 2})
        assert checkpoints.latest() == path
    assert not (tmp_path / "trace").exists()


def test_pictures_that_would_start_a_program_are_refused(tmp_path):
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    with pytest.raises(DataError, match="cannot identify image file"):
        load_image(tmp_path / "a.png")


def test_settings_of_the_command_line_are_never_evaluated(tmp_path):
    from air_recsys.cli.options import parse_values

    trace = tmp_path / "trace"
    texts = [f"a=__import__('pathlib').Path({str(trace)!r}).touch()", "a=" + "[" * 9000, "a=10**10**10", "a=\0"]
    for text in texts:
        assert parse_values([text]) == {"a": text[2:]}
    assert not trace.exists()
    rng = Random(0)
    for _ in range(500):
        value = "".join(rng.choice("[]{}()0123456789.'\"abc,:*-+ \0é\\") for _ in range(rng.randrange(20)))
        assert list(parse_values([f"a={value}"])) == ["a"]
