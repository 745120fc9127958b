"""`DrugTargetAIR`: prediction of new drug-target interactions, with or without similarities."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, Unpack, overload

import numpy as np
import pandas as pd

from air_recsys.data.described.sides import Described, Given, argument, ids_of
from air_recsys.data.ids import IdIndex
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, DataWarning, NotFittedError, ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.deviations import HIGHEST_LEVEL
from air_recsys.models.drug_target import files
from air_recsys.models.drug_target.answers import Answers, Calibration, OfNewRows
from air_recsys.models.drug_target.common import CommonQuestions, pairs_of, places_of
from air_recsys.models.drug_target.course import Rounds, planned, precision_of
from air_recsys.models.drug_target.explanation import PairExplanation, explained
from air_recsys.models.drug_target.pairs import (
    as_pairs,
    called,
    check_new,
    checked_words,
    columns_of,
    names_by_id,
    new_alone,
    with_ids,
    without_evidence,
)
from air_recsys.models.drug_target.similarities import (
    Pair,
    Same,
    Similarities,
    adjacency_of,
    by_sides,
    check_sides,
    known_sides,
    learned_shares,
)
from air_recsys.models.drug_target.whole import (
    SimilarScores,
    Strengths,
    base_rates,
    chosen_regression,
    chosen_weight,
    complete_all,
    lifted,
    mixed,
    regress,
    score_parts,
)
from air_recsys.models.engines.protocol import check_limit
from air_recsys.models.forgetting import left_of
from air_recsys.models.partial_fit import merge
from air_recsys.models.ranking.ties import best_of
from air_recsys.models.state import lock_of
from air_recsys.models.storage.contents import check_kept
from air_recsys.models.storage.files import Contents, class_of, read_contents
from air_recsys.nn.devices import device_or_cpu, resolve_device
from air_recsys.nn.memory import MemoryPlan
from air_recsys.storage.lazy import is_installed
from air_recsys.storage.pickled import Pickled
from air_recsys.storage.progress import progress_bar
from air_recsys.storage.validation import check_choice, check_integer, check_parameters, check_real, integer, real
from air_recsys.training import Callback, check_callbacks

_SIDES = ("drug", "target")
_AXES = {"user": 0, "drug": 0, "item": 1, "target": 1}


@dataclass(eq=False, repr=False)
class DrugTargetAIR(CommonQuestions, Pickled):
    """Completion of a drug-target matrix with learned graphs of the drugs and of the targets.

    Completion and graphs are computed in turn, each exactly: see `air_recsys.models.drug_target.completion`.
    Similarities of structures or sequences are a prior of the graphs. Drugs and targets without any known interaction,
    but with a similarity, are not part of the completion. They are predicted from their neighbours afterwards: see
    `air_recsys.models.drug_target.completion`. There is no random start, so the same data give the same model.

    Parameters
    ----------
    similarity_weight : float or "auto"
        Share of a given similarity in the graph of its side, in [0, 1]. "auto" chooses the share that ranks hidden
        recorded pairs best, see `air_recsys.models.drug_target.whole`. It is safer if similarities may be
        meaningless, and 25 times slower.
    noise : float, optional
        sigma > 0. A larger value gives recorded values less weight against the graphs. None is 0.5 if a similarity is
        given, else 1.
    regression_weight : float or "auto"
        Share g of a ridge regression of targets on each other, and of drugs, in the scores, in [0, 1]: see
        `air_recsys.models.drug_target.whole`. "auto" chooses it on recorded pairs that are hidden.
    unobserved_weight : float or "auto"
        Weight of the value 0 for a pair that the data do not contain, in [0, 1]: 0 treats it as missing, 1 as no
        interaction. "auto" is 0 if zeros are recorded, and 1 if all recorded pairs interact.
    known_share : float or "auto"
        Share of the true interactions that is recorded, in (0, 1]: what is left is among the zeros. It is an
        assumption that the table alone cannot settle, so state it where the field knows it. "auto" is a guess of at
        least 0.8, see `air_recsys.models.drug_target.answers`.
    n_rounds : int
        Rounds of completion and graphs.
    device : str
        Device of the rounds: "cpu", "cuda" (an error without a GPU) or "auto".
    max_memory : int or str, optional
        Maximum memory of `fit`, in bytes or as text such as "8GB"; one that needs more is an error before any work.
        None: the memory of the device. See `memory_plan`.

    Attributes
    ----------
    similarity_weight_, unobserved_weight_, regression_weight_ : float
        The values that were used.
    n_rounds_ : int
        `n_rounds`, or where a callback stopped.
    scores_ : ndarray, shape (n_drugs, n_targets)
        About 1 for pairs that interact, and about 0 for pairs that do not. Scores of recorded pairs are close to their
        record.
    open_scores_ : ndarray, shape (n_drugs, n_targets)
        The same, with every recorded 0 scored as if it were missing; `new_interactions` ranks by these.
    calibration_ : Calibration
        Map from scores to probabilities, from hidden recorded pairs: see `air_recsys.models.drug_target.answers`.
    drug_graph_, target_graph_ : SimilarityGraph
        The graphs that a further round would use, over the completed profiles of all drugs and targets. With more than
        4096 drugs or targets, an edge is kept if it is among the 100 strongest of one of its ends.
    similarities_ : tuple
        Similarities of drugs and of targets given to `fit`, in the order of `drugs_` and `targets_`; None if not
        given.
    drugs_, targets_ : IdIndex
    words_ : tuple of str
        What rows and columns are called.
    names_ : dict
        What people call drugs and targets.
    interactions_ : Interactions

    Examples
    --------
    >>> values = np.kron(np.eye(2), np.ones((3, 3)))  # two groups
    >>> values[0, 0] = np.nan
    >>> model = DrugTargetAIR().fit(pd.DataFrame(values, list("abcdef"), list("uvwxyz")))
    >>> model.new_interactions(1)[["drug", "target", "known"]].values.tolist()
    [['a', 'u', False]]
    >>> sorted(model.drug_graph_.neighbors("a", n=2)["drug"])
    ['b', 'c']
    """

    similarity_weight: float | str = real(0.5, maximum=1, besides=("auto",))
    noise: float | None = real(None, strict=True, besides=(None,))
    unobserved_weight: float | str = real("auto", maximum=1, besides=("auto",))
    regression_weight: float | str = real("auto", maximum=1, besides=("auto",))
    known_share: float | str = real("auto", strict=True, maximum=1, besides=("auto",))
    n_rounds: int = integer(10, minimum=1)
    device: str = "cpu"
    max_memory: int | str | None = None

    def fit(
        self,
        interactions: Any,
        drug_similarity: Any = None,
        target_similarity: Any = None,
        *,
        drug: str = "drug",
        target: str = "target",
        names: Mapping[Any, str] | pd.Series | None = None,
        callbacks: Iterable[Callback] = (),
        **same: Unpack[Same],
    ) -> Self:
        """Learn from recorded pairs and return the model.

        Parameters
        ----------
        interactions : DataFrame, Interactions, sparse matrix or ndarray
            1 for pairs that interact, and 0 for pairs that are not known to. A wide table has a row per drug and a
            column per target. A long table has the columns drug and target, and interaction if zeros are recorded: see
            `air_recsys.models.drug_target.pairs`. `unobserved_weight` says how absent pairs count. In
            `Interactions` drugs are the users and targets the items. Weights, in [0, 1], say how much of a value comes
            from the record; of 0 a pair is missing.
        drug_similarity, target_similarity : DataFrame (ids as index and columns), ndarray or mapping, optional
            Similarities in [0, 1], such as scores of alignments; `user_similarity` and `item_similarity` are the same.
            A mapping says what they follow from, one or several: "smiles" and "sequences", texts by id (structures
            need the extra ``chemistry``), "features", numbers such as embeddings, a row for each id, or any name of a
            table of either kind. Each is a kernel, SMILES are three; their shares are learned (`shares_`), as
            `models.drug_target.similarities` has it. Drugs and targets that are only there are new; they are
            predicted. `fold_in` takes further ones by the same names.
        drug, target : str
            What the rows and the columns are called, in tables, messages and files, as "disease"; also the columns of
            a long table.
        names : mapping or Series, optional
            What people call drugs and targets, by id: beside the ids in tables and pages.
        callbacks : iterable of callable
            Functions that are called with an `air_recsys.training.Record` after each round. Its fit is the distance
            of X to R, squared, and its objective is that with the term of the graphs, see `models.drug_target`. If one
            returns True, the rounds end.

        Raises
        ------
        DataError
            For values other than 0 and 1, no interaction, similarities that do not fit, and if only 1 is recorded and
            `unobserved_weight` is 0.
        ParameterError, MemoryLimitError

        Warns
        -----
        DataWarning
            For drugs or targets without a record and without a similarity to predict them from.
        """
        check_parameters(self)
        resolve_device(self.device)
        rounds = Rounds(check_callbacks(callbacks))
        words, given = checked_words(drug, target), by_sides(drug_similarity, target_similarity, same)
        pairs = as_pairs(interactions, words)
        is_long = isinstance(interactions, pd.DataFrame) and len(interactions) != pairs.n_users
        check_sides(pairs, given, words, is_long=is_long)
        data = with_ids(pairs, ids_of(given[0]), ids_of(given[1]))
        needed = planned(data, given, self.unobserved_weight)
        check_limit(needed, self.max_memory, self.device, lambda _: "complete fewer drugs or fewer targets")
        with lock_of(self):
            fitted = copy.copy(self)
            fitted.words_, fitted.names_ = words, names_by_id(names, data)
            self._take(fitted._learn(data, fitted._described_of(data, given), rounds))
        return self

    def _take(self, fitted: Self) -> None:
        """Hold what a copy has learned, in one step: other threads read all of it or nothing."""
        parameters = self.get_params(deep=False)
        vars(self).update({name: value for name, value in vars(fitted).items() if name not in parameters})

    def _learn(self, data: Interactions, described: Pair, rounds: Rounds) -> Self:
        self._device = str(resolve_device(self.device))
        values, weights, unseen = self._recorded(data)
        check_kept(data, stacklevel=4)
        self._described, given = _with_shares(described, values, weights)
        if unlike := without_evidence(data, given):
            warnings.warn(unlike, DataWarning, stacklevel=3)
        self._noise = self.noise or (1.0 if all(each is None for each in given) else 0.5)
        self.similarity_weight_, self.n_rounds_ = self._chosen_weight(values, weights, given), self.n_rounds
        self.regression_weight_ = self._chosen_regression(data, values, weights, given)
        with progress_bar(None, total=self.n_rounds, unit="round", desc="completion") as rounds.bar:
            whole = complete_all(values, weights, given, self._strengths(0.0), watch=rounds)
        if rounds.stopped_at:
            self.n_rounds_ = rounds.stopped_at
            self.regression_weight_ = self._chosen_regression(data, values, weights, given)
        if self.regression_weight_:
            whole = mixed(whole, regress(whole.known), self.regression_weight_)
        whole = lifted(whole, weights, weights == 0)
        self.scores_ = whole.scores
        profiles = whole.filled
        del whole  # its eigenvectors are as large as the graphs
        self._answers = Answers(
            *(values, weights, unseen, given),
            *(self._strengths(self.regression_weight_), self.scores_, None, self.known_share),
        )
        self._name_sides(data)
        self.drug_graph_ = self._graph(profiles, given[0], self.drugs_)
        self.target_graph_ = self._graph(profiles.T, given[1], self.targets_)
        return self

    def _described_of(self, data: Interactions, given: tuple[Given, Given]) -> Pair:
        """What the two sides are described by, in the order of their ids."""
        drugs, targets = (
            Described.of(side, own, ids, stacklevel=5) if own else None
            for side, own, ids in zip(("drug", "target"), given, (data.user_ids, data.item_ids), strict=True)
        )
        return drugs, targets

    def memory_plan(
        self,
        interactions: Any,
        drug_similarity: Any = None,
        target_similarity: Any = None,
        *,
        drug: str = "drug",
        target: str = "target",
        **same: Unpack[Same],
    ) -> MemoryPlan:
        """Return the bytes that `fit` on these will take at its peak, beside what it is given."""
        given = by_sides(drug_similarity, target_similarity, same)
        data = with_ids(as_pairs(interactions, checked_words(drug, target)), ids_of(given[0]), ids_of(given[1]))
        return planned(data, given, self.unobserved_weight)

    def similar_scores(self) -> SimilarScores:
        """Return what the scores of new drugs follow from that have no record, but a structure: see `dti.screen`.

        Raises
        ------
        DataError
            For a model that was fitted without structures of drugs.
        """
        model = self._whole()
        described, held = model._described[0], model._answers.held
        if described is None or not any(each.kind == "bits" for each in described.kernels.values()):
            raise DataError(
                f"expected a model that knows structures, found one without: fit it with smiles among "
                f"drug_similarity (in the shell dti train --drug-smiles), of all its {len(model.drugs_)} "
                f"{model.drugs_.kind}s"
            )
        known, share = held.sides.drugs, model.regression_weight_
        blank = np.zeros((1, len(model.targets_)))
        added = share * base_rates(np.vstack([held.known, blank]))[-1]
        lifts = held.lifts.columns if held.lifts and not model.unobserved_weight_ else np.ones(blank.size)
        scores = lifts * (1 - share) * held.profiles, lifts * added
        told = partial(model._answers.of_scores, zero=bool(model.unobserved_weight_), unseen=True)
        return SimilarScores(described.take(known), model.drugs_.ids[known], held.extension.weights, *scores, told)

    def forget(self, *, users: Any = None, items: Any = None, pairs: Any = None) -> Self:
        """Fit again without some drugs (users), targets (items) or pairs, and return the model.

        See `Recommender.forget`. Drugs and targets leave the similarities too.
        """
        with lock_of(self):
            model = self._whole()
            left = left_of(model.interactions_, users, items, pairs, model.words_)
            sides = zip(model._described, (left.users, left.items), strict=True)
            drugs, targets = (each and each.take(rows) for each, rows in sides)
            self._take(model._learn(left.data, (drugs, targets), Rounds([])))
        return self

    def partial_fit(
        self,
        interactions: Any = None,
        drug_similarity: Any = None,
        target_similarity: Any = None,
        **same: Unpack[Same],
    ) -> Self:
        """Take in new pairs, drugs and targets by a new fit on all data, and return the model.

        Parameters
        ----------
        interactions : DataFrame, Interactions, sparse matrix or ndarray, optional
            As for `fit`. A new record of a pair replaces the old one.
        drug_similarity, target_similarity
            Of new ones, as for `fold_in`.
        """
        given = by_sides(drug_similarity, target_similarity, same)
        with lock_of(self):
            model = self._whole()
            data, later = model._with_new(interactions, given)
            sides = zip(model._described, later, (data.n_users, data.n_items), model._sizes(), strict=True)
            drugs, targets = (own and own.joined(new, n - known) for own, new, n, known in sides)
            self._take(model._learn(data, (drugs, targets), Rounds([])))
        return self

    def fold_in(
        self,
        interactions: Any = None,
        drug_similarity: Any = None,
        target_similarity: Any = None,
        *,
        side: str | None = None,
        **same: Unpack[Same],
    ) -> Self:
        """Return a model of new drugs (or targets) alone, for all questions; this model does not change.

        It has the new drugs and all targets of this model, or the other way round; its graphs and explanations have
        the known ones too. New rows are completed with all that this model knows held, by the last equation of
        `air_recsys.models.drug_target.completion`; those without interactions follow from their similarities, as in
        `fit`. Rows that are given together count as neighbours of each other. Probabilities are by the calibration of
        this model. It is not saved, and takes nothing further in. The first call computes the completion of `fit` once
        more, which this model then keeps.

        Parameters
        ----------
        interactions : DataFrame or Interactions, optional
            Pairs of new drugs with known targets, as for `fit`.
        drug_similarity, target_similarity : mapping or DataFrame, optional
            What new ones are described by, by the names that `fit` had; where it had several, one is enough. A table
            of similarities has a row for each new one, and a column for each known one; columns of new ones say how
            alike they are. Without a description new ones are like none.
        side : {"user", "drug", "item", "target"}, optional
            What is new: targets where they alone are described, else drugs.

        Raises
        ------
        DataError, UnknownIdError
            If nothing is new, known ones are named too, or something is new on the other side; and as in `fit`.

        Examples
        --------
        >>> values = pd.DataFrame(np.kron(np.eye(2), np.ones((3, 3))), list("abcdef"), list("uvwxyz"))
        >>> new = pd.DataFrame({"drug": ["g", "g"], "target": ["u", "x"], "interaction": [1, 0]})
        >>> DrugTargetAIR().fit(values).fold_in(new).recommend("g", 2)["target"].tolist()
        ['v', 'w']
        """
        given, model = by_sides(drug_similarity, target_similarity, same), self._whole()
        side = ("target" if given[1] and not given[0] else "drug") if side is None else side
        axis = _AXES[check_choice("side", side, tuple(_AXES))]
        data, later = model._with_new(interactions, given, axis)
        given = model._beside(later, data)
        kept = copy.copy(model).set_params(unobserved_weight=model.unobserved_weight_)
        values, weights, unseen = kept._recorded(data)
        values, weights = (each.astype(model.scores_.dtype, copy=False) for each in (values, weights))
        answers = OfNewRows(model._answers, axis, values, weights, unseen, given)
        if axis == 0:
            model.drug_graph_ = model._graph(answers.held.filled, given[0], IdIndex(data.user_ids, model.words_[0]))
        else:
            model.target_graph_ = model._graph(
                answers.held.filled.T, given[1], IdIndex(data.item_ids, model.words_[1])
            )
        model._answers, model.scores_ = answers, answers.scores[answers.own]
        model._name_sides(new_alone(data, answers.own))
        return model

    @property
    def shares_(self) -> dict[str, dict[str, float]]:
        """The share of each kernel in the similarity of a side that has several, by its word and by their names."""
        sides = zip(self._fitted().words_, self._described, strict=True)
        return {word: dict(each.shares) for word, each in sides if each is not None}

    @property
    def described_(self) -> Pair:
        """What the two sides are described by; None without."""
        return self._fitted()._described

    @property
    def described_line_(self) -> str:
        """Shares in the graphs of both sides, and what was changed of structures; "" without descriptions."""
        sides = [(word, each) for word, each in zip(self._fitted().words_, self._described, strict=True) if each]
        parts = [f"{word}s: {each.told(1 - self.similarity_weight_)}" for word, each in sides]
        return "; ".join([*parts, *(each.line for _, each in sides if each.line)])

    @overload
    def predict(self, drug_ids: Any, target_ids: Any, *, return_std: Literal[False] = False) -> np.ndarray: ...

    @overload
    def predict(
        self, drug_ids: Any, target_ids: Any, *, return_std: Literal[True]
    ) -> tuple[np.ndarray, np.ndarray]: ...

    def predict(
        self, drug_ids: Any, target_ids: Any, *, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the score of each pair, position by position; a single id goes with all of the other side.

        With `return_std` also its standard deviation: how much the score would vary with other records (a jackknife).
        How sure an interaction is, `predict_proba` says.

        Raises
        ------
        UnknownIdError
            For ids that were not in the data of `fit`.
        """
        model = self._fitted()
        pairs = pairs_of(model, drug_ids, target_ids)
        scores = model.scores_[pairs]
        return (scores, model._answers.held_out.deviations[pairs]) if return_std else scores

    def predict_interval(self, drug_ids: Any, target_ids: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the shortest interval that holds the label of each pair with a given probability.

        A label is 0 or 1: the interval is 0 to 0 (no interaction), 1 to 1 (an interaction), or 0 to 1 where
        `predict_proba` is as sure of neither. The level is above 0 and at most 0.9999.
        """
        check_real("level", level, maximum=HIGHEST_LEVEL, strict=True)
        probabilities = self.predict_proba(drug_ids, target_ids)
        likely, sure = probabilities > 0.5, np.maximum(probabilities, 1 - probabilities) >= level
        return (likely & sure).astype(np.float64), (likely | ~sure).astype(np.float64)

    def predict_proba(self, drug_ids: Any, target_ids: Any) -> np.ndarray:
        """Return the probability that each pair interacts, in (0, 1); pairs as in `predict`.

        It is the share of interactions among hidden recorded pairs with similar scores. Of a pair that is recorded as
        0, or counts as 0, it is that of an interaction that nobody has recorded, if `known_share_` of the true ones
        are recorded: an assumption that the table alone cannot settle, and that `known_share` states. Where nothing is
        recorded of the drug or of the target, it is the share divided by `known_share_`. Where that is not
        stated, the column highest of `new_interactions` has the largest probability that the table allows.
        """
        model = self._fitted()
        pairs = pairs_of(model, drug_ids, target_ids)
        return model._answers.probabilities(pairs, model.open_scores_[pairs])

    def new_interactions(
        self, n: int = 10, drug_ids: Any = None, target_ids: Any = None, *, include_known: bool = False
    ) -> pd.DataFrame:
        """Return the most probable pairs that are not known to interact, best first.

        Parameters
        ----------
        n : int
        drug_ids, target_ids : id or array_like of ids, optional
            Only pairs of these drugs, or of these targets.
        include_known : bool
            Include known interactions.

        Returns
        -------
        DataFrame
            Columns drug, target, probability and its deviation (see `predict_proba`), highest: the probability with
            the least `known_share` that the table allows, score (of `open_scores_`), rank, known: whether the
            interaction is recorded, and recorded_zero: whether the pair is recorded as 0. Scores that differ by
            rounding alone tie, and come in the order of the drugs, then of the targets; see
            `air_recsys.models.ranking.ties`.
        """
        model = self._fitted()
        check_integer("n", n, minimum=1)
        recorded = model.interactions_.to_dense()
        asked = np.ones(recorded.shape, dtype=bool) if include_known else recorded != 1  # NaN too
        for axis, (index, ids) in enumerate(((model.drugs_, drug_ids), (model.targets_, target_ids))):
            if ids is not None:
                wanted = np.isin(np.arange(len(index)), places_of(index, ids))
                asked &= wanted[:, None] if axis == 0 else wanted
        drugs, targets = np.nonzero(asked)
        scores = model.open_scores_[drugs, targets]
        if not scores.size:
            best, values = np.empty(0, dtype=np.int64), scores
        else:
            found = best_of(scores[None], min(n, scores.size), float(np.abs(scores).max()))
            best, values = found[0][0], found[1][0]
        places = drugs, targets = drugs[best], targets[best]
        answers = model._answers
        return pd.DataFrame(
            model.named(model.drugs_.ids[drugs], model.targets_.ids[targets])
            | {
                "probability": answers.probabilities(places, values),
                "deviation": answers.deviations(places, values),
                "highest": answers.probabilities(places, values, answers.least_share),
                "score": values,
                "rank": np.arange(1, best.size + 1),
                "known": recorded[drugs, targets] == 1,
                "recorded_zero": recorded[drugs, targets] == 0,
            }
        )

    def named(self, drug_ids: np.ndarray, target_ids: np.ndarray) -> dict[str, Any]:
        """Return columns of ids by the words for drugs and targets, and behind them of names where some are known."""
        return columns_of(self.words_, (drug_ids, target_ids), self.names_)

    def name(self, id: Hashable) -> str:
        """Return what people call a drug or a target, and its id behind it."""
        return called(id, self.names_)

    def explain(self, drug_id: Hashable, target_id: Hashable, n: int = 10) -> PairExplanation:
        """Return the contributions of known interactions to a score; the parts add up to it.

        The score is that of `new_interactions`. See `air_recsys.models.drug_target.explanation` for the definitions.

        Parameters
        ----------
        drug_id, target_id : hashable
        n : int
            Maximum number of known interactions in the table.

        Examples
        --------
        >>> values = pd.DataFrame([[0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]], list("abc"), list("wxyz"))
        >>> found = DrugTargetAIR().fit(values).explain("a", "w", n=2)
        >>> found.interactions[["drug", "target"]].values.tolist(), bool(np.isclose(found.total(), found.score))
        ([['b', 'w'], ['a', 'x']], True)
        """
        model = self._fitted()
        check_integer("n", n, minimum=1)
        place = int(places_of(model.drugs_, [drug_id])[0]), int(places_of(model.targets_, [target_id])[0])
        answers = model._answers
        (drugs, targets), own = answers.own, place
        place = place[0] + drugs.start, place[1] + targets.start
        whole = answers.whole(answers.shown_for(place))
        score = whole.scores[place]
        figures = float(score), float(answers.probabilities(own, score)), float(answers.deviations(own, score))
        return explained(
            (drug_id, target_id),
            place,
            figures,
            score_parts(whole, model.regression_weight_, *place),
            answers.values == 1,
            (model.drug_graph_, model.target_graph_),
            n,
            model.names_,
        )

    @property
    def similarities_(self) -> Similarities:
        """Similarities of drugs and of targets."""
        return self._fitted()._answers.similarities

    @property
    def open_scores_(self) -> np.ndarray:
        """`scores_`, with every recorded 0 scored by a model without it: a tenth of the zeros is missing at a time.

        In `scores_` a recorded 0 makes the score smaller, although the pair may interact. Computed on first use.
        """
        return self._fitted()._answers.open_scores

    @property
    def calibration_(self) -> Calibration:
        """Map from scores to probabilities. Computed on first use, as `open_scores_` is."""
        return self._fitted()._answers.calibration

    @property
    def known_share_(self) -> float:
        """The share of the true interactions that probabilities take as recorded. Computed on first use."""
        return self._fitted()._answers.known_share

    def held_out(self) -> pd.DataFrame:
        """Return the recorded pairs with scores of models without them, from which `calibration_` follows.

        Returns
        -------
        DataFrame
            Columns drug, target, interaction (0 or 1), score (of the completion without the pair, one of ten), and
            counts, a baseline: the product of the numbers of interactions of the drug and of the target in this
            completion, plus 1 each.
        """
        model = self._whole()
        answers = model._answers
        drugs, targets = np.nonzero(answers.weights)
        return pd.DataFrame(
            {
                model.words_[0]: model.drugs_.ids[drugs],
                model.words_[1]: model.targets_.ids[targets],
                "interaction": answers.values[drugs, targets].astype(np.int64),
                "score": answers.held_out.scores,
                "counts": answers.held_out_counts,
            }
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to one file, as `Recommender.save` does, with the names of drugs and targets.

        The file contains the similarities that `fit` was given, and `open_scores_` if they were computed.
        """
        model = self._whole()
        learned = files.Learned(
            model.interactions_,
            model.similarity_weight_,
            model.regression_weight_,
            model._noise,
            model.n_rounds_,
            model.words_,
            model.names_,
            model._described,
            model.similarities_,
            model.scores_,
            (model.drug_graph_, model.target_graph_),
            model._answers.kept,
        )
        return files.write(path, type(self).__name__, model.get_params(deep=False), learned, self.from_contents)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote, with the errors of `Recommender.load`; no code in the file is run."""
        return read_contents(path, cls.from_contents)

    @classmethod
    def from_contents(cls, contents: Contents) -> Self:
        """The model that the content of a file describes."""
        model = class_of(cls, contents)(**contents.parameters)
        check_parameters(model)
        learned = files.learned_of(contents)
        model._device = model._here()
        model._noise, model.similarity_weight_ = learned.noise, learned.similarity_weight
        model.n_rounds_, model._described = learned.n_rounds, learned.described
        model.words_, model.names_ = learned.words, learned.names
        model.regression_weight_, model.scores_ = learned.regression_weight, learned.scores
        model._answers = Answers(
            *model._recorded(learned.data),
            learned.similarities,
            model._strengths(learned.regression_weight),
            learned.scores,
            learned.asked,
            model.known_share,
        )
        model._name_sides(learned.data)
        model.drug_graph_, model.target_graph_ = learned.graphs
        return model

    def _recorded(self, data: Interactions) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Return values, 0 where nothing is recorded, and weights, (n_drugs, n_targets) each; rows without records."""
        strange = data.ratings[(data.ratings != 0) & (data.ratings != 1)]
        if strange.size:
            raise DataError(
                f"expected 1 for pairs that interact and 0 for others, found {strange[0]:g}: of affinities take a "
                "threshold, or AIR.for_ratings"
            )
        counted = data.ratings if data.weights is None else data.ratings * (data.weights > 0)
        if not counted.any():
            raise DataError(f"expected at least one pair that interacts, found none in {data.n_ratings}")
        automatic = 1.0 if data.ratings.all() else 0.0
        self.unobserved_weight_ = automatic if self.unobserved_weight == "auto" else float(self.unobserved_weight)
        if data.ratings.all() and self.unobserved_weight_ == 0 and data.density < 1:
            raise DataError(
                "expected pairs with 0 beside those with 1, found only 1: add the zeros, or take the pairs that are "
                "not there as zeros by unobserved_weight=1"
            )
        if data.weights is not None and data.weights.max() > 1:
            found = f"{data.weights.max():g}: divide by it, or drop a column weight that is of something else"
            raise DataError(f"expected weights in [0, 1], found {found}")
        shape, places = (data.n_users, data.n_items), (data.user_index, data.item_index)
        precision = precision_of(data)
        values, weights = np.zeros(shape, precision), np.full(shape, self.unobserved_weight_, precision)
        values[places], weights[places] = counted, 1 if data.weights is None else data.weights
        drugs, targets = (np.bincount(own, minlength=size) == 0 for own, size in zip(places, shape, strict=True))
        return values, weights, (drugs, targets)

    def _with_new(
        self, interactions: Any, given: tuple[Given, Given], alone: int | None = None
    ) -> tuple[Interactions, tuple[Described, Described]]:
        """Return all pairs, of each the latest, and what new drugs and targets, the last, are described by."""
        new = None if interactions is None else as_pairs(interactions, self.words_)
        data = self.interactions_ if new is None else merge(self.interactions_, new)[0]
        data = with_ids(data, ids_of(given[0]), ids_of(given[1]))
        if alone is not None:
            check_new(alone, new, data, (self.drugs_, self.targets_))
        found = []
        ids = data.user_ids, data.item_ids
        for side, own, own_given, all_ids, n in zip(_SIDES, self._described, given, ids, self._sizes(), strict=True):
            if own is None and own_given:
                name = argument(side, next(iter(own_given)))
                raise DataError(
                    f"expected no {name}, as the model was trained without one, found one: fit it with {name}"
                )
            is_new = own is not None and n < len(all_ids)
            found.append(own.later(side, own_given, all_ids, n, stacklevel=4) if own and is_new else Described({}, {}))
        return data, (found[0], found[1])

    def _beside(self, later: tuple[Described, Described], data: Interactions) -> Similarities:
        """Return the similarities of all, of which the new ones are the last."""
        found: list[np.ndarray | None] = []
        sizes = data.n_users, data.n_items
        for own, known, new, n in zip(self._described, self.similarities_, later, sizes, strict=True):
            if own is None or known is None or n == len(known):
                found.append(known)
                continue
            rows = own.rows(new, n - len(known))
            found.append(np.block([[known, rows[:, : len(known)].T], [rows]]))
        return found[0], found[1]

    def _sizes(self) -> tuple[int, int]:
        return len(self.drugs_), len(self.targets_)

    def _whole(self) -> Self:
        """Return what `_fitted` does, or an error for new rows alone."""
        model = self._fitted()
        if isinstance(model._answers, OfNewRows):
            raise ParameterError("this model holds new rows alone, for answers: ask the model that folded them in")
        return model

    def _name_sides(self, data: Interactions) -> None:
        self.interactions_ = data
        ids = data.user_ids, data.item_ids
        self.drugs_, self.targets_ = (IdIndex(own, word) for own, word in zip(ids, self.words_, strict=True))

    def _chosen_weight(self, values: np.ndarray, weights: np.ndarray, similarities: Similarities) -> float:
        if self.similarity_weight != "auto":
            return float(self.similarity_weight)
        sides = known_sides(values, similarities)
        block = sides.block(values, weights)
        return chosen_weight(*block, noise=self._noise, n_rounds=self.n_rounds, device=self._device)

    def _chosen_regression(
        self, data: Interactions, values: np.ndarray, weights: np.ndarray, similarities: Similarities
    ) -> float:
        if self.regression_weight != "auto":
            return float(self.regression_weight)
        names = [[str(id) for id in ids.tolist()] for ids in (data.user_ids, data.item_ids)]
        drugs, targets = (np.argsort(own, kind="stable") for own in names)
        return chosen_regression(values, weights, similarities, self._strengths(0.0), (drugs, targets))

    def _strengths(self, regression_weight: float) -> Strengths:
        return Strengths(self.similarity_weight_, self._noise, self.n_rounds_, self._device, regression_weight)

    def _here(self) -> str:
        """Return the device of a model that may come from another machine."""
        if not is_installed():
            return "cpu"
        return str(resolve_device("auto") if self.device == "auto" else device_or_cpu(self.device))

    def _graph(self, profiles: np.ndarray, similarity: np.ndarray | None, index: IdIndex) -> SimilarityGraph:
        adjacency = adjacency_of(profiles, similarity, self.similarity_weight_)
        return SimilarityGraph(adjacency, index.ids, index.kind)

    def _fitted(self) -> Self:
        """Return a model that holds what this one has learned at this moment, whatever another thread writes."""
        if not hasattr(self, "scores_"):
            raise NotFittedError("this DrugTargetAIR is not fitted yet: call fit first")
        return copy.copy(self)


def _with_shares(described: Pair, values: np.ndarray, weights: np.ndarray) -> tuple[Pair, Similarities]:
    """Return the two sides with the shares of their kernels learned, and the similarities that follow."""
    found: list[Described | None] = []
    similarities: list[np.ndarray | None] = []
    for side, own, shown in zip(described, (values, values.T), (weights, weights.T), strict=True):
        if side is None:
            found.append(None)
            similarities.append(None)
            continue
        if (sole := side.sole()) is not None:
            found.append(side)
            similarities.append(sole)
            continue
        kernels = side.similarities()
        shares = learned_shares(kernels, own, shown).tolist()
        side = side._replace(shares=dict(zip(side.kernels, shares, strict=True)))
        found.append(side)
        similarities.append(side.similarity(kernels))
    return (found[0], found[1]), (similarities[0], similarities[1])
