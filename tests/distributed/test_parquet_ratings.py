"""Ranks that read their own part of Parquet find what one process finds that is given all ratings."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch.distributed as dist
from rank_processes import message, same, torchrun
from training_jobs import learned, model, ratings, sweeping

from air_recsys.datasets import read_ratings
from air_recsys.distributed import ParquetRatings, fit, plan_sweeps
from air_recsys.exceptions import DataFileError, DataWarning, MemoryLimitError, ParameterError

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")

RANKS = 3
LANGEVIN = {"solver": "langevin", "n_sweeps": 20}
ALLOWED = {"allow_negative": True}


def table() -> pd.DataFrame:
    """Ratings in no order, users with text as ids."""
    frame = ratings().to_frame().sample(frac=1, random_state=0, ignore_index=True)
    return frame.assign(user=frame["user"].map("user {:02}".format))


def write(folder: Path, frame: pd.DataFrame, n_parts: int, rows_of_group: int = 50) -> Path:
    """Write a table in parts of several row groups."""
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), n_parts)):
        frame.iloc[rows].to_parquet(folder / f"part-{number}.parquet", index=False, row_group_size=rows_of_group)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders with the same ratings in many row groups, in one, with repeated pairs, and with mistakes."""
    place, frame = tmp_path_factory.mktemp("tables"), table()
    write(place / "many", frame, 3)
    write(place / "one", frame, 1, 10_000)
    again = frame.iloc[:5].assign(rating=frame["rating"].iloc[:5].to_numpy() + 1)
    write(place / "repeated", pd.concat([frame, again]), 3)
    write(place / "other", frame, 3)
    frame.rename(columns={"item": "movie"}).to_parquet(place / "other" / "part-1.parquet")
    write(place / "few", frame[frame["item"] < 2], 3)
    write(place / "scarce", pd.DataFrame({"user": range(40), "item": range(40), "rating": range(40)}), 3)
    return place


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory, folders: Path) -> Path:
    """Folder of what three ranks have found, of checkpoints, and of how they end on bad input."""
    place = tmp_path_factory.mktemp("found")

    def task(name: str, folder: str, sweeps: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        options = ALLOWED | more.pop("options", {})
        return {"name": name, "sweeps": sweeps or {}, "parquet": {"path": str(folders / folder)} | options} | more

    begun = {"stop": {"epoch": 5, "way": "end", "ranks": [0]}, "fit": {"checkpoint": str(place / "kept"), "every": 4}}
    tasks = [
        task("variational", "many"),
        task("langevin", "many", LANGEVIN),
        task("one group", "one"),
        task("last", "repeated", options={"duplicates": "last"}),
        task("mean", "repeated", options={"duplicates": "mean"}),
        task("begun", "many", LANGEVIN, **begun),
        task("gone on", "many", LANGEVIN, fit={"checkpoint": str(place / "kept")}),
        task("twice", "repeated"),
        task("negative", "many", options={"allow_negative": False}),
        task("other columns", "other"),
        task("other files", "many", parquet_of_rank_1={"path": str(folders / "one")}),
        task("few items", "few"),
        task("other ratings", "one", LANGEVIN, fit={"checkpoint": str(place / "kept")}, options={"rating": None}),
    ]
    torchrun(place, tasks, n_ranks=RANKS)
    return place


@cache
def alone(folder: Path, solver: str = "variational", duplicates: Any = "error") -> dict[str, np.ndarray]:
    """What one process finds that has read everything."""
    data = read_ratings(folder, duplicates=duplicates, allow_negative=True)
    return learned(sweeping(**LANGEVIN if solver == "langevin" else {}).fit(data))


FOUND = {
    "variational": ("many", {}),
    "langevin": ("many", {"solver": "langevin"}),
    "one group": ("many", {}),
    "last": ("repeated", {"duplicates": "last"}),
    "mean": ("repeated", {"duplicates": "mean"}),
}


@pytest.mark.parametrize("name", FOUND)
def test_rank_0_finds_what_one_process_finds(out, folders, name):
    """Also where two of three ranks have nothing to read."""
    folder, how = FOUND[name]
    found, expected = dict(np.load(out / f"{name}-0.npz")), alone(folders / folder, **how)
    assert expected.keys() <= found.keys()
    for part in ("scores", "deviations", "folded", "user_biases", "item_biases", "history_noise"):
        np.testing.assert_allclose(found[part], expected[part], rtol=1e-5, atol=1e-5, err_msg=part)
    for part in ("user_graph", "item_graph", "history_user_energy", "history_item_energy"):
        np.testing.assert_allclose(found[part], expected[part], rtol=1e-4, atol=1e-5, err_msg=part)


@pytest.mark.parametrize("rank", [1, 2])
def test_the_other_ranks_hold_no_model(out, rank):
    assert message(out, "variational", rank) == "not fitted"


def test_sweeps_go_on_as_if_nothing_had_been(out):
    begun, whole, resumed = (dict(np.load(out / f"{name}-0.npz")) for name in ("begun", "langevin", "gone on"))
    assert begun["history_epoch"][-1] == 5
    assert same(resumed, whole)


def test_one_rank_goes_on_with_the_parts_of_three_in_another_order(out, folders):
    """What a checkpoint belongs to is the ratings, not their order or their files."""
    seen: list[int] = []
    fitted = fit(
        sweeping(**LANGEVIN),
        ParquetRatings(folders / "one", allow_negative=True),
        checkpoint=out / "kept",
        callbacks=[lambda record: seen.append(record.epoch)],
    )
    assert seen == [20]  # three ranks have reached the end
    np.testing.assert_allclose(learned(fitted)["scores"], alone(folders / "many", "langevin")["scores"], rtol=1e-5)


def test_one_rank_finds_what_one_process_finds(folders):
    data = read_ratings(folders / "many", allow_negative=True)
    fitted = fit(sweeping(), ParquetRatings(folders / "many", allow_negative=True))
    np.testing.assert_allclose(learned(fitted)["scores"], alone(folders / "many")["scores"], rtol=1e-5)
    pd.testing.assert_frame_equal(*(by_pair(one) for one in (fitted.interactions_, data)))
    assert fitted.settings_ == sweeping().fit(data).settings_


def by_pair(data: Any) -> pd.DataFrame:
    return data.to_frame().sort_values(["user", "item"], ignore_index=True)


# -------------------------------------------------------------------- bad input

REFUSALS = {
    "twice": "DataError: expected one rating per pair, found",
    "negative": "DataError: ratings must be >= 0",
    "other columns": r"DataFileError: .*part-1.parquet: expected the column\(s\) \['item'\]",
    "other files": r"DataFileError: .*: expected the same files on every rank, found others than rank 0 on \[1\]",
    "few items": "DataError: expected at least one of the items for each of 3 ranks, found 2",
    "other ratings": "CheckpointError: .* other data",
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused_is_refused_on_every_rank(out, name):
    for rank in range(RANKS):
        assert re.match(REFUSALS[name], message(out, name, rank))


def test_a_missing_file_is_named():
    with pytest.raises(DataFileError, match="no nowhere"):
        fit(sweeping(), ParquetRatings("nowhere"))


def test_a_rule_that_is_none_is_refused():
    with pytest.raises(ParameterError, match="duplicates must be one of"):
        ParquetRatings("ratings", duplicates="any")  # pyright: ignore[reportArgumentType]


def test_an_empty_table_is_refused(tmp_path):
    with pytest.raises(DataFileError, match="found an empty table"):
        fit(sweeping(), ParquetRatings(write(tmp_path / "empty", table().iloc[:0], 2)))


def test_other_solvers_need_all_ratings_on_every_rank(folders):
    with pytest.raises(ParameterError, match="ParquetRatings are for the solvers Variational and Langevin"):
        fit(model(), ParquetRatings(folders / "many"))


def test_ratings_too_few_for_factors_are_refused(folders):
    with pytest.raises(
        ParameterError, match="n_factors='auto' is 0 for so few ratings, which cannot be read in parts"
    ):
        fit(sweeping(n_factors="auto"), ParquetRatings(folders / "scarce"))


def test_more_memory_than_allowed_is_refused(folders):
    with pytest.raises(MemoryLimitError, match=r"each of 1 ranks needs about .* max_memory allows"):
        fit(sweeping(max_memory="10KB"), ParquetRatings(folders / "many", allow_negative=True))


def test_ratings_that_are_all_equal_are_noticed(folders):
    with pytest.warns(DataWarning, match=r"all \d+ rating\(s\) equal 1: .*only positive pairs are recorded") as warned:
        fit(sweeping(n_sweeps=2), ParquetRatings(folders / "many", rating=None))
    assert warned[0].filename == __file__  # it points to the call


# -------------------------------------------------------------------- the plan


def test_own_parts_need_less_memory():
    sizes = {"n_users": 1000, "n_items": 500, "n_ratings": 10**8, "n_factors": 20, "n_neighbors": 5, "n_ranks": 16}
    whole, own = (plan_sweeps(**sizes, own_parts=own) for own in (False, True))
    assert own.bytes_needed < whole.bytes_needed / 8
