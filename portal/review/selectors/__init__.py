"""Reads of review, limited to what the user may see."""
