"""Training of the default key point descriptor."""
