"""Retrieval of the same place in other frames of a moving scope."""
