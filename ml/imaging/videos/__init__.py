"""Videos: frame tables, frames by presentation time, and web renditions."""
