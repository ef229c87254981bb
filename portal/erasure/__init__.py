"""The erasure of a patient's data."""
