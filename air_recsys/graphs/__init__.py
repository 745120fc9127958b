"""Adjacency, Laplacian, Dirichlet energy, candidates, and the graph that users see."""

from air_recsys.graphs.similarity import SimilarityGraph

__all__ = ["SimilarityGraph"]
