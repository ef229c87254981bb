"""Writes of annotations."""
