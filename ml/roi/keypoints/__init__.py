"""Region encoder by aggregated key point descriptors, and re-ranking by matching."""
