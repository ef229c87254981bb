"""Geometric verification of matches: the motion between two views, and what agrees with it."""
