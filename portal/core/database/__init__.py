"""Statements and locks for where Django's own are too slow or too narrow."""
