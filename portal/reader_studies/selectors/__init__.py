"""Selectors of assignments and studies, filtered by permission."""
