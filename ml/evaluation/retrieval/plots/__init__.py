"""Plots of a retrieval: curves and query sheets."""
