"""Retrieval of regions with the same label of other patients."""
