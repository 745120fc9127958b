"""Accuracy for hidden pairs of drugs and targets, interactions or affinities, and the systems beside."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any, Self, Unpack

import numpy as np
import pandas as pd

from air_recsys.data.affinities import as_affinities
from air_recsys.data.described.sides import ONE, Described, Given
from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import Split
from air_recsys.data.splits.cold import SETTINGS, in_groups, interaction_folds, split_in_time
from air_recsys.data.splits.kinds import scaffolds, similarity_clusters
from air_recsys.evaluation.enrichment import enrichment
from air_recsys.evaluation.experiment import Question, Task, Trial, rated_pairs, trials
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.rating_errors import interval_figures
from air_recsys.evaluation.system import System, train_plainly
from air_recsys.exceptions import DataError, DataWarning
from air_recsys.metrics import (
    aupr,
    auroc,
    average_precision,
    bedroc,
    calibration_error,
    concordance_index,
    modified_r_squared,
    mse,
)
from air_recsys.models import AIR, BiasModel
from air_recsys.models.drug_target.model import DrugTargetAIR
from air_recsys.models.drug_target.pairs import as_pairs, with_zeros
from air_recsys.models.drug_target.similarities import Same, by_sides
from air_recsys.storage.validation import RandomState, check_choice

_COUNTS = "counts of interactions"
_PROFILES = "interaction profiles (GIP)"


_OF_DRUGS, _OF_TARGETS = ("cvs2", "cvs4"), ("cvs3", "cvs4")
_LATER = 0.2  # of the pairs, in the split by year


def evaluate_pairs(
    model: DrugTargetAIR | AIR,
    interactions: Any,
    drug_similarity: Any = None,
    target_similarity: Any = None,
    *,
    setting: str = "cvs1",
    n_splits: int = 10,
    random_state: RandomState = 0,
    drug: str = "drug",
    target: str = "target",
    drug_groups: Mapping[Any, Any] | pd.Series | None = None,
    target_groups: Mapping[Any, Any] | pd.Series | None = None,
    **same: Unpack[Same],
) -> pd.DataFrame:
    """Hide a fold of the recorded pairs at a time and predict it from the others.

    Parameters
    ----------
    model : DrugTargetAIR, or AIR of affinities
        Its parameters are used; the model does not change.
    interactions, drug_similarity, target_similarity
        As for `DrugTargetAIR.fit`. If only interactions are recorded, all other pairs are zeros. Ids that are only in
        a similarity are left out. Of affinities a table of drugs and targets with values, which may have units and
        relations, see `air_recsys.dti.as_p_affinity`; or what `AIR.fit` takes.
    setting : {"cvs1", "cvs2", "cvs3", "cvs4", "year"}
        What a fold hides: pairs, drugs, targets, or both; see `interaction_folds`. "year": the latest fifth of the
        pairs, by a column year, date or timestamp; years are hidden whole. Zeros that are not recorded have none, and
        are divided by chance.
    n_splits : int
    random_state : int, RandomState, Generator or None
    drug, target
        As for `DrugTargetAIR.fit`.
    drug_groups, target_groups : mapping or Series, optional
        Groups that are hidden whole, as in `interaction_folds`.

    Returns
    -------
    DataFrame
        One row per system: the model; if pairs are hidden at random, RLS-Kron on Gaussian interaction profiles, which
        is one round of the model with hidden pairs as zeros; and the product of the counts of interactions of the drug
        and the target, plus 1. Columns: means over the folds of average precision, AUPR, AUROC, the enrichment of
        the first 1 % and BEDROC; average_precision_se, the standard error of the first; and calibration_error, of the
        model's probabilities of all folds together. Of affinities: the model and `BiasModel`; mse, with mse_se, ci
        (concordance index), rm2 and inside 90 %, the share within the model's intervals, of hidden measured values;
        and limits kept, the share of hidden limits on whose known side the prediction is.

    Raises
    ------
    DataError
        As for `DrugTargetAIR.fit` and `interaction_folds`, and if whole drugs or targets are hidden without
        similarities.
    ParameterError

    Examples
    --------
    >>> values = np.kron(np.eye(3), np.ones((6, 5)))
    >>> found = evaluate_pairs(DrugTargetAIR(), pd.DataFrame(values), n_splits=3)
    >>> found["system"].tolist()
    ['DrugTargetAIR', 'interaction profiles (GIP)', 'counts of interactions']
    >>> bool(found.loc[0, "average_precision"] > 0.9)
    True
    """
    kind = _Affinities if isinstance(model, AIR) else _Interacting
    asked = kind(model, interactions, (drug, target), drug_similarity, target_similarity, same)
    groups = {"drug_groups": drug_groups, "target_groups": target_groups}
    return asked.evaluated(setting, n_splits, random_state, groups)


def evaluate_splits(
    model: DrugTargetAIR | AIR,
    interactions: Any,
    drug_similarity: Any = None,
    target_similarity: Any = None,
    *,
    drug_groups: Mapping[Any, Any] | pd.Series | None = None,
    target_groups: Mapping[Any, Any] | pd.Series | None = None,
    n_splits: int = 10,
    random_state: RandomState = 0,
    drug: str = "drug",
    target: str = "target",
    **same: Unpack[Same],
) -> pd.DataFrame:
    """Return `evaluate_pairs` for everything that can be hidden, one under the other: random pairs flatter everyone.

    Parameters
    ----------
    model, interactions, drug_similarity, target_similarity, n_splits, random_state, drug, target
        As for `evaluate_pairs`; whole drugs and targets are hidden where they are described, and later years where a
        column says when.
    drug_groups, target_groups : mapping or Series, optional
        Groups that are hidden whole, in as many folds at most. By default `scaffolds` where structures are given, and
        `similarity_clusters` of all else.

    Returns
    -------
    DataFrame
        With the column hidden before the others: pairs, drugs, groups of drugs, targets, groups of targets, drugs
        and targets, and later pairs.

    Examples
    --------
    >>> values = np.kron(np.eye(3), np.ones((6, 5)))
    >>> alike = np.kron(np.eye(3), np.full((6, 6), 0.4)) + 0.6 * np.eye(18)
    >>> table = pd.DataFrame(values)
    >>> found = evaluate_splits(DrugTargetAIR(), table, pd.DataFrame(alike), n_splits=3)
    >>> found["hidden"].unique().tolist()
    ['pairs', 'drugs', 'groups of drugs']
    """
    kind = _Affinities if isinstance(model, AIR) else _Interacting
    asked = kind(model, interactions, (drug, target), drug_similarity, target_similarity, same)
    settings: dict[str, tuple[str, dict[str, Any]]] = {"pairs": ("cvs1", {})}
    sides = (drug, "cvs2", "drug_groups", drug_groups), (target, "cvs3", "target_groups", target_groups)
    for (word, setting, side, own), kinds, ids in zip(sides, asked.given, asked.ids, strict=True):
        groups = _groups_of(side.removesuffix("_groups"), kinds, ids) if own is None else own
        size = in_groups(ids, np.arange(len(ids)), groups)[0]
        if kinds:
            settings[f"{word}s"] = setting, {}
        if kinds and groups is not None and size > 1:
            settings[f"groups of {word}s"] = setting, {side: groups, "n_splits": min(n_splits, size)}
    if all(asked.given):
        settings[f"{drug}s and {target}s"] = "cvs4", {}
    if asked.times is not None:
        settings["later pairs"] = "year", {}
    found = []
    for hidden, (setting, groups) in settings.items():
        rows = asked.evaluated(setting, groups.pop("n_splits", n_splits), random_state, groups)
        rows.insert(0, "hidden", hidden)
        found.append(rows)
    return pd.concat(found, ignore_index=True)


def _groups_of(side: str, given: Given, ids: np.ndarray) -> pd.Series | None:
    """Return the groups of a side by what it is described by."""
    if "smiles" in given:
        return scaffolds(given["smiles"])
    return similarity_clusters(pd.DataFrame(Described.of(side, given, ids).similarity(), ids)) if given else None


class _Asked:
    """A model and the pairs that it is evaluated on."""

    counts: str  # the measure whose standard error is told

    def __init__(
        self, model: Any, interactions: Any, words: tuple[str, str], drugs: Any, targets: Any, same: Same
    ) -> None:
        self.model, self.words, self.given = model, words, by_sides(drugs, targets, same)
        self.data, self.times = self.read(interactions)
        self.data = self.data.select(np.argsort(self.data.pair_index))
        self.ids = self.data.user_ids, self.data.item_ids
        drugs, targets = (each[ONE] if [*each] == [ONE] else each or None for each in self.given)
        self.described = {"user_similarity": drugs, "item_similarity": targets}

    def read(self, interactions: Any) -> tuple[Interactions, np.ndarray | None]:
        """The pairs, and the time of each, in the order of drugs and targets."""
        raise NotImplementedError

    def folds(self, parts: list[tuple[Interactions, Interactions]]) -> list[Task]:
        """What is asked on the folds for which every measure is defined."""
        raise NotImplementedError

    def systems(self, setting: str) -> dict[str, System]:
        """The systems by name, the model first."""
        raise NotImplementedError

    def measures(self, trial: Trial) -> dict[str, float]:
        """What a system has reached on a fold."""
        raise NotImplementedError

    def whole(self, found: list[Trial]) -> dict[str, float]:
        """What the model has reached on all folds together."""
        return {}

    def evaluated(
        self, setting: str, n_splits: int, random_state: RandomState, groups: Mapping[str, Any]
    ) -> pd.DataFrame:
        """A row a system: means over the folds of a setting."""
        splits = self._splits(setting, n_splits, random_state, groups)
        for word, hides, given in zip(self.words, (_OF_DRUGS, _OF_TARGETS), self.given, strict=True):
            if setting in hides and not given:
                raise DataError(
                    f"setting {setting!r} hides whole {word}s: expected similarities of {word}s, found none"
                )
        self._try()
        tasks = self.folds([(self.data.select(split.train), self.data.select(split.test)) for split in splits])
        systems = self.systems(setting)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            found = list(trials(systems, tasks, progress=False))
        rows = [self._row(name, [trial for trial in found if trial.system == name]) for name in systems]
        rows[0] |= self.whole(found[: len(tasks)])
        return pd.DataFrame(rows)

    @cache  # noqa: B019
    def _try(self) -> None:
        """Train on all pairs for the errors and warnings, which then come once."""
        copy.deepcopy(self.model).fit(self.data, **self.described)

    def _splits(
        self, setting: str, n_splits: int, random_state: RandomState, groups: Mapping[str, Any]
    ) -> Iterable[Split]:
        check_choice("setting", setting, (*SETTINGS, "year"))
        if setting != "year":
            return interaction_folds(self.data, setting, n_splits, random_state, **groups)
        if self.times is None:
            raise DataError("setting 'year' hides later pairs: expected a column year, date or timestamp, found none")
        return [split_in_time(self.times, _LATER, random_state)]

    def _row(self, name: str, found: list[Trial]) -> dict[str, Any]:
        table, first = pd.DataFrame([self.measures(trial) for trial in found]), self.counts
        spread = float(table[first].std(ddof=1) / np.sqrt(len(table))) if len(table) > 1 else float("nan")
        return {"system": name, **table.mean().to_dict(), f"{first}_se": spread}


class _Interacting(_Asked):
    """`DrugTargetAIR` and pairs of 1 and 0."""

    counts = "average_precision"

    def read(self, interactions: Any) -> tuple[Interactions, np.ndarray | None]:
        pairs = as_pairs(interactions, self.words, timed=True)
        data, times = with_zeros(pairs), None
        if pairs.timestamps is not None:
            each = np.full((data.n_users, data.n_items), np.nan)
            each[pairs.user_index, pairs.item_index] = pairs.timestamps
            times = each.ravel()[np.sort(data.pair_index)]
        return data, times

    def folds(self, parts: list[tuple[Interactions, Interactions]]) -> list[Task]:
        found = [part for part in parts if part[0].ratings.any() and 0 < part[1].ratings.mean() < 1]
        if not found:
            raise DataError(f"expected interactions and zeros in some of {len(parts)} folds, found none with both")
        return [pair_task(shown, hidden, probabilities=True) for shown, hidden in found]

    def systems(self, setting: str) -> dict[str, System]:
        systems = {type(self.model).__name__: pair_system(self.model, **self.described)}
        if setting == "cvs1":
            systems[_PROFILES] = pair_system(DrugTargetAIR(unobserved_weight=1, regression_weight=0, n_rounds=1))
        return systems | {_COUNTS: System(_PairCounts().fit, "")}

    def measures(self, trial: Trial) -> dict[str, float]:
        return pair_measures(trial.task.fold.test.ratings, trial.answer[0])

    def whole(self, found: list[Trial]) -> dict[str, float]:
        truth = np.concatenate([trial.task.fold.test.ratings for trial in found])
        probability = np.concatenate([trial.answer[1] for trial in found])
        return {"calibration_error": calibration_error(truth, probability)}


class _Affinities(_Asked):
    """`AIR` and affinities, of which some may be limits."""

    counts = "mse"

    def read(self, interactions: Any) -> tuple[Interactions, np.ndarray | None]:
        data = as_affinities(interactions, self.words)
        order, times = np.argsort(data.pair_index), data.timestamps
        return data, None if times is None else times[order].astype(np.float64)

    def folds(self, parts: list[tuple[Interactions, Interactions]]) -> list[Task]:
        found = [part for part in parts if np.ptp(part[1].ratings[part[1].measured]) > 0]
        if not found:
            raise DataError(f"expected different measured values in some of {len(parts)} folds, found none with any")
        return [Task.of_ratings(Fold("", *part)) for part in found]

    def systems(self, setting: str) -> dict[str, System]:
        own = System(partial(_fit_pairs, self.model, (), self.described), "")
        return {type(self.model).__name__: own, BiasModel.__name__: System(partial(train_plainly, BiasModel, {}), "")}

    def measures(self, trial: Trial) -> dict[str, float]:
        test, (predicted, deviation, _) = trial.task.fold.test, trial.answer
        kept, limits = test.measured, ~test.measured
        deviation = None if deviation is None else deviation[kept]
        figures = affinity_measures(test.ratings[kept], predicted[kept], deviation)
        return figures | ({"limits kept": float((test.misses(predicted)[limits] == 0).mean())} if limits.any() else {})


def affinity_measures(truth: np.ndarray, predicted: np.ndarray, deviation: np.ndarray | None) -> dict[str, float]:
    """Mean squared error, concordance index, r_m^2, and the share inside of 90 % intervals, where a model has some."""
    figures = {"mse": mse(truth, predicted), "ci": concordance_index(truth, predicted)}
    figures["rm2"] = modified_r_squared(truth, predicted) if np.ptp(predicted) > 0 else 0.0
    if deviation is not None:
        figures["inside 90 %"] = interval_figures(truth, predicted, deviation)["inside 90 %"]
    return figures


def pair_task(shown: Interactions, hidden: Interactions, *, probabilities: bool = False) -> Task:
    """Scores of hidden pairs that are asked for, and the probabilities of a `DrugTargetAIR`."""
    ask = _ask_probabilities if probabilities else _ask_scores
    return Task(Fold("", shown, hidden), Question(rated_pairs(hidden)), ask=ask)


def pair_system(model: DrugTargetAIR, *similarities: Any, **described: Any) -> System:
    """A `DrugTargetAIR` that gets similarities beside the pairs; a copy is trained."""
    return System(partial(_fit_pairs, model, similarities, described), "")


def _fit_pairs(model: Any, similarities: tuple[Any, ...], described: dict[str, Any], shown: Interactions) -> Any:
    return copy.deepcopy(model).fit(shown, *similarities, **described)


def _ask_scores(model: Any, shown: Interactions, question: Question) -> tuple[np.ndarray, None]:
    assert question.pairs is not None
    return model.predict(*question.pairs), None


def _ask_probabilities(model: Any, shown: Interactions, question: Question) -> tuple[np.ndarray, np.ndarray | None]:
    scores, _ = _ask_scores(model, shown, question)
    return scores, model.calibration_.of_scores(scores) if isinstance(model, DrugTargetAIR) else None


class _PairCounts:
    """The product of the counts of interactions of both sides, plus 1, as the score of a pair."""

    def fit(self, shown: Interactions) -> Self:
        values = np.nan_to_num(shown.to_dense())
        self._sides = shown.users, shown.items
        self._counts = values.sum(axis=1) + 1, values.sum(axis=0) + 1
        return self

    def predict(self, *ids: Any) -> np.ndarray:
        drugs, targets = (
            counts[side.lookup(of_side)] for counts, side, of_side in zip(self._counts, self._sides, ids, strict=True)
        )
        return drugs * targets


def pair_measures(truth: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Average precision, AUPR, AUROC, the enrichment of the first 1 % and BEDROC of scored pairs."""
    return {
        "average_precision": average_precision(truth, scores),
        "aupr": aupr(truth, scores),
        "auroc": auroc(truth, scores),
        "enrichment_1%": enrichment(truth, scores, 0.01),
        "bedroc": bedroc(truth, scores),
    }
