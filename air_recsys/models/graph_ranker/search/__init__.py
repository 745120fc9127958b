"""The search of a `GraphRanker` on its way: time, steps of the factors, and what a checkpoint keeps of it."""
