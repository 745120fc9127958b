"""Accuracy for hidden pairs of drugs and targets: the four settings of what is hidden, and the systems beside."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self, Unpack

import numpy as np
import pandas as pd

from air_recsys.data.described.sides import Described, Given
from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import Split, as_random_state, split_off
from air_recsys.data.splits.kinds import scaffolds, similarity_clusters
from air_recsys.evaluation.enrichment import enrichment
from air_recsys.evaluation.experiment import Question, Task, Trial, rated_pairs, trials
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.system import System
from air_recsys.exceptions import DataError, DataWarning
from air_recsys.metrics import aupr, auroc, average_precision, bedroc, calibration_error
from air_recsys.models.drug_target.model import DrugTargetAIR
from air_recsys.models.drug_target.pairs import as_pairs, with_zeros
from air_recsys.models.drug_target.similarities import Same, by_sides
from air_recsys.storage.validation import RandomState, check_choice, check_integer

SETTINGS = ("cvs1", "cvs2", "cvs3", "cvs4")
_BLOCK_FOLDS = 3
_COUNTS = "counts of interactions"
_PROFILES = "interaction profiles (GIP)"


def interaction_folds(
    interactions: Interactions,
    setting: str = "cvs1",
    n_splits: int = 10,
    random_state: RandomState = 0,
    *,
    drug_groups: Mapping[Any, Any] | pd.Series | None = None,
    target_groups: Mapping[Any, Any] | pd.Series | None = None,
) -> Iterator[Split]:
    """Yield splits that hide a fold of the pairs (cvs1), drugs (cvs2), targets (cvs3), or of both (cvs4).

    Drugs are the users. The folds are those of Liu et al., 2016, and of their program PyDTI with the same int seed:
    equal steps through one permutation, the last fold takes the rest.

    Parameters
    ----------
    interactions : Interactions
        Recorded pairs, zeros included, sorted by drug and then target.
    setting : {"cvs1", "cvs2", "cvs3", "cvs4"}
        In "cvs4" the test pairs are those of a hidden drug with a hidden target; pairs of one of them are in neither
        part. A block without interactions is left out, as no measure is defined on it.
    n_splits : int
        Number of folds. In "cvs4" drugs and targets always have three folds each, as in Pahikkala et al., 2015: ten by
        ten would leave most blocks without interactions.
    random_state : int, RandomState, Generator or None
    drug_groups, target_groups : mapping or Series, optional
        The group of each drug or target: hidden ones are whole groups, such as of `scaffolds` and
        `similarity_clusters`. Those without a group are one each.

    Raises
    ------
    ParameterError
        For an unknown setting, or fewer than two folds.
    DataError
        If pairs are out of order, if no zero is recorded, or if there is less than one drug, target or pair per fold.

    Examples
    --------
    >>> data = Interactions.from_dense([[1, 0], [0, 1]])
    >>> [split.test.tolist() for split in interaction_folds(data, "cvs2", n_splits=2)]
    [[False, False, True, True], [True, True, False, False]]
    """
    check_choice("setting", setting, SETTINGS)
    check_integer("n_splits", n_splits, minimum=2)
    m, n, size = interactions.n_users, interactions.n_items, interactions.n_ratings
    if (np.diff(interactions.pair_index) <= 0).any():
        raise DataError("expected pairs sorted by drug and target, found another order")
    if interactions.ratings.all():
        raise DataError(f"expected recorded zeros beside the interactions, found none among {size} pairs")
    rng = as_random_state(random_state)
    drug, target = interactions.user_index, interactions.item_index
    m, drug = _in_groups(interactions.user_ids, drug, drug_groups)
    n, target = _in_groups(interactions.item_ids, target, target_groups)
    if setting == "cvs4":
        return _blocks(interactions, _fold_of(m, _BLOCK_FOLDS, rng)[drug], _fold_of(n, _BLOCK_FOLDS, rng)[target])
    size, position = {"cvs1": (size, np.arange(size)), "cvs2": (m, drug), "cvs3": (n, target)}[setting]
    fold = _fold_of(size, n_splits, rng)[position]
    return (split_off(fold == number) for number in range(n_splits))


def _in_groups(ids: np.ndarray, places: np.ndarray, groups: Any) -> tuple[int, np.ndarray]:
    """Return the number of groups of a side, and that of each pair; without groups each id is one."""
    if groups is None:
        return len(ids), places
    given = dict(groups)
    names = [("group", str(given[own])) if own in given else ("alone", str(own)) for own in ids.tolist()]
    numbers = pd.factorize(pd.MultiIndex.from_tuples(names))[0]
    return int(numbers.max()) + 1, numbers[places]


def _fold_of(size: int, n_splits: int, rng: np.random.RandomState) -> np.ndarray:
    if size < n_splits:
        raise DataError(f"expected at least one drug, target or pair a fold, found {size} for {n_splits} folds")
    order = rng.permutation(size)
    fold = np.empty(size, dtype=np.int64)
    fold[order] = np.minimum(np.arange(size) // (size // n_splits), n_splits - 1)
    return fold


def _blocks(interactions: Interactions, drug_fold: np.ndarray, target_fold: np.ndarray) -> Iterator[Split]:
    for row, column in itertools.product(range(_BLOCK_FOLDS), repeat=2):
        test = (drug_fold == row) & (target_fold == column)
        train = (drug_fold != row) & (target_fold != column)
        if interactions.ratings[test].any() and interactions.ratings[train].any():
            yield Split(train, test)


_OF_DRUGS, _OF_TARGETS = ("cvs2", "cvs4"), ("cvs3", "cvs4")


def evaluate_pairs(
    model: DrugTargetAIR,
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
    model : DrugTargetAIR
        Its parameters are used; the model does not change.
    interactions, drug_similarity, target_similarity
        As for `DrugTargetAIR.fit`. If only interactions are recorded, all other pairs are zeros. Ids that are only in
        a similarity are left out.
    setting : {"cvs1", "cvs2", "cvs3", "cvs4"}
        What a fold hides: pairs, drugs, targets, or both; see `interaction_folds`.
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
        model's probabilities of all folds together.

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
    data = with_zeros(as_pairs(interactions, (drug, target)))
    given: dict[str, Any] = {"drug_similarity": drug_similarity, "target_similarity": target_similarity} | same
    drugs, targets = by_sides(drug_similarity, target_similarity, same)
    groups = {"drug_groups": drug_groups, "target_groups": target_groups}
    splits = list(interaction_folds(data, setting, n_splits, random_state, **groups))
    for kind, hides, similarity in ((drug, _OF_DRUGS, drugs), (target, _OF_TARGETS, targets)):
        if setting in hides and not similarity:
            raise DataError(f"setting {setting!r} hides whole {kind}s: expected similarities of {kind}s, found none")
    copy.deepcopy(model).fit(data, **given)  # its errors and warnings, once
    tasks = [pair_task(shown, hidden, probabilities=True) for shown, hidden in _measurable(data, splits)]
    systems = {type(model).__name__: pair_system(model, **given)}
    if setting == "cvs1":
        systems[_PROFILES] = pair_system(DrugTargetAIR(unobserved_weight=1, regression_weight=0, n_rounds=1))
    systems[_COUNTS] = System(_PairCounts().fit, "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        found = list(trials(systems, tasks, progress=False))
    rows = [_row(name, [trial for trial in found if trial.system == name]) for name in systems]
    truth = np.concatenate([task.fold.test.ratings for task in tasks])
    probability = np.concatenate([trial.answer[1] for trial in found[: len(tasks)]])
    rows[0]["calibration_error"] = calibration_error(truth, probability)
    return pd.DataFrame(rows)


def evaluate_splits(
    model: DrugTargetAIR,
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
        As for `evaluate_pairs`; whole drugs and targets are hidden where they are described.
    drug_groups, target_groups : mapping or Series, optional
        Groups that are hidden whole, in as many folds at most. By default `scaffolds` where structures are given, and
        `similarity_clusters` of all else.

    Returns
    -------
    DataFrame
        With the column hidden before the others: pairs, drugs, groups of drugs, targets, groups of targets, and drugs
        and targets.

    Examples
    --------
    >>> values = np.kron(np.eye(3), np.ones((6, 5)))
    >>> alike = np.kron(np.eye(3), np.full((6, 6), 0.4)) + 0.6 * np.eye(18)
    >>> table = pd.DataFrame(values)
    >>> found = evaluate_splits(DrugTargetAIR(), table, pd.DataFrame(alike), n_splits=3)
    >>> found["hidden"].unique().tolist()
    ['pairs', 'drugs', 'groups of drugs']
    """
    data = as_pairs(interactions, (drug, target))
    drugs, targets = by_sides(drug_similarity, target_similarity, same)
    asked: dict[str, tuple[str, dict[str, Any]]] = {"pairs": ("cvs1", {})}
    for word, setting, side, kinds, ids, own in (
        (drug, "cvs2", "drug_groups", drugs, data.user_ids, drug_groups),
        (target, "cvs3", "target_groups", targets, data.item_ids, target_groups),
    ):
        groups = _groups_of(side.removesuffix("_groups"), kinds, ids) if own is None else own
        size = _in_groups(ids, np.arange(len(ids)), groups)[0]
        if kinds:
            asked[f"{word}s"] = setting, {}
        if kinds and groups is not None and size > 1:
            asked[f"groups of {word}s"] = setting, {side: groups, "n_splits": min(n_splits, size)}
    if drugs and targets:
        asked[f"{drug}s and {target}s"] = "cvs4", {}
    how: dict[str, Any] = {"n_splits": n_splits, "random_state": random_state, "drug": drug, "target": target}
    how |= {"drug_similarity": drug_similarity, "target_similarity": target_similarity} | same
    found = []
    for hidden, (setting, groups) in asked.items():
        rows = evaluate_pairs(model, data, setting=setting, **(how | groups))
        rows.insert(0, "hidden", hidden)
        found.append(rows)
    return pd.concat(found, ignore_index=True)


def _groups_of(side: str, given: Given, ids: np.ndarray) -> pd.Series | None:
    """Return the groups of a side by what it is described by."""
    if "smiles" in given:
        return scaffolds(given["smiles"])
    return similarity_clusters(pd.DataFrame(Described.of(side, given, ids).similarity(), ids)) if given else None


def pair_task(shown: Interactions, hidden: Interactions, *, probabilities: bool = False) -> Task:
    """Scores of hidden pairs that are asked for, and the probabilities of a `DrugTargetAIR`."""
    ask = _ask_probabilities if probabilities else _ask_scores
    return Task(Fold("", shown, hidden), Question(rated_pairs(hidden)), ask=ask)


def pair_system(model: DrugTargetAIR, *similarities: Any, **described: Any) -> System:
    """A `DrugTargetAIR` that gets similarities beside the pairs; a copy is trained."""
    return System(partial(_fit_pairs, model, similarities, described), "")


def _fit_pairs(
    model: DrugTargetAIR, similarities: tuple[Any, ...], described: dict[str, Any], shown: Interactions
) -> DrugTargetAIR:
    return copy.deepcopy(model).fit(shown, *similarities, **described)


def _ask_scores(model: Any, shown: Interactions, question: Question) -> tuple[np.ndarray, None]:
    assert question.pairs is not None
    return model.predict(*question.pairs), None


def _ask_probabilities(model: Any, shown: Interactions, question: Question) -> tuple[np.ndarray, np.ndarray | None]:
    scores, _ = _ask_scores(model, shown, question)
    return scores, model.calibration_.of_scores(scores) if isinstance(model, DrugTargetAIR) else None


def _measurable(data: Interactions, splits: Sequence[Split]) -> list[tuple[Interactions, Interactions]]:
    """What is shown and what is hidden of the folds for which every measure is defined."""
    parts = [(data.select(split.train), data.select(split.test)) for split in splits]
    found = [part for part in parts if part[0].ratings.any() and 0 < part[1].ratings.mean() < 1]
    if not found:
        raise DataError(f"expected interactions and zeros in some of {len(parts)} folds, found none with both")
    return found


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


def _row(name: str, found: list[Trial]) -> dict[str, Any]:
    table = pd.DataFrame([pair_measures(trial.task.fold.test.ratings, trial.answer[0]) for trial in found])
    spread = float(table["average_precision"].std(ddof=1) / np.sqrt(len(table))) if len(table) > 1 else float("nan")
    return {"system": name, **table.mean().to_dict(), "average_precision_se": spread}
