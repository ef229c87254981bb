"""Index files: which there are, opened, and checked against the database."""
