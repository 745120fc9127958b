"""Drug-target interactions: completion and graphs in the words of drugs and targets."""

from air_recsys.dti.affinities import as_p_affinity
from air_recsys.dti.described import feature_similarity, sequence_similarity, smiles_similarity
from air_recsys.dti.enrichment import enrichment, enrichment_curve, hidden_enrichment
from air_recsys.dti.evaluation import evaluate_pairs
from air_recsys.dti.folds import SETTINGS, interaction_folds
from air_recsys.dti.model import DrugTargetAIR

__all__ = [
    "SETTINGS",
    "DrugTargetAIR",
    "as_p_affinity",
    "enrichment",
    "enrichment_curve",
    "evaluate_pairs",
    "feature_similarity",
    "hidden_enrichment",
    "interaction_folds",
    "sequence_similarity",
    "smiles_similarity",
]
