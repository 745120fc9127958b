"""Readers of tables: text, Parquet and frames."""
