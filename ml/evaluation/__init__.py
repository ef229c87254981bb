"""Metrics and protocols, those of the papers and stricter ones."""
