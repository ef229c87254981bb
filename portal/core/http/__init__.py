"""HTTP: clients, limits of request bodies, and file responses."""
