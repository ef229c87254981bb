"""Reads of mosaics."""
