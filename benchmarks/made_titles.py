"""Words for titles of films and books that never were."""

ADJECTIVES = ("Silent", "Crimson", "Last", "Golden", "Hidden", "Velvet", "Hollow", "Iron", "Quiet", "Frozen", "Paper")
NOUNS = ("Harbor", "River", "Garden", "Signal", "Mountain", "Letters", "Orchard", "Machine", "Lantern", "Voyage")
