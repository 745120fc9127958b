"""Batch scoring: what the workers write is what the model says, whole or not at all."""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cli_cases import cli, read_json
from sealing import parts_of, rewrite

from air_recsys import AIR, BiasModel
from air_recsys.exceptions import (
    AirRecsysError,
    DataError,
    DataFileError,
    DataWarning,
    DeviceError,
    ModelFileError,
    NotFittedError,
    ParameterError,
    UnknownIdError,
)
from air_recsys.models import GraphRanker

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of ray
    pa = pytest.importorskip("pyarrow")
    ray = pytest.importorskip("ray")
    from air_recsys.distributed import scoring, workers
    from air_recsys.distributed.parquet import ParquetTable, read_piece

N_USERS, N_ITEMS = 23, 30
LISTS = ["user", "item", "score", "rank", "source"]
FACTORS = ("user_factors_", "item_factors_", "user_biases_", "item_biases_")


def fails(error, message):
    return pytest.raises(error, match=re.escape(message))


@pytest.fixture(scope="module")
def cluster():
    """Two workers' worth of Ray on this machine, with a GPU that they could share if there were one."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quiet: Any = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
        ray.init(address="local", num_cpus=2, num_gpus=1, **quiet)
    yield
    ray.shutdown()


@cache
def make_model(ids: str) -> AIR:
    """A model whose scores are sums without rounding, so that they are equal however many are computed at once."""
    rng = np.random.default_rng(0)
    ratings = rng.integers(1, 6, (N_USERS, N_ITEMS)).astype(float)
    ratings[rng.random(ratings.shape) < 0.7] = np.nan
    users, items = np.nonzero(np.isfinite(ratings))
    frame: Any = pd.DataFrame({"user": users, "item": items, "rating": ratings[users, items]})
    if ids == "text":
        frame["user"], frame["item"] = [f"u{user}" for user in users], [f"i{item}" for item in items]
    model = AIR.for_ratings(n_factors=4, graph_neighbors=3, device="cpu", random_state=0).fit(frame)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(model.save(Path(folder, "model.air")))
        metadata, arrays = parts_of(path)
        attributes = json.loads(metadata["attributes"]) | {"global_mean_": 3.5}
        rounded = {name: np.round(arrays[name] * 32) / 32 for name in FACTORS}
        rewrite(path, {"attributes": json.dumps(attributes)}, rounded)
        return AIR.load(path)


@pytest.fixture(params=["integer", "text"])
def model(request) -> AIR:
    return make_model(request.param)


def users_of(model) -> list:
    """All users in another order, one of them unknown."""
    ids = model.interactions_.user_ids.tolist()[::-1]
    return [*ids[:5], 99 if isinstance(ids[0], int) else "stranger", *ids[5:]]


def write(path: Path, frame: pd.DataFrame, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path, index=False, **options)
    return path


def users_file(folder: Path, model: AIR, **options: Any) -> Path:
    return write(folder / "users.parquet", pd.DataFrame({"user": users_of(model)}), **options)


def read(folder: Path) -> pd.DataFrame:
    """All files in the order of their names."""
    assert sorted(path.name for path in folder.parent.iterdir() if path.name.startswith(".")) == []
    return pd.concat([pd.read_parquet(file) for file in sorted(folder.iterdir())], ignore_index=True)


def same(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


# -------------------------------------------------------------------- with Ray


def test_two_workers_one_of_which_dies_write_what_the_model_recommends(cluster, tmp_path, monkeypatch):
    @dataclass(frozen=True)
    class DiesOnce(workers.RecommendJob):
        def score(self, model, table):
            if pa.compute.any(pa.compute.equal(table["user"], "u7")).as_py() and not (tmp_path / "died").exists():
                (tmp_path / "died").touch()
                os._exit(1)
            return super(type(self), self).score(model, table)

    monkeypatch.setattr(scoring, "RecommendJob", DiesOnce)
    model = make_model("text")
    table = pd.DataFrame({"age": 1, "user": users_of(model)})
    write(tmp_path / "users" / "a.parquet", table[:9])
    write(tmp_path / "users" / "b.parquet", table[9:])
    file = model.save(tmp_path / "model.air")
    done = scoring.recommend(file, tmp_path / "users", tmp_path / "out", batch_size=5, concurrency=2, device="auto")
    expected = model.recommend(table["user"])
    same(read(done.folder), expected)
    assert done == (tmp_path / "out", N_USERS + 1, len(expected), 1)
    assert len(list(done.folder.iterdir())) == 5  # of 9 and 15 users
    assert (tmp_path / "died").exists()


def test_what_fails_in_a_worker_is_said_and_leaves_nothing(cluster, tmp_path, monkeypatch):
    @dataclass(frozen=True)
    class Fails(workers.RecommendJob):
        def score(self, model, table):
            raise OSError("No space left on device")

    monkeypatch.setattr(scoring, "RecommendJob", Fails)
    model = make_model("integer")
    users = users_file(tmp_path, model)
    with fails(AirRecsysError, "scoring stopped and nothing is written: OSError: No space left on device"):
        scoring.recommend(model, users, tmp_path / "out", concurrency=1)
    assert [path.name for path in tmp_path.iterdir()] == ["users.parquet"]


def test_a_gpu_that_no_worker_has_is_an_error(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 2.0})
    model = make_model("integer")
    with fails(DeviceError, "device='cuda' was asked for, found no GPU in the cluster; use device='cpu' or 'auto'"):
        scoring.recommend(model, users_file(tmp_path, model), tmp_path / "out", device="cuda")
    assert not (tmp_path / "out").exists()


# -------------------------------------------------------------------- the same work without Ray


def test_workers_write_the_lists_of_a_ranker_from_its_file(in_process, tmp_path):
    model = GraphRanker(n_factors=4, n_steps=5, settings={"factor_weight": 1.0}, device="cpu")
    model.fit(make_model("text").interactions_)
    file = model.save(tmp_path / "lists.air")
    done = scoring.recommend(file, users_file(tmp_path, model), tmp_path / "out", n=5, batch_size=9, concurrency=2)
    found, expected = read(done.folder), model.recommend(users_of(model), 5)
    pd.testing.assert_frame_equal(found.drop(columns="score"), expected.drop(columns="score"))
    np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-5, atol=1e-6)  # of blocks of other sizes


@pytest.mark.order
@pytest.mark.parametrize(("batch_size", "row_group_size"), [(1, 1000), (4, 3), (7, 3), (1000, 1000)])
def test_batches_and_row_groups_change_nothing(in_process, tmp_path, model, batch_size, row_group_size):
    ids, users = users_of(model), users_file(tmp_path, model, row_group_size=row_group_size)
    done = scoring.recommend(model, users, tmp_path / "out", n=3, exclude_seen=False, batch_size=batch_size)
    expected = model.recommend(ids, 3, exclude_seen=False)
    same(read(done.folder), expected)
    assert list(expected.columns) == LISTS
    assert len(list(done.folder.iterdir())) == -(-len(ids) // batch_size)


TYPES = {
    "integer": [pa.int8(), pa.uint16(), pa.int64(), pa.dictionary(pa.int8(), pa.int32())],
    "text": [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())],
}


@pytest.mark.parametrize(("ids", "kind"), [(ids, kind) for ids, kinds in TYPES.items() for kind in kinds])
def test_types_of_ids_survive(in_process, tmp_path, ids, kind):
    model, plain = make_model(ids), kind.value_type if pa.types.is_dictionary(kind) else kind
    column = pa.array(users_of(model), plain)
    column = column.dictionary_encode() if plain != kind else column
    pa.parquet.write_table(pa.table({"user": column}), tmp_path / "users.parquet")
    done = scoring.recommend(model, tmp_path / "users.parquet", tmp_path / "out")
    for file in done.folder.iterdir():
        schema = pa.parquet.read_schema(file)
        items = pa.string() if ids == "text" else pa.int64()
        assert schema.names == LISTS
        assert schema.types == [plain, items, pa.float64(), pa.int64(), pa.string()]
    assert read(done.folder)["item"].tolist() == model.recommend(users_of(model))["item"].tolist()


def test_all_columns_of_pairs_stay_and_unknown_ones_get_a_mean_or_are_named(in_process, tmp_path, model):
    pairs = model.interactions_.to_frame().rename(columns={"user": "who", "item": "what"})
    pairs["when"] = pd.Timestamp("2024-02-29") + pd.to_timedelta(np.arange(len(pairs)), unit="D")
    pairs["what"] = pairs["what"].mask(pairs.index == 4, 77 if pairs["what"].dtype == int else "nothing")
    file, names = write(tmp_path / "pairs.parquet", pairs, row_group_size=50), {"user": "who", "item": "what"}
    done = scoring.predict(model, file, tmp_path / "out", **names, batch_size=70)
    same(read(done.folder), pairs.assign(score=model.predict(pairs["who"], pairs["what"], unknown="mean")))
    assert (done.n_read, done.n_written, done.n_unknown) == (len(pairs), len(pairs), 1)
    with fails(UnknownIdError, "1 item id(s) were not in the training data"):
        scoring.predict(model, file, tmp_path / "other", **names, unknown="error")
    assert not (tmp_path / "other").exists()


def test_unknown_users_are_skipped_or_named(in_process, tmp_path, model):
    ids, users = users_of(model), users_file(tmp_path, model)
    done = scoring.recommend(model, users, tmp_path / "out", unknown="skip", batch_size=5)
    same(read(done.folder), model.recommend([*ids[:5], *ids[6:]]))
    assert (done.n_read, done.n_unknown) == (N_USERS + 1, 1)
    with fails(UnknownIdError, f"1 user id(s) were not in the training data: {ids[5]!r}"):
        scoring.recommend(model, users, tmp_path / "other", unknown="error")
    alone = write(tmp_path / "alone.parquet", pd.DataFrame({"user": [ids[5]]}))
    with fails(UnknownIdError, "1 user id(s)"):
        scoring.recommend(model, alone, tmp_path / "other", unknown="skip")
    assert not (tmp_path / "other").exists()


def test_lists_are_of_the_items_that_may_be_recommended(in_process, tmp_path, model):
    ids, items, users = users_of(model), model.interactions_.item_ids.tolist(), users_file(tmp_path, model)
    for number, (some, others) in enumerate([(items[:6], None), (set(items[:6]), items[2]), (None, items[:25])]):
        done = scoring.recommend(model, users, tmp_path / f"out {number}", items=some, exclude=others, batch_size=9)
        same(read(done.folder), model.recommend(ids, items=some, exclude=others))
    with fails(UnknownIdError, "1 item id(s)"):
        scoring.recommend(model, users, tmp_path / "other", exclude="nothing" if isinstance(items[0], str) else 77)
    assert not (tmp_path / "other").exists()


def test_each_user_may_have_its_own_items(in_process, tmp_path, model):
    ids, items, users = users_of(model), model.interactions_.item_ids.tolist(), users_file(tmp_path, model)
    own = {user: items[place % 7 :: 3] for place, user in enumerate(ids) if place != 2}
    pairs = pd.DataFrame([(user, item) for user, some in own.items() for item in some], columns=["user", "item"])
    mask = sp.csr_array([[item in own.get(user, []) for item in items] for user in ids], dtype=float)
    for number, given in enumerate([own, pairs, mask]):
        for name in ("items", "exclude"):
            folder = tmp_path / f"{name} {number}"
            done = scoring.recommend(model, users, folder, n=4, **{name: given}, batch_size=5)
            same(read(done.folder), model.recommend(ids, 4, **{name: own}))
    with fails(DataError, "one row per user asked for and one column per item"):
        scoring.recommend(model, users, tmp_path / "other", items=mask[:3])
    with fails(UnknownIdError, "1 user id(s)"):
        scoring.recommend(model, users, tmp_path / "other", items=own | {"eve" if isinstance(ids[0], str) else 55: []})


def test_a_file_without_lists_is_a_table_too(in_process, tmp_path):
    model = BiasModel().fit(np.array([[1.0, 2.0], [np.nan, 3.0]]))
    users = write(tmp_path / "users.parquet", pd.DataFrame({"user": [0, 1]}))
    done = scoring.recommend(model, users, tmp_path / "out", n=2, batch_size=1)
    assert [len(pd.read_parquet(file)) for file in sorted(done.folder.iterdir())] == [0, 1]
    same(read(done.folder), model.recommend([0, 1], 2))


def test_a_piece_that_kills_its_workers_is_given_up(tmp_path):
    for name in ("parts", "unfinished"):
        (tmp_path / name).mkdir()
    model = make_model("integer")
    (piece,) = ParquetTable(users_file(tmp_path, model), {"user": np.arange(N_USERS)}).pieces(1000)
    batch = {name: np.array([value]) for name, value in piece._asdict().items()}
    worker = workers.Worker(model.save(tmp_path / "model.air"), None, tmp_path)  # type: ignore[arg-type]
    for _ in range(4):
        with pytest.raises(AttributeError):  # in place of the death of the process: there is no job
            worker(batch)
    with fails(RuntimeError, "4 workers died on part"):
        worker(batch)


def test_pieces_cover_the_rows_once_and_in_order(tmp_path):
    rng = np.random.default_rng(1)
    for trial in range(10):
        folder, counts = tmp_path / str(trial), rng.integers(0, 9, rng.integers(1, 4))
        frames = [pd.DataFrame({"user": rng.integers(0, 9, count)}) for count in counts]
        for number, frame in enumerate(frames):
            write(folder / f"{number}.parquet", frame, row_group_size=int(rng.integers(1, 5)))
        if counts.sum() == 0:
            continue
        table, size = ParquetTable(folder, {"user": np.arange(3)}), int(rng.integers(1, 7))
        parts = [read_piece(piece, ["user"])["user"].to_pylist() for piece in table.pieces(size)]
        assert max(map(len, parts)) <= size
        assert [user for part in parts for user in part] == pd.concat(frames)["user"].tolist()


# -------------------------------------------------------------------- bad input


def test_bad_settings(tmp_path):
    model = make_model("text")
    users, out = users_file(tmp_path, model), tmp_path / "out"
    with pytest.warns(DataWarning, match="save will refuse the model"):
        tuples = BiasModel().fit(pd.DataFrame({"user": [(1, 2)], "item": [1], "rating": [2.0]}))
    for source, place, settings, error, message in (
        (model, out, {"n": 0}, ParameterError, "n must be an integer >= 1, found 0"),
        (model, out, {"batch_size": 0}, ParameterError, "batch_size must be an integer >= 1, found 0"),
        (model, out, {"concurrency": 0}, ParameterError, "concurrency must be an integer >= 1, found 0"),
        (model, out, {"unknown": "mean"}, ParameterError, "unknown must be one of 'popular', 'skip', 'error', found"),
        (model, out, {"device": "cuda:1"}, ParameterError, "device must be one of 'cpu', 'cuda', 'auto', found"),
        (model, tmp_path, {}, ParameterError, "expected an output folder that does not exist yet"),
        (model, out / "out", {}, ParameterError, "expected a folder that can be written to for out"),
        (tmp_path / "absent.air", out, {}, ModelFileError, "expected a model file, found no file"),
        (AIR(), out, {}, NotFittedError, "this AIR is not fitted yet"),
        (tuples, out, {}, DataError, "a model file holds ids that are all integers or all strings"),
    ):
        with fails(error, message):
            scoring.recommend(source, users, place, **settings)
    assert [path.name for path in tmp_path.iterdir()] == ["users.parquet"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([{"person": [1]}], "expected the column 'user' once, found ['person']"),
        ([{"user": ["a"]}], "expected integers as 'user', like the ids of the model, found "),
        ([{"user": [1.0]}], "expected integers as 'user', like the ids of the model, found double"),
        ([{"user": pa.array([], pa.int64())}], "expected at least one row, found none"),
        ([{"user": pa.array([0, 1, None])}], "every row needs its user id, found row 2 without one"),
        ([{"user": [3, 4, 3]}], "expected each user once, found 3 twice; drop duplicates first"),
        ([{"user": [98, 97, 98]}], "expected each user once, found 98 twice; drop duplicates first"),
        ([{"user": [3]}, {"user": [3]}], "expected each user once, found 3 twice"),
        ([{"user": pa.array([1], kind)} for kind in (pa.int32(), pa.int64())], "1.parquet: expected one type of user"),
    ],
)
def test_bad_tables(tmp_path, columns, message):
    folder = tmp_path / "users"
    folder.mkdir()
    (folder / "_metadata.parquet").touch()  # passed over
    for number, each in enumerate(columns):
        pa.parquet.write_table(pa.table(each), folder / f"{number}.parquet")
    with fails(DataFileError, message):
        scoring.recommend(make_model("integer"), folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_bad_files(tmp_path):
    model, out, file = make_model("text"), tmp_path / "out", tmp_path / "users.parquet"
    with fails(DataFileError, "expected a Parquet file or a folder of such, found no"):
        scoring.recommend(model, tmp_path / "absent", out)
    write(file, pd.DataFrame({"user": [1]}))
    with fails(DataFileError, "expected text as 'user', like the ids of the model, found int64"):
        scoring.recommend(model, tmp_path, out)
    pairs = model.interactions_.to_frame()
    with fails(DataFileError, "expected no column 'score'"):
        scoring.predict(model, write(file, pairs.assign(score=1.0)), out)
    content = bytearray(write(file, pairs).read_bytes())
    content[4:200] = bytes(196)  # the header at the end is whole
    file.write_bytes(content)
    with fails(DataFileError, "users.parquet: expected a Parquet file, found: "):
        scoring.predict(model, file, out)


# -------------------------------------------------------------------- command line


def test_the_command_writes_lists_and_pairs(in_process, tmp_path, model):
    file, pairs = model.save(tmp_path / "model.air"), model.interactions_.to_frame()
    users, (first, second) = users_file(tmp_path, model), model.interactions_.item_ids[:2].tolist()
    told = cli(
        "score", file, users, tmp_path / "lists", "--n", 4, "--unknown", "skip", "--json", tmp_path / "done.json"
    )
    same(read(tmp_path / "lists"), model.recommend(model.interactions_.user_ids[::-1], 4))
    assert "1 of them with an id that the model does not know" in told.out
    assert read_json(tmp_path / "done.json")["n_unknown"] == 1
    cli("score", file, write(tmp_path / "pairs.parquet", pairs), tmp_path / "scores", "--pairs", "--batch-size", 50)
    same(read(tmp_path / "scores"), pairs.assign(score=model.predict(pairs["user"], pairs["item"], unknown="mean")))
    told = cli("score", file, users, tmp_path / "some", "--item", first, "--item", second, "--exclude", first)
    same(read(tmp_path / "some"), model.recommend(users_of(model), items=[second]))
    assert told.err == ""
    told = cli("score", file, users, tmp_path / "all", "--n", 5000, "--exclude", first)
    same(read(tmp_path / "all"), model.recommend(users_of(model), 5000, exclude=[first]))
    assert f"note: fewer than 5000 items are left (--n): lists have at most {N_ITEMS - 1}\n" in told.err
    told = cli("score", file, tmp_path / "pairs.parquet", tmp_path / "other", "--pairs", "--n", 3)
    assert told.status != 0
    assert "--pairs does not read --n" in told.err
