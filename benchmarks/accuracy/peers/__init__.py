"""Peers that no package has, written from their papers."""
