"""Encoders, vectors of ROIs, and their index files."""
