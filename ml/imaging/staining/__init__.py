"""Stain of a section, if its file states it in known words or codes."""
