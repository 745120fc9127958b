"""Effects of time: what a row or a column adds to its entries at a given time."""
