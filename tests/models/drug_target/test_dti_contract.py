"""The contract of all models, as far as `DrugTargetAIR` keeps it: how sure, weights, rounds, memory, forgetting."""

from __future__ import annotations

import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from dti_cases import SIMILARITY, TARGETS, WIDE, alike, long_of, planted, wide
from torch.utils._python_dispatch import TorchDispatchMode

from air_recsys.data.interactions import Interactions
from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import DataError, MemoryLimitError, ParameterError, UnansweredError, UnknownIdError
from air_recsys.models.drug_target import course
from air_recsys.models.drug_target.completion import affinity
from air_recsys.testing import ContractTests
from air_recsys.training import Record


def fit(*given: Any, **how: Any) -> DrugTargetAIR:
    return DrugTargetAIR().fit(*given, **how)


# -------------------------------------------------------------------- how sure


def test_an_interval_holds_the_labels_of_hidden_pairs_as_often_as_it_says() -> None:
    rng, table = np.random.default_rng(1), planted()
    hidden = long_of(table.mask(rng.random(table.shape) > 0.3)).dropna()
    pairs, labels = (hidden["drug"], hidden["target"]), hidden["interaction"]
    model = fit(table.where(_unlike(table, hidden)))
    probabilities, widths = model.predict_proba(*pairs), []
    for level in (0.3, 0.7, 0.9, 0.99):
        low, high = model.predict_interval(*pairs, level)
        assert ((low <= labels) & (labels <= high)).mean() >= level - 0.1, level
        likeliest = np.maximum(probabilities, 1 - probabilities)
        np.testing.assert_array_equal(high - low, likeliest < level)
        np.testing.assert_array_equal(low[likeliest >= level], probabilities[likeliest >= level] > 0.5)
        widths.append((high - low).mean())
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]
    for level in (0, 1, "0.9"):
        with pytest.raises(ParameterError, match="level must be"):
            model.predict_interval(*pairs, level)


def _unlike(table: pd.DataFrame, hidden: pd.DataFrame) -> np.ndarray:
    """Where a table has other pairs than those."""
    shown = np.ones(table.shape, dtype=bool)
    shown[table.index.get_indexer(hidden["drug"]), table.columns.get_indexer(hidden["target"])] = False
    return shown


def test_deviations_are_those_of_the_scores() -> None:
    model = DrugTargetAIR(known_share=0.9).fit(planted())
    scores, deviations = model.predict("d0", ["t0", "t9"], return_std=True)
    np.testing.assert_array_equal(scores, model.predict("d0", ["t0", "t9"]))
    assert (deviations > 0).all()
    found: Any = model.new_interactions(1000, include_known=True)
    assert found["recorded_zero"].any()
    spread = model.predict(found["drug"], found["target"], return_std=True)[1]  # nine tenths are recorded
    for zero, own in found.assign(spread=spread).groupby("recorded_zero"):
        ends = []
        for end in (own["score"] + own["spread"], own["score"] - own["spread"]):
            share = model.calibration_.of_scores(end.to_numpy())
            ends.append(np.minimum(share / (1 - share) / 9, 0.99) if zero else share)
        np.testing.assert_allclose((ends[0] - ends[1]) / 2, own["deviation"], atol=1e-12)


# -------------------------------------------------------------------- weights


def test_a_column_of_weights_says_how_much_of_a_value_is_recorded() -> None:
    table, weights = long_of(WIDE), np.linspace(0.1, 1, WIDE.size)
    full = Interactions.from_dense(WIDE.to_numpy(), WIDE.index, WIDE.columns)
    by_hand = Interactions(
        full.user_index, full.item_index, full.ratings, full.user_ids, full.item_ids, weights=weights
    )
    found = fit(table.assign(Weight=weights))
    np.testing.assert_array_equal(found.scores_, fit(by_hand).scores_)
    assert not np.allclose(found.scores_, fit(WIDE).scores_)
    np.testing.assert_allclose(fit(table.assign(weight=1.0)).scores_, fit(WIDE).scores_, atol=1e-12)
    only = table[table["interaction"] == 1][["drug", "target"]].assign(weight=0.7)
    np.testing.assert_array_equal(fit(only).interactions_.weights, [0.7] * len(only))
    with pytest.raises(DataError, match=r"weights in \[0, 1\], found 180: divide by it, or drop a column weight"):
        fit(table.assign(weight=180.0))


def test_a_drug_whose_records_weigh_nothing_is_a_new_one_and_half_records_predict_others() -> None:
    table = long_of(WIDE)
    nothing = fit(table.assign(weight=(table["drug"] != "drug 0").astype(float)), SIMILARITY)
    np.testing.assert_allclose(nothing.scores_, fit(wide(0), SIMILARITY).scores_)
    half = fit(table[table["drug"] != "drug 0"].assign(weight=0.5), SIMILARITY)
    scores = half.predict("drug 0", TARGETS)
    assert scores[:3].min() > scores[3:].max()
    with pytest.raises(DataError, match="at least one pair that interacts, found none in 48"):
        fit(table.assign(weight=1.0 - table["interaction"]))


# -------------------------------------------------------------------- rounds


def test_every_round_is_told_with_what_it_minimises() -> None:
    records: list[Record] = []
    found = fit(planted(), callbacks=[records.append, lambda record: None])
    np.testing.assert_array_equal(found.scores_, fit(planted()).scores_)
    assert [record.epoch for record in records] == list(range(1, 11))
    first = np.nan_to_num(planted().to_numpy())
    graphs = [affinity(torch.from_numpy(each.copy()), None, 0.5).numpy() for each in (first, first.T)]
    covariance = np.kron(*graphs)
    values = np.linalg.solve(covariance + np.eye(first.size), first.ravel())  # (A + sigma)^-1 vec(R)
    smooth = covariance @ values
    assert records[0].fit == pytest.approx(((smooth - first.ravel()) ** 2).sum())
    assert records[0].objective == pytest.approx(records[0].fit + smooth @ values)


def test_a_callback_ends_the_rounds_also_of_later_answers_and_in_files(tmp_path: Path) -> None:
    stopped = fit(planted(), callbacks=[lambda record: record.epoch == 3])
    few = DrugTargetAIR(n_rounds=3).fit(planted())
    again = DrugTargetAIR.load(stopped.save(tmp_path / "stopped.air"))
    for each in (stopped, again):
        np.testing.assert_array_equal(each.scores_, few.scores_)
        np.testing.assert_array_equal(each.open_scores_, few.open_scores_)
        assert (each.n_rounds_, each.n_rounds) == (3, 10)
    with pytest.raises(ZeroDivisionError):
        stopped.fit(WIDE, callbacks=[lambda record: bool(1 / 0)])
    np.testing.assert_array_equal(stopped.scores_, few.scores_)
    with pytest.raises(ParameterError, match="callbacks must be"):
        fit(WIDE, callbacks=[3])


# -------------------------------------------------------------------- memory


class Peak(TorchDispatchMode):
    """The largest number of bytes that live tensors and arrays of NumPy hold at once."""

    def __init__(self) -> None:
        super().__init__()
        self.live, self.peak = {}, 0

    def note(self) -> None:
        self.peak = max(self.peak, sum(self.live.values()) + tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.note()
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else [result]:
            if isinstance(value, torch.Tensor) and value.untyped_storage()._cdata not in self.live:
                storage = value.untyped_storage()
                self.live[storage._cdata] = storage.nbytes()
                weakref.finalize(storage, self._gone, storage._cdata)
        self.note()
        return result

    def _gone(self, key: int) -> None:
        self.note()
        del self.live[key]


@pytest.mark.parametrize("shape", [(500, 20), (120, 240), (200, 200)])
@pytest.mark.parametrize("form", ["pairs alone", "similarities", "new drugs"])
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_the_plan_is_at_least_the_peak_and_at_most_one_and_a_half_of_it(
    shape: tuple[int, int], form: str, missing: float
) -> None:
    rng = np.random.default_rng(0)
    values = (rng.random(shape) < 0.1).astype(float)
    values[rng.random(shape) < missing] = np.nan
    values[:, 0] = values[0] = 1
    if form == "new drugs":
        values[-9:] = np.nan
    data = Interactions.from_dense(values, range(shape[0]), range(shape[1]))
    given = [None if form == "pairs alone" else np.eye(n) for n in shape]
    model = DrugTargetAIR(n_rounds=3)
    with Peak():
        fit(WIDE, SIMILARITY)  # what is imported on first use
    tracemalloc.start()
    try:
        with Peak() as found:
            model.fit(data, *given)
            found.note()
    finally:
        tracemalloc.stop()
    of_lapack = 3 * 8 * max(shape) ** 2  # which nobody counts
    assert found.peak <= model.memory_plan(data, *given).total <= 1.5 * (found.peak + of_lapack)


def test_a_fit_that_needs_more_than_it_may_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    model = DrugTargetAIR(max_memory="1GB").fit(WIDE)
    scores = model.scores_
    with pytest.raises(MemoryLimitError, match=r"max_memory allows 1.0 kB; complete fewer drugs or fewer targets"):
        model.set_params(max_memory=1000).fit(planted())
    with pytest.raises(ParameterError, match="max_memory must be a number of bytes"):
        model.set_params(max_memory="much").fit(planted())
    np.testing.assert_array_equal(model.scores_, scores)


def test_large_tables_are_completed_in_32_bits_and_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "_DOUBLE", 10)
    model = fit(planted())
    again = DrugTargetAIR.load(model.save(tmp_path / "half.air"))
    assert again.scores_.dtype == model.scores_.dtype == np.float32
    np.testing.assert_array_equal(again.open_scores_, model.open_scores_)


# -------------------------------------------------------------------- new and forgotten rows


def test_what_is_forgotten_leaves_model_and_file_as_if_it_had_never_been(tmp_path: Path) -> None:
    table = planted()
    sides = alike(table.index), alike(table.columns)
    model = fit(table, *sides)
    assert model.forget(users="d3", items=["t5"], pairs=[("d0", "t0")]) is model
    rest = table.drop(index="d3", columns="t5")
    rest.loc["d0", "t0"] = np.nan
    expected = fit(rest, sides[0].loc[rest.index, rest.index], sides[1].loc[rest.columns, rest.columns])
    for each in (model, DrugTargetAIR.load(model.save(tmp_path / "rest.air"))):
        np.testing.assert_array_equal(each.scores_, expected.scores_)
        pd.testing.assert_frame_equal(each.new_interactions(1000), expected.new_interactions(1000))
        assert "d3" not in each.drugs_.ids
        assert "t5" not in each.targets_.ids
    with pytest.raises(UnknownIdError):
        model.forget(users="d3")
    with pytest.raises(DataError, match="found none"):
        model.forget()
    np.testing.assert_array_equal(model.scores_, expected.scores_)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("uncertainty", "return_std=True"),
        ("feature_effects", "no effects of features"),
    ],
)
def test_what_it_does_not_answer_is_an_error_with_the_way_out(name: str, way: str) -> None:
    with pytest.raises(UnansweredError) as raised:
        getattr(fit(WIDE), name)(WIDE)
    assert way in str(raised.value)
    assert not hasattr(DrugTargetAIR(), name)


class Suite(ContractTests):
    """The shipped suite; its other tests are of unknown ids with means, and of histories."""

    def make(self) -> DrugTargetAIR:
        return DrugTargetAIR()

    def data(self, seed: int = 0) -> pd.DataFrame:
        table = super().data(seed)
        return table.assign(rating=(table["rating"] > 3).astype(float))


def test_no_question_of_the_suite_fails_with_another_error() -> None:
    Suite().test_what_a_model_cannot_answer_is_an_error_that_says_so()
