"""File formats of regions: one table, one protocol to read and one to write."""
