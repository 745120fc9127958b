"""The questions of `Recommender` to `DrugTargetAIR`: drugs are its users, and targets its items."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from air_recsys.data.described.tables import with_nearest
from air_recsys.data.ids import IdIndex, asked_ids
from air_recsys.exceptions import DataError, UnknownIdError
from air_recsys.graphs import SimilarityGraph
from air_recsys.metrics import aupr
from air_recsys.models.base import SaysWhatItLacks
from air_recsys.models.drug_target.pairs import Words, as_pairs
from air_recsys.models.drug_target.similarities import Pair
from air_recsys.models.ranking.allowed import allowed_items, among, list_length
from air_recsys.models.ranking.lists import recommendation_frame
from air_recsys.models.ranking.ties import best_of
from air_recsys.storage.validation import check_choice


class CommonQuestions(SaysWhatItLacks):
    """What every model answers, by the names of `Recommender`."""

    unanswered: ClassVar = {
        "feature_effects": "no effects of features",
        "uncertainty": "deviations of pairs only (predict(..., return_std=True))",
    }
    drugs_: IdIndex
    targets_: IdIndex
    drug_graph_: SimilarityGraph
    target_graph_: SimilarityGraph
    names_: dict[Any, str]
    words_: Words
    _described: Pair

    def _fitted(self) -> Any:
        raise NotImplementedError

    @property
    def user_graph_(self) -> SimilarityGraph:
        """The graph of the drugs, `drug_graph_`."""
        return self._fitted().drug_graph_

    @property
    def item_graph_(self) -> SimilarityGraph:
        """The graph of the targets, `target_graph_`."""
        return self._fitted().target_graph_

    def similar_users(self, drug_id: Hashable, n: int = 10) -> pd.DataFrame:
        """The n drugs most similar to one: the columns drug and weight, of `drug_graph_`."""
        return self.user_graph_.neighbors(drug_id, n)

    def similar_items(self, target_id: Hashable, n: int = 10) -> pd.DataFrame:
        """The n targets most similar to one: the columns target and weight, of `target_graph_`."""
        return self.item_graph_.neighbors(target_id, n)

    def recommend(
        self, drug_ids: Any, n: int = 10, exclude_seen: bool = True, *, items: Any = None, exclude: Any = None
    ) -> pd.DataFrame:
        """The best n targets of each drug, by `open_scores_` and not by `predict`; see `Recommender.recommend`.

        The columns of ids are called as in `words_`. With `exclude_seen`, known interactions are left out.
        `new_interactions` ranks the pairs of all drugs together, with probabilities.

        Raises
        ------
        UnknownIdError
            For ids that were not in the data of `fit`.

        Examples
        --------
        >>> from air_recsys.dti import DrugTargetAIR
        >>> values = pd.DataFrame(np.kron(np.eye(2), np.ones((3, 3))), list("abcdef"), list("uvwxyz"))
        >>> values.loc["a", "u"] = np.nan
        >>> DrugTargetAIR().fit(values).recommend("a", n=1)[["drug", "target"]].values.tolist()
        [['a', 'u']]
        """
        check_choice("exclude_seen", exclude_seen, (True, False))
        model = self._fitted()
        asked = asked_ids(drug_ids, model.drugs_.kind)
        drugs = places_of(model.drugs_, asked)
        allowed = allowed_items(model.targets_, items, exclude, model.drugs_, asked)
        length = list_length(n, allowed.n_left)
        scores = np.array(model.open_scores_[drugs], dtype=np.float64)
        known = model.interactions_.to_csr()[drugs]
        left_out = allowed.left_out(np.arange(drugs.size), (known == 1).astype(np.float32) if exclude_seen else None)
        if left_out is not None:
            scores[left_out.nonzero()] = -np.inf
        if allowed.common is not None:
            scores = scores[:, allowed.common]
        best, values = np.empty((drugs.size, 0), int), scores
        if allowed.n_left:
            best, values = best_of(scores, length, float(np.abs(model.open_scores_).max()))
            best = among(allowed.common, best)
        found = recommendation_frame(asked, model.targets_.ids, best, values, drugs >= 0)
        return found.rename(columns=dict(zip(("user", "item"), model.words_, strict=True)))

    def predict_table(self, drug_ids: Any, target_ids: Any) -> pd.DataFrame:
        """The score of each pair and its source: the columns drug, target (see `words_`), score and source."""
        model = self._fitted()
        asked = asked_ids(drug_ids, model.drugs_.kind), asked_ids(target_ids, model.targets_.kind)
        pairs = pairs_of(model, *asked)
        ids = dict(zip(model.words_, np.broadcast_arrays(*asked), strict=True))
        return pd.DataFrame({**ids, "score": model.scores_[pairs], "source": "model"})

    def score(self, test: Any, y: None = None) -> float:
        """The area under the precision-recall curve of recorded pairs, 1 and 0, for scikit-learn.

        Raises
        ------
        DataError
            Unless pairs of both kinds are recorded.
        """
        model = self._fitted()
        pairs = as_pairs(test, (model.drugs_.kind, model.targets_.kind))
        drugs, targets = pairs.user_ids[pairs.user_index], pairs.item_ids[pairs.item_index]
        return aupr(pairs.ratings, model.scores_[pairs_of(model, drugs, targets)])


def pairs_of(model: Any, drug_ids: Any, target_ids: Any) -> tuple[np.ndarray, np.ndarray]:
    """The places of drugs and targets, position by position; a single id goes with all of the other side."""
    drugs, targets = places_of(model.drugs_, drug_ids), places_of(model.targets_, target_ids)
    if drugs.size != targets.size and 1 not in (drugs.size, targets.size):
        raise DataError(
            f"expected as many {model.drugs_.kind}s as {model.targets_.kind}s, found {drugs.size} and {targets.size}"
        )
    return drugs, targets


def places_of(index: IdIndex, ids: Any) -> np.ndarray:
    """The places of ids, or `UnknownIdError` with the nearest known one."""
    asked = asked_ids(ids, index.kind)
    places = index.lookup(asked)
    if (places < 0).any():
        unknown = asked[places < 0].tolist()
        raise UnknownIdError(index.kind, unknown, f"the first is {with_nearest(unknown[0], index.ids.tolist())}")
    return places
