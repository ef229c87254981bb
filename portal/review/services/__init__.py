"""Writes of review."""
