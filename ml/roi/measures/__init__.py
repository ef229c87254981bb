"""What can be measured of a patch without a network: texture and structure."""
