"""Who rated what: interactions, their ids, columns and scales, readers, data sets and splits."""
