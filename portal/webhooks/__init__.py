"""Signed messages to other systems about events."""
