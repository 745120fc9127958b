"""Attacks on the library: broken files, flipped bits, kills, signals, threads, and outputs named as inputs."""
