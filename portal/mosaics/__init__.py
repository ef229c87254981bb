"""Mosaics of videos."""
