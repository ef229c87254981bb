"""One measure over many sets: rivals of the same run, a stain swap, and a rule to choose by."""
