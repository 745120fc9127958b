"""Measurements behind every figure of the documentation, each a command of ``air-recsys``."""
