"""Nuclei, stained area and stain means of regions, and the thresholds of labs."""
