"""Accuracy of models that are trained in sealed processes, on entries that they have never seen."""
