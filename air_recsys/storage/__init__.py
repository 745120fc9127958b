"""Checks at public doors, and files that are read with care and written whole."""
