"""Hand-crafted measures of a patch: texture and structure."""
