"""Model files, and the fingerprints of trainings: nothing in a file is ever executed."""
