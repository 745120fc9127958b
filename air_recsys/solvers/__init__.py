"""Solvers of `AIR`, each with its own parameters."""

from air_recsys.models.solvers import Adam, Langevin, Variational

__all__ = ["Adam", "Langevin", "Variational"]
