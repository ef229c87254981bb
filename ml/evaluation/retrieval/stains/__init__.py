"""What a change of stain costs: queries in other stains, vectors beside their originals."""
