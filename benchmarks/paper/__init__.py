"""The paper measured again: its tables, figures and theorems, and our own settings on the same data."""
