"""`GraphRanker`: its terms, how it chooses their settings, and new users."""
