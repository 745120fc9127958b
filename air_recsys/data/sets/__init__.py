"""Loaders of published files, downloads, and generators."""
