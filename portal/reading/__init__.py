"""Tessera's app for assignments and studies of several readers."""
