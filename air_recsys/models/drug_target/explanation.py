r"""The contributions of known interactions to the score of a pair.

The completion is linear in what it smooths, :math:`x_{ij} = \sum_{ab} H_{ij,ab} r_{ab}`, with the graphs as they are
in its last round; a drug or a target without interactions is a weighted sum of those that are like it. Either way
each pair (a, b) adds a number of its own to the score, and these sum to it. Known interactions are told one by one;
what the model itself has filled in where nothing is recorded is a part of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.graphs import SimilarityGraph
from air_recsys.models.drug_target.pairs import called, columns_of

_PARTS = {
    "same_drug": "other {1}s of the {0}",
    "same_target": "other {0}s of the {1}",
    "known_elsewhere": "interactions of others",
    "own_record": "the record of the pair itself",
    "filled_in": "pairs that are not known, as completed",
}


@dataclass(frozen=True)
class PairExplanation:
    """The parts of the score of a drug and a target.

    Attributes
    ----------
    drug, target : hashable
    score, probability, deviation : float
        As in `DrugTargetAIR.new_interactions`.
    interactions : DataFrame
        Known interactions, largest contributions first: drug, target (by their words, with names where there are
        some), contribution, share (of the
        score), drug_similarity and target_similarity (the edges of the learned graphs to the drug and to the target; 1
        for the same one).
    parts : dict of str to float
        Sums: same_drug (interactions of the drug with other targets), same_target (of other drugs with the target),
        known_elsewhere, own_record (of a known pair), filled_in (not known, completed by the model). They add up to
        the score.
    n_interactions : int
        Number of known interactions; `interactions` has the first of them.
    words : tuple of str
        What drugs and targets are called.
    names : mapping
        What people call some of them, by id.
    """

    drug: Hashable
    target: Hashable
    score: float
    probability: float
    deviation: float
    interactions: pd.DataFrame
    parts: dict[str, float]
    n_interactions: int
    words: tuple[str, str] = ("drug", "target")
    names: Mapping[Any, str] = field(default_factory=dict)

    def total(self) -> float:
        """Return the sum of the parts, which is the score up to rounding."""
        return sum(self.parts.values())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            self.words[0]: _plain(self.drug),
            self.words[1]: _plain(self.target),
            "score": self.score,
            "probability": self.probability,
            "deviation": self.deviation,
            "parts": self.parts,
            "interactions": [
                {str(name): _plain(value) for name, value in row.items()}
                for row in self.interactions.astype(object).to_dict("records")
            ],
            "n_interactions": self.n_interactions,
        }

    def __str__(self) -> str:
        summands = [
            f"  {value:+.4f}  {_PARTS[name].format(*self.words)}" for name, value in self.parts.items() if value
        ]
        drug, target = (called(id, self.names) for id in (self.drug, self.target))
        shown = self.interactions.to_string(index=False, float_format="{:.4f}".format)
        what = f"the {len(self.interactions)} of {self.n_interactions} known interactions that add most"
        return "\n".join(
            [
                f"{self.words[0]} {drug}, {self.words[1]} {target}: probability {self.probability:.3f} "
                f"+- {self.deviation:.3f}, score {self.score:.4f}, made of",
                *summands,
                "",
                f"{what}:",
                shown,
            ]
        )


def explained(
    pair: tuple[Hashable, Hashable],
    place: tuple[int, int],
    figures: tuple[float, float, float],
    added: np.ndarray,
    known: np.ndarray,
    graphs: tuple[SimilarityGraph, SimilarityGraph],
    n: int,
    names: Mapping[Any, str],
) -> PairExplanation:
    """Return the explanation of a pair.

    `figures` are score, probability and deviation; `added`, (n_drugs, n_targets), is what each pair adds to the score.
    `graphs` are of all drugs and of all targets.
    """
    drugs, targets = np.nonzero(known)
    parts = added[drugs, targets]
    order = np.argsort(-parts, kind="stable")[:n]
    first, second = drugs[order], targets[order]
    words, near = (graphs[0].kind, graphs[1].kind), [_edges(*each) for each in zip(graphs, place, strict=True)]
    ids = columns_of(words, (graphs[0].ids[first], graphs[1].ids[second]), names)
    table = pd.DataFrame(
        ids
        | {
            "contribution": parts[order],
            "share": parts[order] / figures[0] if figures[0] else np.zeros(order.size),
            f"{words[0]}_similarity": np.where(first == place[0], 1.0, near[0][first]),
            f"{words[1]}_similarity": np.where(second == place[1], 1.0, near[1][second]),
        }
    )
    return PairExplanation(*pair, *figures, table, _sums(added, known, place), int(parts.size), words, names)


def _edges(graph: SimilarityGraph, node: int) -> np.ndarray:
    """Return the weights of the edges between a node and all, (n,)."""
    return graph.to_scipy()[[node]].toarray().ravel()


def _sums(added: np.ndarray, known: np.ndarray, place: tuple[int, int]) -> dict[str, float]:
    drug, target = place
    told = np.where(known, added, 0)
    own = float(told[drug, target])
    same_drug, same_target = (float(line.sum()) - own for line in (told[drug], told[:, target]))
    return {
        "same_drug": same_drug,
        "same_target": same_target,
        "known_elsewhere": float(told.sum()) - same_drug - same_target - own,
        "own_record": own,
        "filled_in": float(added.sum() - told.sum()),
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
