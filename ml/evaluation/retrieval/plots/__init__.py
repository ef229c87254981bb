"""Pictures of a retrieval: curves, query sheets, maps of vectors."""
