"""Tissue and glass of stained sections, by optical density."""
