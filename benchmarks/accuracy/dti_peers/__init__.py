"""Other ways to predict drug-target interactions, written from their papers; what is hidden counts as 0.

All take a matrix of drugs x targets (m, n) with NaN where a pair is hidden, and return scores of all pairs (m, n).
"""

from benchmarks.accuracy.dti_peers.dnilmf import DNILMF_SETTINGS, dnilmf_scores
from benchmarks.accuracy.dti_peers.ease import ease_scores
from benchmarks.accuracy.dti_peers.gip import gip_scores, wnn_gip_scores
from benchmarks.accuracy.dti_peers.nrlmf import NRLMF_SETTINGS, nrlmf_scores
from benchmarks.accuracy.dti_peers.wknnir import wknnir_scores

__all__ = [
    "DNILMF_SETTINGS",
    "NRLMF_SETTINGS",
    "dnilmf_scores",
    "ease_scores",
    "gip_scores",
    "nrlmf_scores",
    "wknnir_scores",
    "wnn_gip_scores",
]
