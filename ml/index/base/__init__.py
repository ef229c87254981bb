"""One immutable base of an index: its vectors, mapped, and the lists or GPU that search them."""
