"""A region by its key points: descriptors aggregated to a vector, and a second look."""
