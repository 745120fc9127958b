"""Translations to and from other libraries; the only place where those are imported."""
