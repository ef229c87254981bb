"""Geometric verification of matches."""
