"""Learned graphs beside other graphs, groups, genres and similarities that no model saw."""
