"""Is the same tissue found in later frames? Regions of places that a moving scope sees again."""
