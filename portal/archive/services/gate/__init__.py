"""Checks of received files before people see them."""
