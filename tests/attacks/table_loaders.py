"""Readers of data sets, tables, archives, registries, pictures and studies; samples have invented content."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from air_recsys import datasets
from air_recsys.data.readers.titles import read_titles, titles_of
from air_recsys.data.sets.fetching import unpack
from air_recsys.data.sets.registry import read_registry
from air_recsys.distributed.parquet import ParquetTable, read_piece
from air_recsys.evaluation.tuning.storage import open_study, storage_url
from air_recsys.images import load_image, load_mask
from air_recsys.storage.validation import import_extra
from attacks.readers import Loader

_CSV = 'user,item,rating,when\nann,x,5,2020-01-01\nbob,"y",3.5,2021-02-03\nbob,x,1,2022-03-04\n'
_TITLES = "id,title,year\nx,<b>Plums,1990\ny,,\n"
_RATINGS_1M = "1::10::5::978300001\n1::30::3::978300002\n2::10::4::978300003\n"
_FILMS_1M = "10::Äpfel: Part Two (1990)::Comedy|Children's\n30::Plums (1991)::Drama\n"
_LISTS = {"train.txt": "0 1 2\n1 2\n", "test.txt": "0 3\n1 1\n"}
_TARGETS, _DRUGS = ("hsa1", "hsa2", "hsa3"), ("D01", "D02")
_DAVIS = {
    "ligands_can.txt": json.dumps({"111": "CC", "222": "CO"}),
    "proteins.txt": json.dumps({"AAK1": "MKK", "ABL1": "MLE", "ACK": "MQP"}),
    "drug-target_interaction_affinities_Kd__Davis_et_al.2011v1.txt": "1 10000 10\n100 0.1 1000\n",
    "drug-drug_similarities_2D.txt": "1 0.5\n0.5 1\n",
    "target-target_similarities_WS.txt": "100 20 10\n20 400 30\n10 30 900\n",
    "folds/train_fold_setting1.txt": "[[0, 3], [1]]",
    "folds/test_fold_setting1.txt": "[5, 2]",
}
_REGISTRY = """[toy]
title = "Toy"
folder = "toy"
users = 1
items = 2
ratings = 3
terms = "free"
source = "https://example.org"
provides = ["toy.data"]

[[toy.files]]
path = "toy.zip"
url = "https://example.org/toy.zip"
sha256 = "00"
unpack = "toy"
"""


def loaders() -> list[Loader]:
    """Return the readers of this module."""
    csv = partial(datasets.read_ratings, timestamp="when")
    fold = partial(datasets.load_movielens_fold, fold="u1")
    items_1m = partial(datasets.load_movielens_items, variant="1m")
    ids = np.array(["x", "y"], dtype=object)
    syn_netflix, monti = (partial(_write_matlab, name) for name in ("synthetic_netflix.mat", "split_1.mat"))
    return [
        _text("ratings, CSV", {"mine.csv": _CSV}, lambda folder: csv(folder / "mine.csv")),
        Loader("ratings, CSV in gzip", "gzip", _write_gzip, lambda folder: csv(folder / "mine.csv.gz")),
        Loader(
            "ratings, Parquet", "bytes", _write_parquet, lambda folder: datasets.read_ratings(folder / "m.parquet")
        ),
        Loader("table to score, Parquet", "bytes", _write_parquet, _read_pieces),
        _text("titles, CSV", {"t.csv": _TITLES}, lambda folder: titles_of(read_titles(folder / "t.csv", ids))),
        _text("MovieLens 100K, ratings", _movielens("u.data"), datasets.load_movielens),
        _text("MovieLens 100K, folds", _movielens("u1.base", "u1.test"), fold, 0.4),
        _text("MovieLens 100K, films", _movielens("u.item", "u.genre"), datasets.load_movielens_items, 0.4),
        _text("MovieLens 1M, ratings", {"ratings.dat": _RATINGS_1M}, partial(datasets.load_movielens, variant="1m")),
        _text("MovieLens 1M, films", {"movies.dat": _FILMS_1M}, items_1m, 0.4),
        _text("implicit lists", _LISTS, lambda folder: datasets.load_implicit_lists(folder, "gowalla")),
        _text("Yamanishi", _yamanishi("nr"), partial(datasets.load_yamanishi, name="nr"), 0.4),
        _text("Yamanishi, enzymes", _yamanishi("e"), partial(datasets.load_yamanishi, name="e"), 0.4),
        _text("Davis", _DAVIS, datasets.load_davis, 0.4),
        Loader("Syn-Netflix, MATLAB", "bytes", syn_netflix, datasets.load_syn_netflix),
        Loader("Monti, MATLAB", "bytes", monti, _load_monti),
        Loader("archive of a data set", "zip", _write_archive, _unpack),
        Loader("registry of data sets", "text", _write_registry, lambda folder: read_registry(folder / "r.toml")),
        *(
            Loader(f"image, {of.upper()}", "bytes", partial(_write_image, of), partial(_read_image, of), 0.5)
            for of in ("png", "jpg", "bmp", "gif", "tiff", "webp", "ppm")
        ),
        Loader("study of a search", "bytes", _write_study, _study, 0.02),
    ]


def _text(name: str, files: Mapping[str, str], load: Callable[[Path], Any], share: float = 1.0) -> Loader:
    return Loader(name, "text", partial(_write_texts, files), load, share)


def _write_texts(files: Mapping[str, str], folder: Path) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="iso-8859-1" if name in ("u.item", "movies.dat") else "utf-8")


def _write_gzip(folder: Path) -> None:
    (folder / "mine.csv.gz").write_bytes(gzip.compress(_CSV.encode(), mtime=0))


def _write_parquet(folder: Path) -> None:
    frame = pd.DataFrame({"user": ["ann", "bob", "bob"], "item": ["x", "y", "x"], "rating": [5, 3.5, 1]})
    frame.to_parquet(folder / "m.parquet", engine="pyarrow")


def _read_pieces(folder: Path) -> None:
    table = ParquetTable(folder / "m.parquet", {"user": np.array(["ann"], dtype=object)})
    for _ in table.batches(["user"]):
        pass
    for piece in table.pieces(1_000_000):
        read_piece(piece)


def _movielens(*names: str) -> dict[str, str]:
    rows = [(1, 1, 5, 874000001), (1, 2, 3, 874000002), (2, 1, 4, 874000003), (3, 3, 1, 874000004)]
    lines = ["\t".join(map(str, row)) + "\n" for row in rows]
    flags = "|".join("01"[place in (1, 3)] for place in range(19))
    films = [f"{film}|Äpfel ({1990 + film})|01-Jan-1990||http://x|{flags}\n" for film in (1, 2, 3)]
    genres = [f"Genre {place}|{place}\n" for place in range(19)]
    texts = {"u.data": lines, "u1.base": lines[:2], "u1.test": lines[2:], "u.item": films, "u.genre": genres}
    return {name: "".join(texts[name]) for name in names}


def _matrix(rows: tuple[str, ...], columns: tuple[str, ...], values: list[list[float]]) -> str:
    lines = ["\t".join(["", *columns])]
    lines += ["\t".join([row, *map(str, line)]) for row, line in zip(rows, values, strict=True)]
    return "\n".join(lines) + "\n"


def _yamanishi(name: str) -> dict[str, str]:
    pairs, drugs = _matrix(_TARGETS, _DRUGS, [[1, 0], [0, 0], [1, 1]]), _matrix(_DRUGS, _DRUGS, [[0.9, 0.2], [0.4, 1]])
    targets = _matrix(_TARGETS, _TARGETS, [[1, 0.31, 0.32], [0.31, 1, 0.12], [0.32, 0.12, 1]])
    files = {f"{name}_admat_dgc.txt": pairs, f"{name}_simmat_dc.txt": drugs}
    if name == "e":
        return files | {"e_simmat_dg_sparse_1dp.txt": "hsa1\thsa3\t0.3\nhsa3\thsa1\t0.3\n"}
    return files | {"nr_simmat_dg.txt": targets}


def _write_matlab(name: str, folder: Path) -> None:
    """Write variables as MATLAB 7.3 does: dense ones transposed, sparse ones as groups."""
    observed = np.array([[1.0, 0, 0], [0, 1, 0]])
    dense = {"M": 1 + np.arange(6.0).reshape(2, 3), "Otraining": observed, "Otest": 1 - observed}
    with import_extra("h5py", "data").File(folder / name, "w") as file:
        for variable, values in dense.items():
            file[variable] = values.T
        for variable, size in (("Wrow", 2), ("Wcol", 3), ("W_users", 2), ("W_movies", 3)):
            group = file.create_group(variable)
            group["data"], group["ir"] = np.ones(size), np.arange(size, dtype=np.uint64)
            group["jc"] = np.arange(size + 1, dtype=np.uint64)
            group.attrs["MATLAB_sparse"] = np.uint64(size)


def _load_monti(folder: Path) -> None:
    datasets.load_monti(folder, "movielens")
    datasets.load_monti_graphs(folder, "movielens")


def _write_image(suffix: str, folder: Path) -> None:
    levels = (np.arange(48).reshape(6, 8) * 5).astype(np.uint8)
    import_extra("PIL.Image", "images").fromarray(levels).save(folder / f"a.{suffix}")


def _read_image(suffix: str, folder: Path) -> None:
    load_image(folder / f"a.{suffix}")
    load_mask(folder / f"a.{suffix}", 4)


def _write_archive(folder: Path) -> None:
    with zipfile.ZipFile(folder / "toy.zip", "w") as archive:
        for name in ("toy/toy.data", "toy/more/a.txt", "other.txt"):
            archive.writestr(zipfile.ZipInfo(name), b"1\t2\t3\n" * 9)


def _unpack(folder: Path) -> None:
    """Unpack two folders deep, and raise `AssertionError` for a file anywhere else."""
    inner = folder / "outer" / "inner"
    inner.mkdir(parents=True)
    try:
        unpack(folder / "toy.zip", "toy", inner)
    finally:
        strays = [path for path in folder.rglob("*") if inner not in (path, *path.parents)]
        if {path.name for path in strays} != {"toy.zip", "outer"}:
            raise AssertionError(f"found files outside of the archive's folder: {strays}")


def _write_registry(folder: Path) -> None:
    (folder / "r.toml").write_text(_REGISTRY, encoding="utf-8")


def _write_study(folder: Path) -> None:
    study = _study(folder)
    trial = study.ask()
    trial.suggest_int("depth", 2, 3)
    study.tell(trial, 0.5)


def _study(folder: Path) -> Any:
    search = {"data": "d", "space": {"depth": [2, 3]}}
    return open_study(storage_url(folder / "study.db"), "search", "minimize", search)
