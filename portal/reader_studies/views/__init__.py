"""Pages of assignments and reader studies."""
