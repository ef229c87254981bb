"""Nuclei, stained area and stain means of a region; without torch."""
