"""Labels and regions of interest."""
