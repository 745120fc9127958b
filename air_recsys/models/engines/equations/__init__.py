"""The equations of a row, of a user or an item, with the other side held fixed: of each engine."""
