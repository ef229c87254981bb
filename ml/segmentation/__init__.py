"""Outline proposals for the structure under a click; without torch."""
