"""Assignments, and studies of several readers."""
