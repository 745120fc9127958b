"""Figures of the reports."""
