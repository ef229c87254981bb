"""Metrics and encoders trained on a lab's archive."""
