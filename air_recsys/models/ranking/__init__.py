"""Lists of items: which are allowed, the search for the best by factors, ties, tables, the faiss index."""
