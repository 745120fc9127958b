"""Drug-target interactions: completion and graphs in the words of drugs and targets."""

from air_recsys.data.described.molecules import smiles_similarity
from air_recsys.data.described.numbers import feature_similarity
from air_recsys.data.described.sequences import sequence_similarity
from air_recsys.dti.screening import screen
from air_recsys.evaluation.drug_targets import SETTINGS, evaluate_pairs, interaction_folds
from air_recsys.evaluation.enrichment import enrichment, enrichment_curve, hidden_enrichment
from air_recsys.models.drug_target.affinities import as_p_affinity
from air_recsys.models.drug_target.model import DrugTargetAIR

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
    "screen",
    "sequence_similarity",
    "smiles_similarity",
]
