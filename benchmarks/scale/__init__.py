"""Growth of time and memory with the data, and recovery of planted groups."""
