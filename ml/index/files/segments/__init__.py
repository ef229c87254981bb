"""An immutable base of an index: memory-mapped vectors, searched by inverted lists or a GPU."""
