"""Statements and locks that Django's own are too slow or too narrow for."""
