"""Pages of annotations."""
