"""Standards of other systems."""
