"""Three ranks find the posterior that one process finds, given all ratings or each its own part of Parquet."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch.distributed as dist
from training_jobs import (
    arrays,
    assert_close,
    learned,
    message,
    model,
    ranker,
    ratings,
    results,
    same,
    sweeping,
    torchrun,
)

from air_recsys import Interactions
from air_recsys.datasets import read_ratings
from air_recsys.distributed import ParquetRatings, fit, plan_sweeps
from air_recsys.distributed.checkpointer import FILE
from air_recsys.exceptions import DataError, DataFileError, DataWarning, MemoryLimitError, ParameterError

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")

RANKS = 3
LANGEVIN = {"solver": "langevin", "n_sweeps": 20}
END = {"epoch": 5, "way": "end", "ranks": [0]}
FORMS: dict[str, dict[str, Any]] = {
    "variational": {"sweeps": {}},
    "langevin": {"sweeps": LANGEVIN},
    # The last rank has only users without ratings.
    "unrated": {"sweeps": LANGEVIN, "data": {"n_users": 60, "n_without": 40}},
    "features": {"sweeps": {}, "data": {"known": True}},
    "similarities": {"sweeps": {"item_graph_strength": 0.5}, "data": {"known": True, "alike": True}},
    "limits": {"sweeps": {"dtype": "float64"}, "data": {"limits": True}},
    "limits, langevin": {"sweeps": LANGEVIN, "data": {"limits": True}},
    "biases alone": {"sweeps": {"n_factors": "auto", "graph_neighbors": None}},
}
# Folder, rule for repeated pairs, and solver; with one group of rows two of three ranks have nothing to read.
PARTS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "parts": ("many", "error", {}),
    "parts, langevin": ("many", "error", LANGEVIN),
    "one group": ("one", "error", {}),
    "last": ("repeated", "last", {}),
    "mean": ("repeated", "mean", {}),
}
REFUSALS = {
    "few items": "DataError: expected at least one of the items for each of 3 ranks, found 2",
    "other sweeps": "CheckpointError: .* was written with solver",
    "a file": "CheckpointError: checkpoint must be a folder",
    "twice": "DataError: expected one rating per pair, found",
    "negative": "DataError: ratings must be >= 0",
    "other columns": r"DataFileError: .*part-1.parquet: expected the column\(s\) \['item'\]",
    "other files": r"DataFileError: .*: expected the same files on every rank, found others than rank 0 on \[1\]",
    "few items in parts": "DataError: expected at least one of the items for each of 3 ranks, found 2",
    "other ratings": "CheckpointError: .* other data",
}


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
    write(place / "empty", frame.iloc[:0], 2)
    write(place / "limits", frame.assign(relation=np.where(frame.index % 9, "=", "<")), 2)
    return place


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory, folders: Path) -> Path:
    """Folder of what three ranks have found, of checkpoints, and of how ranks end on bad input."""
    out = tmp_path_factory.mktemp("sweeps")
    (out / "of one").mkdir()
    early: Any = [lambda record: record.epoch == 5]
    sweeping(**LANGEVIN).fit(ratings(), checkpoint=out / "of one" / FILE, every=4, callbacks=early)
    (out / "file").write_text("")

    def keeping(folder: str, **more: Any) -> dict[str, Any]:
        return {"fit": {"checkpoint": str(out / folder), "every": 4}} | more

    def parts(folder: str, **options: Any) -> dict[str, Any]:
        return {"parquet": {"path": str(folders / folder), "allow_negative": True} | options}

    tasks = [{"name": name} | task for name, task in FORMS.items()]
    for name, (folder, rule, solver) in PARTS.items():
        kept = keeping("of parts") if solver else {}
        tasks.append({"name": name, "sweeps": solver} | parts(folder, duplicates=rule) | kept)
    tasks += [
        {"name": "begun", "sweeps": LANGEVIN, **keeping("kept", stop=END)},
        {"name": "gone on", "sweeps": LANGEVIN, **keeping("kept")},
        {"name": "for one", "sweeps": LANGEVIN, **keeping("for one", stop=END)},
        {"name": "from one", "sweeps": LANGEVIN, **keeping("of one")},
    ]
    for name, options in (("variational", {}), ("langevin", LANGEVIN)):
        for n_sweeps in (2, 5):
            # Without graphs, as the pairs of rows that ranks compare for them depend on the state in the end.
            counted = options | {"n_sweeps": n_sweeps, "user_graph_reg": 0, "item_graph_reg": 0}
            tasks.append({"name": f"{n_sweeps} sweeps, {name}", "sweeps": counted})
    tasks += [
        {"name": "unshared seeds", "sweeps": {"random_state": None}},
        {"name": "lost numbers", "sweeps": {}, "loses": 7},
        {"name": "few items", "sweeps": {}, "data": {"n_items": RANKS - 1}},
        {"name": "other sweeps", "sweeps": {}, **keeping("kept")},
        {"name": "a file", "sweeps": {}, **keeping("file")},
        {"name": "twice", "sweeps": {}, **parts("repeated")},
        {"name": "negative", "sweeps": {}, **parts("many", allow_negative=False)},
        {"name": "other columns", "sweeps": {}, **parts("other")},
        {"name": "other files", "sweeps": {}, "parquet_of_rank_1": {"path": str(folders / "one")}, **parts("many")},
        {"name": "few items in parts", "sweeps": {}, **parts("few")},
        {"name": "other ratings", "sweeps": LANGEVIN, **parts("one", rating=None), **keeping("of parts")},
    ]
    torchrun(out, tasks, n_ranks=RANKS)
    return out


@cache
def alone(name: str) -> dict[str, np.ndarray]:
    """What one process finds."""
    return learned(sweeping(**FORMS[name]["sweeps"]).fit(ratings(**FORMS[name].get("data", {}))))


@cache
def alone_with(folder: Path, rule: Any, langevin: bool) -> dict[str, np.ndarray]:
    """What one process finds that has read everything."""
    data = read_ratings(folder, duplicates=rule, allow_negative=True)
    return learned(sweeping(**LANGEVIN if langevin else {}).fit(data))


# -------------------------------------------------------------------- the same posterior


@pytest.mark.parametrize("name", FORMS)
def test_ranks_find_what_one_process_finds_and_all_the_same(out, name):
    first, *others = results(out, name, RANKS)
    assert_close(first, alone(name))
    assert all(same(first, other) for other in others)


@pytest.mark.parametrize("name", PARTS)
def test_rank_0_finds_in_parts_what_one_process_finds_in_all(out, folders, name):
    folder, rule, solver = PARTS[name]
    assert_close(results(out, name, 1)[0], alone_with(folders / folder, rule, bool(solver)))
    assert {message(out, name, rank) for rank in (1, 2)} == {"not fitted"}


def test_ranks_without_a_shared_seed_find_the_same(out):
    first, *others = results(out, "unshared seeds", RANKS)
    assert all(same(first, other) for other in others)


@pytest.mark.parametrize("name", ["variational", "langevin"])
def test_the_plan_counts_what_is_sent(out, name):
    """Three more sweeps cost three times what is planned for one, on average over the ranks."""
    short, long = (results(out, f"{n_sweeps} sweeps, {name}", RANKS) for n_sweeps in (2, 5))
    data, sample = ratings(), name == "langevin"
    sizes = data.n_users, data.n_items, data.n_ratings
    cost = plan_sweeps(*sizes, n_factors=4, n_neighbors=4, n_ranks=RANKS, n_features=5, sample=sample)
    assert long[0]["n_messages"] - short[0]["n_messages"] == 3 * cost.messages_per_sweep
    counted = sum(more["n_bytes"] - less["n_bytes"] for more, less in zip(long, short, strict=True))
    assert counted == pytest.approx(3 * RANKS * cost.bytes_received_per_sweep, rel=0.001)
    assert cost.bytes_needed == sweeping().memory_plan(data).total or sample


def test_a_rank_that_loses_its_numbers_ends_all_of_them_in_the_last_good_state(out):
    (told,) = {message(out, "lost numbers", rank) for rank in range(RANKS)}
    assert re.match("DivergenceError: .* epoch 3", told)


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused_is_refused_on_every_rank(out, name):
    for rank in range(RANKS):
        assert re.match(REFUSALS[name], message(out, name, rank))


# -------------------------------------------------------------------- going on


def test_sweeps_go_on_as_if_nothing_had_been_whoever_began(out):
    assert results(out, "begun", RANKS)[0]["history_epoch"][-1] == 5
    assert same(results(out, "gone on", RANKS)[0], results(out, "langevin", RANKS)[0])
    np.testing.assert_allclose(results(out, "from one", RANKS)[0]["scores"], alone("langevin")["scores"], rtol=1e-5)


def test_one_process_goes_on_with_what_ranks_began(out):
    """By `fit` of the model too, as the file is that of one process."""
    seen: list[int] = []
    resumed = sweeping(**LANGEVIN).fit(ratings(), resume_from=out / "for one" / FILE)
    watch: Any = [lambda record: seen.append(record.epoch)]
    again = fit(sweeping(**LANGEVIN), ratings(), checkpoint=out / "for one", callbacks=watch)
    assert seen == list(range(4, 21))
    assert same(learned(again), learned(resumed))
    np.testing.assert_allclose(learned(again)["scores"], alone("langevin")["scores"], rtol=1e-5)


def test_one_rank_goes_on_with_the_parts_of_three_in_another_order(out, folders):
    """What a checkpoint belongs to is the ratings, not their order or their files."""
    seen: list[int] = []
    watch: Any = [lambda record: seen.append(record.epoch)]
    source = ParquetRatings(folders / "one", allow_negative=True)
    fitted = fit(sweeping(**LANGEVIN), source, checkpoint=out / "of parts", callbacks=watch)
    assert seen == [20]  # three ranks have reached the end
    expected = alone_with(folders / "many", "error", True)
    np.testing.assert_allclose(learned(fitted)["scores"], expected["scores"], rtol=1e-5)


# -------------------------------------------------------------------- one process


@pytest.mark.parametrize("name", ["variational", "langevin"])
def test_one_rank_finds_the_same_to_the_bit(name):
    assert same(learned(fit(sweeping(**FORMS[name]["sweeps"]), ratings())), alone(name))


def test_one_rank_finds_in_parts_what_one_process_finds(folders):
    data = read_ratings(folders / "many", allow_negative=True)
    fitted = fit(sweeping(), ParquetRatings(folders / "many", allow_negative=True))
    assert_close(learned(fitted), alone_with(folders / "many", "error", False))
    pd.testing.assert_frame_equal(*(by_pair(one) for one in (fitted.interactions_, data)))
    assert fitted.settings_ == sweeping().fit(data).settings_


def by_pair(data: Interactions) -> pd.DataFrame:
    return data.to_frame().sort_values(["user", "item"], ignore_index=True)


def test_a_callback_ends_the_sweeps():
    fitted, alone = (
        train(sweeping(), [lambda record: record.epoch == 3])
        for train in (
            lambda made, calls: fit(made, ratings(), callbacks=calls),
            lambda made, calls: made.fit(ratings(), callbacks=calls),
        )
    )
    assert (fitted.stopped_by_, fitted.n_iter_) == ("callback", 3)
    assert same(arrays(fitted), arrays(alone))


@pytest.mark.parametrize(
    ("made", "folder", "error", "message"),
    [
        (sweeping(validation_fraction=0.1), None, ParameterError, "needs validation_fraction=0, found 0.1"),
        (sweeping(snapshot_epochs=[3]), None, ParameterError, r"needs snapshot_epochs=\(\), found \(3,\)"),
        (sweeping(n_factors=None), None, ParameterError, "needs n_factors"),
        (sweeping(max_memory="10KB"), None, MemoryLimitError, r"each of 1 ranks needs about .* max_memory allows"),
        (sweeping(max_memory="10KB"), "many", MemoryLimitError, r"each of 1 ranks needs about .* max_memory allows"),
        (sweeping(), "nowhere", DataFileError, "no .*nowhere"),
        (sweeping(), "empty", DataFileError, "found an empty table"),
        (sweeping(n_factors="auto"), "scarce", ParameterError, "n_factors='auto' is 0 for so few ratings, which"),
        (sweeping(), "limits", DataError, r"expected measured ratings in parts, found limits \(relation < or >\)"),
        (model(), "many", ParameterError, "ParquetRatings are for the solvers Variational and Langevin"),
    ],
)
def test_what_needs_one_process_or_other_files_is_refused(made, folder, error, message, folders):
    data = ratings() if folder is None else ParquetRatings(folders / folder, allow_negative=True)
    with pytest.raises(error, match=message):
        fit(made, data)


def test_limits_are_refused_on_every_rank_where_a_model_cannot_use_them():
    for made in (model(n_factors=3), ranker()):
        with pytest.raises(DataError, match="limits"):
            fit(made, ratings(limits=True))


def test_ranks_find_limits_in_double_precision_to_the_last_digits(out):
    found, expected = results(out, "limits", 1)[0], alone("limits")
    for part in ("scores", "deviations", "folded", "history_noise"):
        np.testing.assert_allclose(found[part], expected[part], rtol=1e-9, atol=1e-9, err_msg=part)


def test_strengths_of_given_graphs_are_not_searched_and_rules_are_checked():
    with pytest.raises(ParameterError, match=r"set item_graph_strength, .*found 'auto'"):
        fit(sweeping(), ratings(alike=True))
    with pytest.raises(ParameterError, match="duplicates must be one of"):
        ParquetRatings("ratings", duplicates="any")  # pyright: ignore[reportArgumentType]


def test_ratings_that_are_all_equal_are_noticed(folders):
    with pytest.warns(DataWarning, match=r"all \d+ rating\(s\) equal 1: .*only positive pairs are recorded") as warned:
        fit(sweeping(n_sweeps=2), ParquetRatings(folders / "many", rating=None))
    assert warned[0].filename == __file__  # it points to the call
