"""Metrics and protocols, those of the papers and the honest ones."""
