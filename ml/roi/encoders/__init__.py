"""Patch encoders behind one protocol."""
