"""Key point matching against known camera poses."""
