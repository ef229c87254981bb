"""Services of assignments and studies."""
