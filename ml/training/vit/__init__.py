"""Training of the adapted vision transformer."""
