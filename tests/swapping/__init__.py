"""Searches while regions come and go and index files are swapped, in real processes."""
