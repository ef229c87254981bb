"""Reads of what is learned from a lab's archive."""
