"""Training of the patch encoder without labels."""
