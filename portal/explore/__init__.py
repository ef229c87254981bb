"""Map of a lab's regions, near-duplicates, label outliers and similar regions of a slide."""
