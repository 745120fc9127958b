"""Drug-target interactions: completion and graphs in the words of drugs and targets."""

from air_recsys.data.splits.kinds import scaffolds, similarity_clusters
from air_recsys.evaluation.drug_targets import SETTINGS, evaluate_pairs, evaluate_splits, interaction_folds
from air_recsys.evaluation.enrichment import enrichment, enrichment_curve, hidden_enrichment
from air_recsys.models.drug_target.described import (
    as_p_affinity,
    feature_similarity,
    sequence_similarity,
    smiles_similarity,
)
from air_recsys.models.drug_target.model import DrugTargetAIR

__all__ = [
    "SETTINGS",
    "DrugTargetAIR",
    "as_p_affinity",
    "enrichment",
    "enrichment_curve",
    "evaluate_pairs",
    "evaluate_splits",
    "feature_similarity",
    "hidden_enrichment",
    "interaction_folds",
    "scaffolds",
    "sequence_similarity",
    "similarity_clusters",
    "smiles_similarity",
]
