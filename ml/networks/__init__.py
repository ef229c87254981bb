"""Torch modules, without data or training loops."""
