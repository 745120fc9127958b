"""Deep factorization, adaptive Laplacian and objective: torch, rows and columns only."""
