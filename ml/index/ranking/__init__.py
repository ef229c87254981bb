"""Processing of search results: query expansion, diffusion, and calibration of distances."""
