"""Training of the papers' key point descriptors: triplet, cnn and graph."""
