"""Training schemes, one file each, driven by one configuration."""
