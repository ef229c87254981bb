"""Writes of labs."""
