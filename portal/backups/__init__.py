"""Backups, their restoration, and moves of an installation."""
