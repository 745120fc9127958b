"""Folds of drugs and targets, and what is measured on them."""
