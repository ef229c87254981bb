"""Torch modules only: no data, no training loop, no files."""
