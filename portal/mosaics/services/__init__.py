"""Writes of mosaics."""
