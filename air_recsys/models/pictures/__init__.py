"""Models that fill in a whole matrix, such as a picture: the paper's baselines, and AIR on patches."""
