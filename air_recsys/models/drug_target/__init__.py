"""Drug-target interactions: completion, graphs and probabilities."""
