"""Measures of the quality of predictions: errors of ratings, binary scores, rankings at k, and images."""

from air_recsys.metrics.at_k import (
    hit_rate_at_k,
    map_at_k,
    mrr_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    user_measures,
)
from air_recsys.metrics.binary import aupr, auroc, average_precision, bedroc, calibration_error
from air_recsys.metrics.catalogue import (
    coverage,
    gini,
    intra_list_diversity,
    miscalibration,
    novelty,
    popularity_lift,
)
from air_recsys.metrics.ranking import ranking_report, top_k
from air_recsys.metrics.rating import concordance_index, mae, modified_r_squared, mse, nmae, psnr, rmse, ssim

__all__ = [
    "aupr",
    "auroc",
    "average_precision",
    "bedroc",
    "calibration_error",
    "concordance_index",
    "coverage",
    "gini",
    "hit_rate_at_k",
    "intra_list_diversity",
    "mae",
    "map_at_k",
    "miscalibration",
    "modified_r_squared",
    "mrr_at_k",
    "mse",
    "ndcg_at_k",
    "nmae",
    "novelty",
    "popularity_lift",
    "precision_at_k",
    "psnr",
    "ranking_report",
    "recall_at_k",
    "rmse",
    "ssim",
    "top_k",
    "user_measures",
]
