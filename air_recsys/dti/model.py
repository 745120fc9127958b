"""`DrugTargetAIR`: new drug-target interactions from known ones, with or without similarities."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from air_recsys.dti import files
from air_recsys.dti.completion import affinity, complete
from air_recsys.dti.sides import Similarities, known_sides, to_all_rows
from air_recsys.dti.similarities import as_similarity
from air_recsys.dti.strength import chosen_weight
from air_recsys.exceptions import DataError, NotFittedError, UnknownIdError
from air_recsys.graphs import SimilarityGraph
from air_recsys.ids import IdIndex
from air_recsys.interactions import Interactions, as_interactions
from air_recsys.models.ranking.ties import best_of
from air_recsys.models.storage.files import Contents, class_of, read_contents
from air_recsys.parameters import check_parameters, integer, real
from air_recsys.validation import check_integer

_OPEN_FOLDS = 10


@dataclass(eq=False, repr=False)
class DrugTargetAIR(BaseEstimator):
    """Complete a drug-target matrix under a graph of the drugs and a graph of the targets that are learned with it.

    Completion and graphs are computed in turn, each exactly: see `air_recsys.dti.completion`. Similarities of
    structures or sequences are a prior of the graphs. Drugs and targets without any known interaction are left out of
    the completion where a similarity tells their neighbours, and then predicted from those: see
    `air_recsys.dti.extension`. There is no random start, so the same data give the same model.

    Parameters
    ----------
    similarity_weight : float or "auto"
        Share of a given similarity in the graph of its side, in [0, 1]. "auto" takes the share that ranks hidden
        recorded pairs best, see `air_recsys.dti.strength`: safer where similarities may mean nothing, and 25 times
        slower.
    noise : float, optional
        sigma > 0: the larger, the less recorded values are trusted against the graphs. None is 0.5 where a similarity
        is given, else 1.
    unobserved_weight : float
        Weight of the value 0 for a pair that the data do not contain, in [0, 1]: 0 takes it as missing, 1 as no
        interaction.
    n_rounds : int
        Rounds of completion and graphs.

    Attributes
    ----------
    similarity_weight_ : float
        The share that was used.
    scores_ : ndarray, shape (n_drugs, n_targets)
        About 1 for pairs that interact, about 0 for pairs that do not; recorded pairs are drawn to their record.
    open_scores_ : ndarray, shape (n_drugs, n_targets)
        The same with every recorded 0 scored as if it was missing; `new_interactions` ranks by them.
    drug_graph_, target_graph_ : SimilarityGraph
        The graphs that a further round would use, over the completed profiles of all drugs and targets.
    drugs_, targets_ : IdIndex
    interactions_ : Interactions

    Examples
    --------
    >>> values = np.kron(np.eye(2), np.ones((3, 3)))  # two groups
    >>> values[0, 0] = np.nan
    >>> model = DrugTargetAIR().fit(Interactions.from_dense(values, list("abcdef"), list("uvwxyz")))
    >>> model.new_interactions(1)[["drug", "target", "recorded"]].values.tolist()
    [['a', 'u', False]]
    >>> sorted(model.drug_graph_.neighbors("a", n=2)["drug"])
    ['b', 'c']
    """

    similarity_weight: float | str = real(0.5, maximum=1, besides=("auto",))
    noise: float | None = real(None, strict=True, besides=(None,))
    unobserved_weight: float = real(0.0, maximum=1)
    n_rounds: int = integer(10, minimum=1)

    def fit(self, interactions: Any, drug_similarity: Any = None, target_similarity: Any = None) -> Self:
        """Learn from recorded pairs and return the model.

        Parameters
        ----------
        interactions : Interactions, sparse matrix, DataFrame or ndarray
            1 for pairs that interact, 0 for pairs that are not known to. Absent pairs are predicted as
            `unobserved_weight` says. Drugs are the users, targets the items. Weights of ratings, in [0, 1], are the
            shares of the pairs that are taken from their records.
        drug_similarity, target_similarity : DataFrame (ids as index and columns) or ndarray, optional
            In [0, 1].

        Raises
        ------
        DataError
            For values other than 0 and 1, no interaction, similarities that do not fit, or where only 1 is recorded.
        ParameterError
        """
        data = as_interactions(interactions)
        check_parameters(self)
        fitted = copy.copy(self)._learn(data, drug_similarity, target_similarity)
        parameters = self.get_params(deep=False)
        learned = {name: value for name, value in vars(fitted).items() if name not in parameters}
        vars(self).update(learned)  # in one step: other threads read all of it or nothing
        return self

    def _learn(self, data: Interactions, drug_similarity: Any, target_similarity: Any) -> Self:
        values, weights = self._recorded(data)
        given = (
            as_similarity("drug_similarity", drug_similarity, data.user_ids),
            as_similarity("target_similarity", target_similarity, data.item_ids),
        )
        self._open: dict[str, np.ndarray] = {}
        self._noise = self.noise or (1.0 if all(each is None for each in given) else 0.5)
        self.similarity_weight_ = self._chosen_weight(values, weights, given)
        self.scores_, profiles = self._completed(values, weights, given)
        self._given = values, weights, given
        self._name_sides(data)
        self.drug_graph_ = self._graph(profiles, given[0], self.drugs_)
        self.target_graph_ = self._graph(profiles.T, given[1], self.targets_)
        return self

    def predict(self, drug_ids: Any, target_ids: Any) -> np.ndarray:
        """Return the score of each pair, position by position; a single id goes with all of the other side.

        Raises
        ------
        UnknownIdError
            For ids that were not in the data of `fit`.
        """
        model = self._fitted()
        drugs, targets = _places(model.drugs_, drug_ids), _places(model.targets_, target_ids)
        if drugs.size != targets.size and 1 not in (drugs.size, targets.size):
            raise DataError(f"expected as many drugs as targets, found {drugs.size} and {targets.size}")
        return model.scores_[drugs, targets]

    def new_interactions(self, n: int = 10, drug_ids: Any = None, target_ids: Any = None) -> pd.DataFrame:
        """Return the most probable of the pairs that are not known to interact, best first.

        Parameters
        ----------
        n : int
        drug_ids, target_ids : id or array_like of ids, optional
            Only pairs of these drugs, or of these targets.

        Returns
        -------
        DataFrame
            Columns drug, target, score (of `open_scores_`), rank and recorded: True for a recorded 0, False for an
            absent pair. Scores that differ by rounding alone tie, and come in the order of the drugs, then of the
            targets; see `air_recsys.models.ranking.ties`.
        """
        model = self._fitted()
        check_integer("n", n, minimum=1)
        recorded = model.interactions_.to_dense()
        open_pairs = recorded != 1  # NaN too
        for axis, (index, ids) in enumerate(((model.drugs_, drug_ids), (model.targets_, target_ids))):
            if ids is not None:
                wanted = np.isin(np.arange(len(index)), _places(index, ids))
                open_pairs &= wanted[:, None] if axis == 0 else wanted
        drugs, targets = np.nonzero(open_pairs)
        scores = model.open_scores_[drugs, targets]
        if not scores.size:
            best, values = np.empty(0, dtype=np.int64), scores
        else:
            found = best_of(scores[None], min(n, scores.size), float(np.abs(scores).max()))
            best, values = found[0][0], found[1][0]
        return pd.DataFrame(
            {
                "drug": model.drugs_.ids[drugs[best]],
                "target": model.targets_.ids[targets[best]],
                "score": values,
                "rank": np.arange(1, best.size + 1),
                "recorded": ~np.isnan(recorded[drugs[best], targets[best]]),
            }
        )

    @property
    def open_scores_(self) -> np.ndarray:
        """`scores_`, with every recorded 0 scored by a model that lacks it: a tenth of the zeros is missing at a time.

        A recorded 0 draws its score to 0, though the pair is only not known to interact. Computed on first use.
        """
        model = self._fitted()
        if not model._open:
            model._open.setdefault("scores", model._scores_of_zeros())
        return model._open["scores"]

    def _scores_of_zeros(self) -> np.ndarray:
        values, weights, similarities = self._given
        scores = self.scores_.copy()
        zeros = np.flatnonzero((weights > 0) & (values == 0))
        for hidden in np.array_split(np.random.RandomState(0).permutation(zeros), _OPEN_FOLDS):
            shown = weights.copy()
            shown.flat[hidden] = 0
            scores.flat[hidden] = self._completed(values, shown, similarities)[0].flat[hidden]
        return scores

    # ---------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to one file, as `Recommender.save` does, with the names of drugs and targets.

        The file holds the similarities that `fit` was given, and `open_scores_` where they were computed.
        """
        model = self._fitted()
        learned = files.Learned(
            model.interactions_,
            model.similarity_weight_,
            model._noise,
            model._given[2],
            model.scores_,
            model._open.get("scores"),
            (model.drug_graph_, model.target_graph_),
        )
        return files.write(path, type(self).__name__, model.get_params(deep=False), learned, self._restored)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote, with the errors of `Recommender.load`; no code in the file is run."""
        return read_contents(path, cls._restored)

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        model = class_of(cls, contents)(**contents.parameters)
        check_parameters(model)
        learned = files.learned_of(contents)
        model._open = {}
        model._given = *model._recorded(learned.data), learned.similarities
        model._noise, model.similarity_weight_ = learned.noise, learned.similarity_weight
        model.scores_ = learned.scores
        if learned.open_scores is not None:
            model._open["scores"] = learned.open_scores
        model._name_sides(learned.data)
        model.drug_graph_, model.target_graph_ = learned.graphs
        return model

    # ---------------------------------------------------------------- stages of fit

    def _recorded(self, data: Interactions) -> tuple[np.ndarray, np.ndarray]:
        """Return values, 0 where nothing is recorded, and weights; (n_drugs, n_targets) each."""
        strange = data.ratings[(data.ratings != 0) & (data.ratings != 1)]
        if strange.size:
            raise DataError(f"expected 1 for pairs that interact and 0 for others, found {strange[0]:g}")
        if not data.ratings.any():
            raise DataError(f"expected at least one pair that interacts, found {data.n_ratings} zeros")
        if data.ratings.all() and self.unobserved_weight == 0 and data.density < 1:
            raise DataError(
                "expected pairs with 0 beside those with 1, found only 1: add the zeros, or take the pairs that are "
                "not there as zeros by unobserved_weight=1"
            )
        if data.weights is not None and data.weights.max() > 1:
            raise DataError(f"expected weights in [0, 1], found {data.weights.max():g}")
        weights = np.full((data.n_users, data.n_items), float(self.unobserved_weight))
        weights[data.user_index, data.item_index] = 1 if data.weights is None else data.weights
        return np.nan_to_num(data.to_dense()), weights

    def _name_sides(self, data: Interactions) -> None:
        self.interactions_ = data
        self.drugs_, self.targets_ = IdIndex(data.user_ids, "drug"), IdIndex(data.item_ids, "target")

    def _chosen_weight(self, values: np.ndarray, weights: np.ndarray, similarities: Similarities) -> float:
        if self.similarity_weight != "auto":
            return float(self.similarity_weight)
        sides = known_sides(values, similarities)
        return chosen_weight(*sides.block(values, weights), noise=self._noise, n_rounds=self.n_rounds)

    def _completed(
        self, values: np.ndarray, weights: np.ndarray, similarities: Similarities
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and completed values of all pairs: of the known block first, then of what is similar to it."""
        sides = known_sides(values, similarities)
        block = np.ix_(sides.drugs, sides.targets)
        settings = {"similarity_weight": self.similarity_weight_, "noise": self._noise, "n_rounds": self.n_rounds}
        completed = complete(*sides.block(values, weights), **settings)
        carried = (completed.scores + completed.filled) / 2
        evidence = values[block], weights[block] == 1
        rows = to_all_rows(sides.similarities[0], sides.drugs, carried, *evidence)
        columns = to_all_rows(sides.similarities[1], sides.targets, carried.T, *(each.T for each in evidence))
        extended = rows @ carried @ columns.T
        scores, filled = extended.copy(), extended.clip(0, 1)
        scores[block], filled[block] = completed
        return scores, filled

    def _graph(self, profiles: np.ndarray, similarity: np.ndarray | None, index: IdIndex) -> SimilarityGraph:
        adjacency = affinity(profiles, similarity, self.similarity_weight_)
        np.fill_diagonal(adjacency, 0)
        return SimilarityGraph(adjacency, index.ids, index.kind)

    def _fitted(self) -> Self:
        """Return a model that holds what this one has learned at this moment, whatever another thread writes."""
        if not hasattr(self, "scores_"):
            raise NotFittedError("this DrugTargetAIR is not fitted yet: call fit first")
        return copy.copy(self)


def _places(index: IdIndex, ids: Any) -> np.ndarray:
    places = index.lookup(ids)
    if (places < 0).any():
        queried = np.atleast_1d(np.asarray(ids, dtype=object))
        raise UnknownIdError(index.kind, queried[places < 0].tolist())
    return places
