"""Times in a `GraphRanker`: which parts are hidden to choose its settings, and how much what is later counts."""
