"""Error on hidden affinities of drugs and targets: `AIR` with what describes them beside regressions on the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, ndtr

from air_recsys.data.described.sides import Described
from air_recsys.data.interactions import Interactions
from air_recsys.datasets import DrugTargetData, load_davis
from air_recsys.evaluation.drug_targets import affinity_measures
from air_recsys.evaluation.experiment import Task, Trial, process_place, trials
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.rating_errors import interval_figures
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.system import System
from air_recsys.models import AIR
from air_recsys.storage.validation import check_choice
from benchmarks.accuracy.experiments import experiment, published_rows
from benchmarks.accuracy.peers.regressions import BoostedPairs, KronRLS
from benchmarks.accuracy.ratings import chosen_systems

_TEXTS = experiment("affinities")
SETTINGS: dict[str, str] = _TEXTS["hidden"]
SEEDS: int = _TEXTS["seeds"]
_HIDDEN = 5
NO_BINDING = 5.0  # pKd of a Kd of 10 uM, the highest concentration that was tried
_NEW, _MEASURED = 10, (0, 5, 20)


class Similarities(NamedTuple):
    """How alike drugs and targets are: what `AIR` is given, and tables, symmetric, indexed by id, for its peers."""

    drugs: dict[str, Any]
    targets: dict[str, Any]
    tables: tuple[pd.DataFrame, pd.DataFrame]
    of_set: tuple[pd.DataFrame, pd.DataFrame]  # of the published set, with alignments

    @classmethod
    def of(cls, data: DrugTargetData) -> Self:
        """Structures and sequences where the set has them, with equal shares for the peers; else its tables."""
        drugs, targets = data.drug_similarity, data.target_similarity
        assert targets is not None
        if data.smiles is None or data.sequences is None:
            return cls({"own": drugs}, {"own": targets}, (drugs, targets), (drugs, targets))
        given: tuple[dict[str, Any], ...] = {"smiles": data.smiles}, {"sequences": data.sequences}
        ids = data.interactions.user_ids, data.interactions.item_ids
        alike = [Described.of("row", own, rows).similarity() for own, rows in zip(given, ids, strict=True)]
        tables = [pd.DataFrame(each, rows, rows) for each, rows in zip(alike, ids, strict=True)]
        return cls(given[0], given[1], (tables[0], tables[1]), (drugs, targets))


def affinity_folds(data: DrugTargetData, setting: str, *, validation: bool = False) -> list[Fold]:
    """The folds of a setting; with `validation` those of the training part of the fixed split alone."""
    check_choice("setting", setting, list(SETTINGS))
    whole, shown = data.interactions, np.concatenate(data.train_folds)
    if setting == "pairs":
        if validation:
            first, *others = data.train_folds
            return [Fold("validation", whole.select(np.concatenate(others)), whole.select(first))]
        return [Fold("test", whole.select(shown), whole.select(data.test_fold))]
    part = whole.select(shown) if validation else whole
    return [_hidden(part, setting, seed + SEEDS * validation) for seed in range(SEEDS)]


def _hidden(data: Interactions, setting: str, seed: int) -> Fold:
    """Hide a fifth of the drugs, of the targets, or of both; of both the pairs with one hidden side are not used."""
    rng = np.random.default_rng(seed)
    drugs, targets = (rng.permutation(n) < n // _HIDDEN for n in (data.n_users, data.n_items))
    by_drug, by_target = drugs[data.user_index], targets[data.item_index]
    if setting == "both":
        return Fold(f"seed {seed}", data.select(~by_drug & ~by_target), data.select(by_drug & by_target))
    hidden = by_drug if setting == "drugs" else by_target
    return Fold(f"seed {seed}", data.select(~hidden), data.select(hidden))


def affinity_systems(
    alike: Similarities, seed: int = 0, preset: str = "ratings", settings: Mapping[str, Any] | None = None
) -> dict[str, System]:
    """The systems by name; `preset` and `settings` are those of AIR."""
    train, own = partial(_train_air, preset), dict(settings or {})
    described = alike.drugs, alike.targets
    trains = {
        "AIR": partial(train, own, described, seed),
        "AIR by the tables of the set": partial(train, own, alike.of_set, seed),
        "AIR with limits": partial(_of_limits, partial(train, own, described, seed)),
        "AIR langevin": partial(train, own | {"solver": "langevin"}, described, seed),
        "AIR without similarities": partial(train, own, (None, None), seed),
        "gradient boosting": BoostedPairs(*alike.tables, seed).fit,
        "KronRLS": KronRLS(*alike.tables).fit,
        "KronRLS by the tables of the set": KronRLS(*alike.of_set).fit,
    }
    return {name: System(train, "") for name, train in trains.items()}


def _train_air(
    preset: str, parameters: dict[str, Any], alike: tuple[Any, Any], seed: int, shown: Any, **how: Any
) -> AIR:
    drugs, targets = alike
    model = AIR.of_preset(preset, **{"random_state": seed, "device": "cpu"} | parameters)
    return model.fit(shown, user_similarity=drugs, item_similarity=targets, **how)


def _of_limits(train: Callable[[Interactions], AIR], shown: Interactions) -> AIR:
    return train(with_limits(shown))


def with_limits(data: Interactions) -> Interactions:
    """The affinities with `NO_BINDING`, the end of the range of the assay, as what they are below."""
    relations = np.where(data.ratings <= NO_BINDING, -1, 0)
    pairs = data.user_index, data.item_index
    known = Interactions(*pairs, data.ratings, data.users, data.items, relations=relations)
    known.user_features, known.item_features = data.user_features, data.item_features
    return known


def recorded(predicted: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """What an assay is expected to record: `NO_BINDING` for all that lies below."""
    apart = (predicted - NO_BINDING) / deviation
    return NO_BINDING + deviation * (np.exp(-np.square(apart) / 2) / np.sqrt(2 * np.pi) + apart * ndtr(apart))


def limit_figures(
    truth: np.ndarray, predicted: np.ndarray, deviation: np.ndarray, relations: np.ndarray
) -> dict[str, float]:
    """The mean log likelihood of values and limits, and what intervals and predictions hold of either."""
    apart, measured = (predicted - truth) / deviation, relations == 0
    density = -np.square(apart) / 2 - np.log(deviation) - np.log(2 * np.pi) / 2
    return {
        "log likelihood": float(np.where(measured, density, log_ndtr(relations * apart)).mean()),
        "inside 90 %, measured": interval_figures(*(each[measured] for each in (truth, predicted, deviation)))[
            "inside 90 %"
        ],
        "limits below 5": float(((relations * apart)[~measured] > 0).mean()),
    }


def affinities(
    root: Path,
    seed: int,
    threads: int,
    case: str,
    *,
    systems: list[str],
    validation: bool,
    preset: str,
    settings: dict[str, Any],
) -> list[ResultTable]:
    """The table of a setting of what is hidden, see `bench_affinities`."""
    if case == "new":
        return [bench_new_drugs(load_davis(root), SEEDS)]
    how: dict[str, Any] = {"preset": preset, "settings": settings, "seed": seed, "threads": threads}
    return [bench_affinities(load_davis(root), case, systems, validation=validation, **how)]


def bench_affinities(
    data: DrugTargetData,
    setting: str,
    names: list[str],
    *,
    validation: bool = False,
    preset: str = "ratings",
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    threads: int = 1,
) -> ResultTable:
    """Train every system on every fold of a setting, each in a sealed process, one after the other.

    Returns
    -------
    ResultTable
        A row a system: means over the folds of MSE, concordance index, r_m^2, share of the affinities inside of 90 %
        intervals, `limit_figures` with a pKd of 5 as a limit, and seconds of a training. Errors of "AIR
        with limits" are those of what an assay is expected to record. Then a row a published figure.
    """
    systems = chosen_systems(affinity_systems(Similarities.of(data), seed, preset, settings), names)
    tasks = [Task.of_ratings(fold).sealed() for fold in affinity_folds(data, setting, validation=validation)]
    found = trials(systems, tasks, place=process_place(threads), each_apart=True, title=f"affinities {setting}")
    rows: list[dict[str, Any]] = []
    for name, of_system in groupby(found, lambda trial: trial.system):
        figures = [affinity_figures(trial) for trial in of_system]
        rows.append({"system": name} | {each: fmean(one[each] for one in figures) for each in figures[0]})
    if not validation:
        rows += published_rows("affinities", f"davis-{setting}")
    tested = sum(task.fold.test.n_ratings for task in tasks)
    part = ", within the training part" if validation else ""
    protocol = (
        f"Davis, pKd of 68 drugs and 442 targets; {SETTINGS[setting]}{part}; {len(tasks)} fold(s), {tested} pairs "
        f"tested; structures and sequences; seed {seed}, CPU, {threads} thread(s), a process a "
        "training; strengths and settings chosen on parts of the training data"
    )
    return ResultTable(f"Affinities of Davis, {setting} hidden", protocol, rows, [])


def bench_new_drugs(data: DrugTargetData, n_draws: int) -> ResultTable:
    """Ten hidden drugs by structure and 0, 5 or 20 measurements: `fold_in` beside a fit that knew the same.

    Returns
    -------
    ResultTable
        A row a number of measurements and a way: means over draws of MSE, concordance index, r_m^2 and share inside
        of 90 % intervals, of the affinities that are not shown.
    """
    alike, whole = Similarities.of(data), data.interactions
    found: dict[tuple[int, str], list[dict[str, float]]] = {}
    for seed in range(n_draws):
        new = np.random.default_rng(100 + seed).permutation(whole.n_users)[:_NEW]
        hidden, ids = np.isin(whole.user_index, new), whole.user_ids[new]
        shown, rest = whole.select(~hidden).to_frame(), whole.select(hidden).to_frame()
        rest = rest.sample(frac=1, random_state=seed)
        known = np.setdiff1d(whole.user_ids, ids)
        before = {name: _among(each, known, known) for name, each in alike.drugs.items()}
        later = {name: _among(each, ids, known) for name, each in alike.drugs.items()}
        how = {"rating_scale": (float(whole.ratings.min()), float(whole.ratings.max()))}
        model = _train_air("ratings", {}, (before, alike.targets), seed, shown, **how)
        for number in _MEASURED:
            own = rest.groupby("user").head(number)
            test = rest.drop(own.index)
            again = pd.concat([shown, own])
            for way, fitted in (
                ("fold_in", model.fold_in(own if number else None, similarity=later)),
                ("fit of all", _train_air("ratings", {}, (alike.drugs, alike.targets), seed, again, **how)),
            ):
                answers = fitted.predict(test["user"], test["item"], return_std=True)
                found.setdefault((number, way), []).append(affinity_measures(test["rating"].to_numpy(), *answers))
    rows: list[dict[str, Any]] = [
        {"measurements": number, "system": way} | {each: fmean(one[each] for one in figures) for each in figures[0]}
        for (number, way), figures in found.items()
    ]
    protocol = f"Davis; {_NEW} drugs hidden, {n_draws} draws; by structure and so many random measurements of each"
    return ResultTable("Affinities of new drugs of Davis", protocol, rows, [])


def _among(content: Any, ids: np.ndarray, columns: np.ndarray) -> Any:
    return content.loc[ids, columns] if isinstance(content, pd.DataFrame) else content.loc[ids]


def affinity_figures(trial: Trial) -> dict[str, float]:
    """The errors of a system on a fold, and the times of its training."""
    truth, predicted, deviation = trial.task.fold.test.ratings, trial.answer.predicted, trial.answer.deviation
    of_limits: dict[str, float] = {}
    if deviation is not None and (truth <= NO_BINDING).any():
        of_limits = limit_figures(truth, predicted, deviation, np.where(truth <= NO_BINDING, -1, 0))
        if trial.system == "AIR with limits":
            predicted, deviation = recorded(predicted, deviation), None
    figures = affinity_measures(truth, predicted, deviation) | of_limits
    return figures | {"seconds": trial.costs.seconds, "cpu_seconds": trial.costs.cpu_seconds}
