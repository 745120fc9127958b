"""Drug-target interactions: completion and graphs in the words of drugs and targets."""

from air_recsys.data.affinities import as_p_affinity
from air_recsys.data.splits.cold import SETTINGS, interaction_folds
from air_recsys.data.splits.kinds import scaffolds, similarity_clusters
from air_recsys.dti.screening import screen
from air_recsys.evaluation.drug_targets import evaluate_pairs, evaluate_splits
from air_recsys.evaluation.enrichment import enrichment, enrichment_curve, hidden_enrichment
from air_recsys.models.drug_target.model import DrugTargetAIR

__all__ = [
    "SETTINGS",
    "DrugTargetAIR",
    "as_p_affinity",
    "enrichment",
    "enrichment_curve",
    "evaluate_pairs",
    "evaluate_splits",
    "hidden_enrichment",
    "interaction_folds",
    "scaffolds",
    "screen",
    "similarity_clusters",
]
