"""How accurate models are: trained in sealed processes, asked for what they have never seen."""
